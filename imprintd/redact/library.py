"""
The kept scanner library: several hundred provider formats with their checks.

Only its plain scanner is used. Its policy layer obeys comments in the scanned
text, and a text must not be able to switch its own redaction off.

Loading it takes half a second, so that happens at the first text that needs
it. Which texts do is decided by the library's own detection patterns, taken
from it at run time and given to the prefilter; a pattern that the prefilter
does not take makes its rule's keywords, or every text, count as a hit.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

from imprintd.redact.engine import Pattern, compiles
from imprintd.redact.kinds import kind_of_rule

VERSION: Final = "1.5.0"
FIRST: Final = 10_000
"""Numbers of the library's patterns start here."""


class Library:
    """
    The scanner, loaded when first needed.

    Args:
        cache_dir: Folder where the library keeps its compiled rules; None: no cache.
    """

    __slots__ = ("_cache_dir", "_rules", "_scanner")

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._cache_dir = cache_dir
        self._rules: Any = None
        self._scanner: Any = None

    def patterns(self) -> tuple[Pattern, ...]:
        """What tells texts that need the scanner from those that do not."""
        stored = self._stored()
        if stored is None:
            stored = self._derive()
            self._store(stored)
        return tuple(Pattern(FIRST + number, text, once=True) for number, text in enumerate(stored))

    def scan(self, data: bytes) -> list[tuple[int, int, str]]:
        """Findings in one text as (start, end, kind), in bytes."""
        if self._scanner is None:
            from kingfisher_sdk import Scanner

            self._scanner = Scanner(self._load(), base64=False, dedup=False, redact=True)
        found = []
        for finding in self._scanner.scan(data):
            place = finding.location
            if finding.visible:
                kind = kind_of_rule(finding.rule_id)
                found.append((place["start_offset"], place["end_offset"], kind))
        return sorted(set(found))

    def _load(self) -> Any:
        if self._rules is None:
            from kingfisher_sdk import Rules

            if self._cache_dir is None:
                self._rules = Rules(cache=False)
            else:
                self._cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._rules = Rules(cache_dir=self._cache_dir)
        return self._rules

    def _derive(self) -> list[str]:
        rules = self._load()
        texts: list[str] = []
        for meta in rules.metadata():
            if not meta["visible"]:
                continue
            text = str(rules.detail(meta["id"])["detection_regex"]).replace(r"\b", "")
            # A rule the prefilter refuses would have to run on every text: its own
            # engine would run it, but none of this version's rules is refused.
            if compiles(Pattern(0, text, once=True)):
                texts.append(text)
        return texts

    def _stored(self) -> list[str] | None:
        if self._cache_dir is None:
            return None
        try:
            stored = json.loads((self._cache_dir / f"library-{VERSION}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return stored if isinstance(stored, list) and all(type(t) is str for t in stored) else None

    def _store(self, texts: list[str]) -> None:
        if self._cache_dir is not None:
            with contextlib.suppress(OSError):
                self._cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = self._cache_dir / f"library-{VERSION}.json"
                file.touch(mode=0o600)
                file.write_text(json.dumps(texts))
