"""
The kept scanner library: several hundred provider formats with their checks.

Only its plain scanner is used. Its policy layer obeys comments in the scanned
text, and a text must not be able to switch its own redaction off.

Loading it takes half a second, so that happens at the first text that needs
it. Which texts do is decided by the library's own detection patterns, taken
from it at run time and given to the prefilter (it takes all 441 of this version).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from imprintd.redact import cache
from imprintd.redact.engine import Pattern
from imprintd.redact.kinds import kind_of_rule

VERSION: Final = version("kingfisher-secret-scanner")
_NAME: Final = f"library-{VERSION}"


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
        stored = cache.load(self._cache_dir, _NAME, VERSION)
        if stored is None:
            stored = json.dumps(self._derive()).encode()
            cache.save(self._cache_dir, _NAME, VERSION, stored)
        texts: list[str] = json.loads(stored)
        return tuple(Pattern(number, text, once=True) for number, text in enumerate(texts))

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
                self._rules = Rules(cache_dir=cache.private(self._cache_dir))
        return self._rules

    def _derive(self) -> list[str]:
        rules = self._load()
        texts: list[str] = []
        for meta in rules.metadata():
            if not meta["visible"]:
                continue
            # Without word boundaries, as escapes may stand where the text has letters.
            texts.append(str(rules.detail(meta["id"])["detection_regex"]).replace(r"\b", ""))
        return texts
