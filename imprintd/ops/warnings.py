"""
What is wrong right now, by code: rooms set and clear, the status shows.

Nobody has to read logs to learn that something is degraded. A kind says what
a code means; a warning becomes visible once it has lasted, so that a hiccup
does not alarm, and stays hidden while a cause that explains it is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from imprintd.clock import Clock

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Kind:
    """
    What a code means.

    Attributes:
        code: Stable, for programs.
        severity: How bad it is.
        title: A few words, for people.
        visible_after_s: It must last this long before it shows.
        explained_by: Codes whose warnings make this one redundant.
    """

    code: str
    severity: Severity
    title: str
    visible_after_s: float = 0.0
    explained_by: tuple[str, ...] = ()


KINDS: Final[tuple[Kind, ...]] = (
    Kind("watch-degraded", "warning", "Some folders are polled, not watched", 5),
    Kind("inotify-limit", "warning", "The system's limit of watches is reached", 5),
    Kind("source-missing", "info", "A watched folder does not exist", 5),
    Kind("source-unreadable", "warning", "A folder cannot be read", 5),
    Kind("source-failed", "warning", "A transcript could not be read"),
    Kind("room-degraded", "error", "A part of the daemon stopped after repeated failures"),
    Kind("broker-unreachable", "warning", "The broker cannot be reached", 30),
    Kind(
        "peer-silent", "info", "A paired device has not been heard of", 0, ("broker-unreachable",)
    ),
    Kind("clock-skew", "warning", "A device's clock is off"),
    Kind("disk-low", "error", "The disk is nearly full"),
    Kind("index-rebuilding", "info", "The search index is being rebuilt", 5),
    Kind("model-missing", "warning", "The embedding model is not there; search is by words"),
    Kind("store-corrupt", "error", "The database is damaged"),
    Kind("paused", "info", "Learning is paused"),
)


@dataclass(frozen=True, slots=True)
class ActiveWarning:
    """
    One thing that is wrong.

    Attributes:
        code: Of its kind.
        key: Tells several of one code apart (a root, a device).
        severity: Of its kind.
        title: Of its kind.
        text: What exactly, with names and numbers.
        remedy: What the user can do.
        since_ms: Wall time when it began.
    """

    code: str
    key: str
    severity: Severity
    title: str
    text: str
    remedy: str
    since_ms: int

    def as_json(self) -> dict[str, Any]:
        """As it appears in the status."""
        return {
            "code": self.code,
            "key": self.key,
            "severity": self.severity,
            "title": self.title,
            "text": self.text,
            "remedy": self.remedy,
            "since_ms": self.since_ms,
        }


class Warnings:
    """
    The registry. Set and cleared on the daemon's loop, shown from anywhere.

    Args:
        clock: For ages.
        kinds: Codes that may be set.
        on_change: Called after a warning appeared or was cleared.
    """

    PER_CODE_MAX: Final = 50
    """Warnings of one code; the next ones replace the oldest."""

    def __init__(
        self,
        clock: Clock,
        kinds: Iterable[Kind] = KINDS,
        on_change: Callable[[str, bool], None] | None = None,
    ) -> None:
        self._clock = clock
        self._kinds = {kind.code: kind for kind in kinds}
        self._on_change = on_change
        self._active: dict[tuple[str, str], tuple[float, ActiveWarning]] = {}

    def set(self, code: str, text: str, *, key: str = "", remedy: str = "") -> None:
        """
        Something is wrong; saying so again updates the text, not the age.

        Raises:
            ValueError: No kind has this code: a bug of the caller's.
        """
        kind = self._kinds.get(code)
        if kind is None:
            raise ValueError(f"no warning has the code {code}")
        began, old = self._active.get((code, key), (self._clock.monotonic(), None))
        since_ms = old.since_ms if old else self._clock.wall_ms()
        self._active[code, key] = (
            began,
            ActiveWarning(code, key, kind.severity, kind.title, text, remedy, since_ms),
        )
        if old is None:
            self._bound(code)
            self._tell(code, is_set=True)

    def clear(self, code: str, key: str = "") -> None:
        """It is well again; clearing what is not set is no error."""
        if self._active.pop((code, key), None) is not None:
            self._tell(code, is_set=False)

    def replace(self, code: str, items: Iterable[tuple[str, str, str]]) -> None:
        """Make (key, text, remedy) the whole of one code's warnings."""
        wanted = {key: (text, remedy) for key, text, remedy in items}
        for other, key in tuple(self._active):
            if other == code and key not in wanted:
                self.clear(code, key)
        for key, (text, remedy) in wanted.items():
            self.set(code, text, key=key, remedy=remedy)

    def visible(self) -> list[ActiveWarning]:
        """What to show now: worst first, then oldest."""
        now = self._clock.monotonic()
        active = tuple(self._active.values())  # asked from other threads, too
        codes = {warning.code for _, warning in active}
        shown = []
        for began, warning in active:
            kind = self._kinds[warning.code]
            if now - began < kind.visible_after_s or codes & set(kind.explained_by):
                continue
            shown.append(warning)
        rank = {"error": 0, "warning": 1, "info": 2}
        return sorted(shown, key=lambda w: (rank[w.severity], w.since_ms, w.code, w.key))

    def _bound(self, code: str) -> None:
        same = [key for other, key in self._active if other == code]
        if len(same) > self.PER_CODE_MAX:
            del self._active[code, same[0]]

    def _tell(self, code: str, *, is_set: bool) -> None:
        if self._on_change is not None:
            self._on_change(code, is_set)
