"""
The multi-pattern prefilter: one Hyperscan database, compiled once and cached.

A compiled database is bound to the CPU and to the engine's version, so it is
cached by key, never shipped and never compared.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import hyperscan

from imprintd.redact import cache

VERSION: Final = version("hyperscan")


@dataclass(frozen=True, slots=True)
class Pattern:
    """
    One pattern of the database.

    Attributes:
        number: What a hit reports.
        expression: Hyperscan syntax, bytes semantics.
        caseless: Ignore case (ASCII).
        start: Report where the match starts, not only where it ends.
        once: Report only that it matches at all.
    """

    number: int
    expression: str
    caseless: bool = False
    start: bool = False
    once: bool = False

    @property
    def flags(self) -> int:
        """The engine's flag bits."""
        return (
            (hyperscan.HS_FLAG_CASELESS if self.caseless else 0)
            | (hyperscan.HS_FLAG_SOM_LEFTMOST if self.start else 0)
            | (hyperscan.HS_FLAG_SINGLEMATCH if self.once else 0)
        )


class Prefilter:
    """
    All patterns over one text at a time.

    Args:
        patterns: What to look for.
        lenient: Leave out patterns that the engine refuses.
        cache_dir: Folder for the compiled form; None compiles in memory.
    """

    __slots__ = ("_database",)

    def __init__(
        self, patterns: Sequence[Pattern], cache_dir: Path | None = None, *, lenient: bool = False
    ) -> None:
        key = _key(patterns)
        name = f"prefilter-{key[:32]}.hs"
        blob = cache.load(cache_dir, name, key)
        if blob is not None:
            with contextlib.suppress(hyperscan.error):
                self._database = hyperscan.loadb(blob, hyperscan.HS_MODE_BLOCK)
                self._database.scratch = hyperscan.Scratch(self._database)
                return
        try:
            self._database = _compile(patterns)
        except hyperscan.error:
            if not lenient:
                raise
            self._database = _compile([pattern for pattern in patterns if _compiles(pattern)])
        cache.save(cache_dir, name, key, hyperscan.dumpb(self._database))

    def scan(self, data: bytes) -> list[tuple[int, int, int]]:
        """Hits as (end, start, number), in order; `start` is 0 where none is tracked."""
        hits: list[tuple[int, int, int]] = []

        def on_hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((end, start, number))

        self._database.scan(data, match_event_handler=on_hit)
        hits.sort()
        return hits


def _compiles(pattern: Pattern) -> bool:
    try:
        _compile([pattern])
    except hyperscan.error:
        return False
    return True


def _compile(patterns: Sequence[Pattern]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[pattern.expression.encode() for pattern in patterns],
        ids=[pattern.number for pattern in patterns],
        elements=len(patterns),
        flags=[pattern.flags for pattern in patterns],
    )
    return database


def _key(patterns: Sequence[Pattern]) -> str:
    digest = hashlib.sha256(f"hyperscan {VERSION} {cache.processor()}".encode())
    for pattern in patterns:
        digest.update(repr((pattern.number, pattern.expression, pattern.flags)).encode())
    return digest.hexdigest()
