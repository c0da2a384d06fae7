"""
The multi-pattern prefilter: one Hyperscan database, compiled once and cached.

A compiled database is bound to the CPU and to the engine's version, so it is
cached by key, never shipped and never compared. A cache file is only read when
its own hash agrees; anything else is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hyperscan

VERSION: Final = str(getattr(hyperscan, "__version__", "0.9.1"))


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


def compiles(pattern: Pattern) -> bool:
    """Whether the engine takes the pattern at all."""
    try:
        _compile([pattern])
    except hyperscan.error:
        return False
    return True


class Prefilter:
    """
    All patterns over one text at a time.

    Args:
        patterns: What to look for.
        cache_dir: Folder for the compiled form; None compiles in memory.
    """

    __slots__ = ("_database",)

    def __init__(self, patterns: Sequence[Pattern], cache_dir: Path | None = None) -> None:
        key = _key(patterns)
        blob = _load(cache_dir, key) if cache_dir else None
        if blob is not None:
            with contextlib.suppress(hyperscan.error):
                self._database = hyperscan.loadb(blob, hyperscan.HS_MODE_BLOCK)
                self._database.scratch = hyperscan.Scratch(self._database)
                return
        self._database = _compile(patterns)
        if cache_dir:
            _save(cache_dir, key, hyperscan.dumpb(self._database))

    def scan(self, data: bytes) -> list[tuple[int, int, int]]:
        """Hits as (end, start, number), in order; `start` is 0 where none is tracked."""
        hits: list[tuple[int, int, int]] = []

        def on_hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((end, start, number))

        self._database.scan(data, match_event_handler=on_hit)
        hits.sort()
        return hits


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
    digest = hashlib.sha256(f"hyperscan {VERSION} {_cpu()}".encode())
    for pattern in patterns:
        digest.update(repr((pattern.number, pattern.expression, pattern.flags)).encode())
    return digest.hexdigest()


def _cpu() -> str:
    """What a database depends on besides its patterns: the processor's abilities."""
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
            return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        return " ".join(os.uname()[-1:])


def _file(cache_dir: Path, key: str) -> Path:
    return cache_dir / f"prefilter-{key[:32]}.hs"


def _load(cache_dir: Path, key: str) -> bytes | None:
    try:
        raw = _file(cache_dir, key).read_bytes()
    except OSError:
        return None
    digest, blob = raw[:32], raw[32:]
    expected = hashlib.sha256(key.encode() + blob).digest()
    return blob if digest == expected else None


def _save(cache_dir: Path, key: str, blob: bytes) -> None:
    """Write privately and whole; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=cache_dir, prefix=".prefilter-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(key.encode() + blob).digest() + blob)
            Path(name).replace(_file(cache_dir, key))
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
