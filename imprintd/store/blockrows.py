"""
Blocks of snapshots: kept once, counted by reference, gone with their last user.
"""

from __future__ import annotations

from collections.abc import Sequence

from imprintd.errors import IntegrityError
from imprintd.model.snapshot import Block, SnapshotUpdate
from imprintd.store.connection import Connection, value_of


def replace_blocks(connection: Connection, row: int, update: SnapshotUpdate) -> int:
    """Replace the blocks behind the kept ones; returns how many there are now."""
    old = _take_blocks(connection, row, update.keep_blocks)
    start = _end_of(connection, row, update.keep_blocks)
    ids = [_reference(connection, block) for block in update.blocks]
    # freed before new ones are written: their pages are used again at once
    drop_unused_blocks(connection, old)
    for number, block in enumerate(update.blocks):
        held = ids[number]
        if held is None:
            held = _insert_block(connection, block)
        connection.execute(
            "INSERT INTO snapshot_blocks (source, position, block, start) VALUES (?, ?, ?, ?)",
            (row, update.keep_blocks + number, held, start),
        )
        start += block.chars
    if start != update.total_chars:
        raise IntegrityError(f"the blocks of {update.source.key!r} do not add up to its text")
    return update.keep_blocks + len(update.blocks)


def _take_blocks(connection: Connection, row: int, keep: int) -> Sequence[int]:
    old = [
        number
        for (number,) in connection.execute(
            "DELETE FROM snapshot_blocks WHERE source = ? AND position >= ? RETURNING block",
            (row, keep),
        )
    ]
    connection.executemany(
        "UPDATE blocks SET refs = refs - 1 WHERE id = ?", [(number,) for number in old]
    )
    return old


def drop_blocks(connection: Connection, row: int) -> None:
    """Let go of every block of a source."""
    drop_unused_blocks(connection, _take_blocks(connection, row, 0))


def drop_unused_blocks(connection: Connection, candidates: Sequence[int]) -> None:
    """Delete those of some blocks that nothing refers to any more."""
    connection.executemany(
        "DELETE FROM blocks WHERE id = ? AND refs = 0", [(number,) for number in candidates]
    )


def _end_of(connection: Connection, row: int, keep: int) -> int:
    if not keep:
        return 0
    end: int | None = value_of(
        connection,
        "SELECT s.start + b.chars FROM snapshot_blocks AS s JOIN blocks AS b ON b.id = s.block"
        " WHERE s.source = ? AND s.position = ?",
        (row, keep - 1),
    )
    if end is None:
        raise IntegrityError("a block that an update continues is missing")
    return end


def _reference(connection: Connection, block: Block) -> int | None:
    found: int | None = value_of(
        connection,
        "UPDATE blocks SET refs = refs + 1 WHERE digest = ? RETURNING id",
        (block.digest,),
    )
    return found


def _insert_block(connection: Connection, block: Block) -> int:
    number: int = value_of(
        connection,
        "INSERT INTO blocks (digest, chars, size, refs, packed) VALUES (?, ?, ?, 1, ?)"
        " ON CONFLICT (digest) DO UPDATE SET refs = refs + 1 RETURNING id",
        (block.digest, block.chars, block.size, block.packed),
    )
    return number
