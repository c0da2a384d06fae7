"""
What goes into the index of words and what comes out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from imprintd.errors import IntegrityError

SCHEMA: Final = 2
"""Part of the state; a folder of another schema is built anew."""


class WordsUnreadable(IntegrityError):
    """The index of words cannot be read or written; a new one mends it."""

    code = "words-unreadable"


@dataclass(frozen=True, slots=True)
class State:
    """
    Up to where a folder stands.

    Attributes:
        change: Change number that is contained.
        row: The last row of a change that is contained in part, else 0.
        erased: The store's last erasure when the folder was begun.
        index_id: Life of the change log.
    """

    change: int = 0
    row: int = 0
    erased: int = 0
    index_id: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One window of one chunk, ready to be indexed.

    Attributes:
        part: 0-based window number.
        fold: Equal where two chunks say the same (63 bits).
        digest: The first 63 bits of the content digest.
        events: `role`, `/kind` and `role/kind` of the events in the chunk.
    """

    row: int
    source_row: int
    part: int
    fold: int
    digest: int
    text: str
    workspace: str
    project: str
    client: str
    device: str
    language: str | None
    events: frozenset[str]
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Found:
    """A window that matches, best first; `score` is BM25."""

    row: int
    part: int
    fold: int
    score: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question as the library's queries: what matches and what must hold besides."""

    match: Any
    filters: tuple[Any, ...]
