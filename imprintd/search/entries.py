"""
From a chunk of the store to what the index of words takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from imprintd.search.filters import event_words
from imprintd.search.ports import ChunkRow
from imprintd.search.records import Entry
from imprintd.search.words import bare_text, body_spans, day_words, fold_key, window_spans


def entries_of(chunk: ChunkRow) -> list[Entry]:
    """A chunk's windows as the index of words takes them."""
    content = chunk.content or ""
    bodies = body_spans(content, chunk.start, chunk.events)
    fold = fold_key(content, bodies)
    digest = digest_word(chunk.content_digest)
    events = event_words(chunk.events)
    first = chunk.updated_ms if chunk.first_ms is None else chunk.first_ms
    last = chunk.updated_ms if chunk.last_ms is None else chunk.last_ms
    return [
        Entry(
            chunk.row,
            chunk.source_row,
            part,
            fold,
            digest,
            _text(chunk, content, bodies, start, end),
            chunk.source.workspace,
            chunk.source.project,
            chunk.client,
            chunk.device,
            chunk.language,
            events,
            first,
            last,
        )
        for part, (start, end) in enumerate(window_spans(content))
    ]


def _text(
    chunk: ChunkRow, content: str, bodies: Sequence[tuple[int, int]], start: int, end: int
) -> str:
    """A window's text, and the days on which it was said."""
    low, high = chunk.start + start, chunk.start + end
    days = day_words(
        event.timestamp for event in chunk.events if event.start < high and event.end > low
    )
    text = bare_text(content, bodies, start, end)
    return f"{text}\n{days}" if days else text


def digest_word(digest: bytes) -> int:
    """The first 63 bits of a content digest."""
    return int.from_bytes(digest[:8], "big") >> 1
