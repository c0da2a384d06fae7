"""
Reading the store page by page, with what is damaged passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from imprintd.errors import IntegrityError
from imprintd.search.ports import ERASED_SETTING, Archive, ChunkRow

ROWS_PAGE: Final = 2000
TEXT_PAGE: Final = 200
"""Chunks read with their text at a time."""


def last_erased(archive: Archive, after: int) -> int:
    """The last change that took text away for good; fences up to `after` are not asked for."""
    named = archive.setting(ERASED_SETTING) or ""
    last = int(named) if named.isdecimal() else 0
    while fences := archive.fences_after(max(after, last), 1000):
        last = max(fence.change for fence in fences)
    return last


def dead_rows(archive: Archive, change: int) -> list[int]:
    """Every row that died after a change."""
    rows: list[int] = []
    while True:
        dead = archive.chunks_died_after(change, ROWS_PAGE, after_row=rows[-1] if rows else 0)
        rows += [one.row for one in dead]
        if len(dead) < ROWS_PAGE:
            return rows


def text_page(archive: Archive, change: int, row: int) -> Sequence[ChunkRow]:
    """The next chunks with their text; one whose text is damaged comes without."""
    try:
        return archive.chunks_born_after(change, TEXT_PAGE, after_row=row, content=True)
    except IntegrityError:
        bare = archive.chunks_born_after(change, TEXT_PAGE, after_row=row, content=False)
        return [one for chunk in bare for one in _readable(archive, chunk)]


def _readable(archive: Archive, chunk: ChunkRow) -> Sequence[ChunkRow]:
    try:
        return archive.chunks_by_row([chunk.row], content=True)
    except IntegrityError:
        # Verifying names it; indexed without words, so that the rest goes on.
        return [chunk]
