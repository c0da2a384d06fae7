"""
Chunk rows and the contents behind them: born, kept, died, counted.

Only live chunks have rows. One that dies leaves its row number and the change
in `died`, which is all that a cache needs to follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imprintd.errors import IntegrityError
from imprintd.model.snapshot import Chunk
from imprintd.store.connection import Connection, all_of, value_of
from imprintd.store.rows import CODE, LONG_EVENT
from imprintd.store.spans import masks, pack_spans, times


def replace_from(
    connection: Connection,
    row: int,
    keep: int,
    chunks: Sequence[Chunk],
    change: int,
    total_chars: int | None,
) -> None:
    """
    Put chunks in place of all rows of a source from ordinal `keep` on.

    Args:
        total_chars: Length of the text; None: there is no text that the chunks
            have to cover.

    A row that would come back unchanged stays as it is: neither born nor died.

    Raises:
        IntegrityError: The first new chunk leaves a gap behind the kept ones.
    """
    old = {
        ordinal: (number, content, values)
        for ordinal, number, content, *values in connection.execute(
            'SELECT ordinal, id, content, memory_id, start, "end", flags, events'
            " FROM chunks WHERE source = ? AND ordinal >= ?",
            (row, keep),
        )
    }
    reached: int | None = 0
    if keep:
        reached = value_of(
            connection,
            'SELECT "end" FROM chunks WHERE source = ? AND ordinal = ?',
            (row, keep - 1),
        )
    gap = reached is None or (chunks[0].start > reached if chunks else reached != total_chars)
    if gap and total_chars is not None:
        raise IntegrityError("an update leaves a gap behind the chunks that it keeps")
    fresh: list[tuple[int, Chunk, bytes]] = []
    for ordinal, chunk in enumerate(chunks, keep):
        events = pack_spans(chunk.events, chunk.start)
        same = [chunk.memory_id, chunk.start, chunk.end, flags_of(chunk), events]
        if ordinal in old and old[ordinal][2] == same:
            del old[ordinal]
        else:
            fresh.append((ordinal, chunk, events))
    _end(connection, [number for number, _, _ in old.values()], change)
    connection.executemany(
        "UPDATE contents SET refs = refs - 1 WHERE id = ?",
        [(content,) for _, content, _ in old.values()],
    )
    for ordinal, chunk, events in fresh:
        _insert(connection, row, ordinal, chunk, events, change)


def end_all(connection: Connection, row: int, change: int) -> None:
    """Every chunk of a source dies."""
    rows = all_of(connection, "SELECT id, content FROM chunks WHERE source = ?", (row,))
    _end(connection, [number for number, _ in rows], change)
    connection.executemany(
        "UPDATE contents SET refs = refs - 1 WHERE id = ?", [(content,) for _, content in rows]
    )


def drop_unused_contents(connection: Connection) -> None:
    """Contents that no chunk says any more go, with their points and what is owed for them."""
    connection.execute("DELETE FROM contents WHERE refs = 0")


def flags_of(chunk: Chunk) -> int:
    """The flags column."""
    return LONG_EVENT * chunk.long_event | CODE * chunk.code


def _end(connection: Connection, numbers: Sequence[int], change: int) -> None:
    connection.executemany(
        "INSERT INTO died (chunk, change) VALUES (?, ?)", [(number, change) for number in numbers]
    )
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(number,) for number in numbers])


def _insert(
    connection: Connection, row: int, ordinal: int, chunk: Chunk, events: bytes, change: int
) -> None:
    content: int = value_of(
        connection,
        "INSERT INTO contents (digest, refs) VALUES (?, 1)"
        " ON CONFLICT (digest) DO UPDATE SET refs = refs + 1 RETURNING id",
        (chunk.content_digest,),
    )
    roles, kinds = masks(chunk.events)
    first_ms, last_ms = times(chunk.events)
    values: tuple[Any, ...] = (
        row,
        ordinal,
        chunk.start,
        chunk.end,
        content,
        flags_of(chunk),
        roles,
        kinds,
        first_ms,
        last_ms,
        change,
        chunk.memory_id,
        events,
    )
    connection.execute(
        'INSERT INTO chunks (source, ordinal, start, "end", content, flags, roles, kinds,'
        " first_ms, last_ms, born, memory_id, events) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
