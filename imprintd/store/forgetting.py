"""
Deleting one memory: its text goes, and with it the snapshot that would show it.

What is left of the source stays searchable, each chunk with a text of its own,
without the part that overlapped the deleted one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from imprintd.errors import NotKnown
from imprintd.model.event import EventSpan
from imprintd.model.snapshot import Chunk, Head, Stamp
from imprintd.model.source import SourceId
from imprintd.store import chunkrows, pointrows
from imprintd.store.blockrows import drop_blocks
from imprintd.store.connection import Connection, all_of, first_of
from imprintd.store.publish import next_change
from imprintd.store.records import Codec
from imprintd.store.removal import put_fence
from imprintd.store.rows import CODE, LONG_EVENT, digest_of, head_of, plain
from imprintd.store.spans import unpack_spans
from imprintd.store.texts import TextWindow


@dataclass(frozen=True, slots=True)
class _Left:
    """A chunk that stays, or the part of one that does."""

    chunk: Chunk
    text: str


def forget_memory(
    connection: Connection, codec: Codec, workspace: str, memory_id: str, device: str, now_ms: int
) -> SourceId:
    """
    Delete one chunk for good.

    Its source has no full text afterwards; a fence keeps the very same text
    from coming back by a mere rescan or from a peer.

    Returns:
        The source it was in.

    Raises:
        NotKnown: No chunk has that id.
    """
    found = first_of(
        connection,
        "SELECT c.id, c.source, s.project, s.key FROM chunks AS c JOIN sources AS s"
        " ON s.id = c.source WHERE c.memory_id = ? AND s.workspace = ? LIMIT 1",
        (plain(memory_id), plain(workspace)),
    )
    if found is None:
        raise NotKnown("no memory has that id", remedy="its source may have changed: search again")
    number, row, project, key = found
    source = SourceId(plain(workspace), project, key)
    head = head_of(connection, row)
    left = list(_left(connection, codec, source, row, number, head is not None))
    change = next_change(connection)
    if head is not None:
        _drop_snapshot(connection, row, source, head, device, change, now_ms)
    chunkrows.replace_from(connection, row, 0, [one.chunk for one in left], change, None)
    connection.executemany(
        "INSERT OR REPLACE INTO legacy_texts (chunk, text)"
        " VALUES ((SELECT id FROM chunks WHERE source = ? AND ordinal = ?), ?)",
        [
            (row, ordinal, one.text.encode("utf-8", "surrogatepass"))
            for ordinal, one in enumerate(left)
        ],
    )
    pointrows.owe(connection, row, change, None, head.meta.updated_ms if head else now_ms)
    chunkrows.drop_unused_contents(connection)
    return source


def _drop_snapshot(
    connection: Connection,
    row: int,
    source: SourceId,
    head: Head,
    device: str,
    change: int,
    now_ms: int,
) -> None:
    drop_blocks(connection, row)
    for table in ("heads", "alternates", "ledger"):
        connection.execute(f"DELETE FROM {table} WHERE source = ?", (row,))  # noqa: S608 - constants
    stamp: Stamp = head.stamp
    put_fence(connection, "forget", source, head.root, stamp, device, change, now_ms)


def _left(
    connection: Connection,
    codec: Codec,
    source: SourceId,
    row: int,
    gone: int,
    has_snapshot: bool,
) -> Iterator[_Left]:
    window = TextWindow(connection, codec)
    stored = all_of(
        connection,
        'SELECT c.id, c.memory_id, c.start, c."end", k.digest, c.flags, c.events FROM chunks AS c'
        " JOIN contents AS k ON k.id = c.content WHERE c.source = ? ORDER BY c.ordinal",
        (row,),
    )
    ((hole_start, hole_end),) = [(start, end) for n, _, start, end, *_ in stored if n == gone]
    for number, memory_id, start, end, digest, flags, events in stored:
        if number == gone:
            continue
        text = window.span(row, start, end) if has_snapshot else window.legacy(number)
        whole = Chunk(
            memory_id,
            start,
            end,
            digest,
            bool(flags & LONG_EVENT),
            bool(flags & CODE),
            unpack_spans(events, start),
        )
        if end <= hole_start or hole_end <= start:
            yield _Left(whole, text)
            continue
        for low, high in ((start, min(end, hole_start)), (max(start, hole_end), end)):
            if low < high:
                yield _part(codec, source, whole, low, text[low - start : high - start])


def _part(codec: Codec, source: SourceId, chunk: Chunk, start: int, text: str) -> _Left:
    end, digest = start + len(text), digest_of(text)
    cut = replace(
        chunk,
        memory_id=codec.memory_id(source, start, end, digest),
        start=start,
        end=end,
        content_digest=digest,
        events=_clipped(chunk.events, start, end),
    )
    return _Left(cut, text)


def _clipped(spans: Sequence[EventSpan], start: int, end: int) -> tuple[EventSpan, ...]:
    return tuple(
        replace(span, start=max(span.start, start), end=min(span.end, end))
        for span in spans
        if span.start < end and start < span.end
    )
