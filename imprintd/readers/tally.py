"""
What one reading counts and collects while it goes through records.
"""

from __future__ import annotations

from imprintd.model.source import Coverage
from imprintd.readers.lines import Framed

_NAMES_MAX = 200
"""Different unknown names kept in one reading; names are hostile text."""
_NAME_CHARS_MAX = 80


class Tally:
    """
    Counters of one reading.

    Attributes:
        omissions: Opaque or second copies, by kind.
        unknown: Record types without a rule, by name.
        repeated: Records met again.
    """

    __slots__ = ("omissions", "repeated", "unknown")

    def __init__(self) -> None:
        self.omissions: dict[str, int] = {}
        self.unknown: dict[str, int] = {}
        self.repeated = 0

    def omit(self, kind: str, count: int = 1) -> None:
        """Count something left out."""
        self.omissions[kind] = self.omissions.get(kind, 0) + count

    def strange(self, name: str) -> None:
        """Count a record type that no rule knows."""
        if len(name) > _NAME_CHARS_MAX:
            name = name[:_NAME_CHARS_MAX] + "…"
        # surrogates would poison whatever prints the name
        name = name.encode(errors="replace").decode()
        if name not in self.unknown and len(self.unknown) >= _NAMES_MAX:
            name = "…"
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def coverage(self, framed: Framed, size: int) -> Coverage:
        """The counts of this reading, framing included."""
        if framed.damaged_bytes:
            self.omit("damaged", framed.damaged_bytes)
        if framed.invalid_utf8:
            self.omit("invalid-utf8", framed.invalid_utf8)
        return Coverage(
            omissions=self.omissions,
            unknown=self.unknown,
            zero_filled_lines=framed.zero_filled,
            joined_lines=framed.joined,
            repeated_records=self.repeated,
            pending_tail_bytes=size - framed.consumed,
        )


def latest(first: str | None, second: object) -> str | None:
    """The later of two ISO 8601 timestamps; what is none is passed over."""
    if type(second) is not str or not 19 <= len(second) <= 40 or second[4] != "-":
        return first
    return second if first is None or second > first else first


def bounded(value: object, chars_max: int = 512) -> str | None:
    """A short header field from a record, None where there is none."""
    return value[:chars_max] if type(value) is str and value else None


def word(value: object) -> str | None:
    """A name from a record; anything that is no string is none."""
    return value if type(value) is str else None
