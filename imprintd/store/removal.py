"""
Taking things away: whole sources, and what must not come back.

`secure_delete` zeroes freed pages; a truncating checkpoint afterwards leaves
no deleted byte in the files.
"""

from __future__ import annotations

from typing import Final

from imprintd.errors import UsageError
from imprintd.model.snapshot import Stamp
from imprintd.model.source import SourceId
from imprintd.store import chunkrows
from imprintd.store.blockrows import drop_blocks
from imprintd.store.connection import Connection, all_of
from imprintd.store.publish import next_change
from imprintd.store.rows import head_of, plain, source_row
from imprintd.store.schema import new_id

EXCLUSION_KINDS: Final = ("workspace", "project", "source")
FENCE_KINDS: Final = ("delete", "purge")


def delete_source(
    connection: Connection, source: SourceId, kind: str, device: str, now_ms: int
) -> bool:
    """
    Remove a source and put up a fence of that kind; True if there was one.

    A purge fence stands even where nothing was known: nothing comes in later.

    Raises:
        UsageError: No such kind.
    """
    if kind not in FENCE_KINDS:
        raise UsageError(f"a removal is one of {', '.join(FENCE_KINDS)}, not {kind!r}")
    row = source_row(connection, source)
    if row is None and kind == "delete":
        return False
    head = None if row is None else head_of(connection, row)
    change = next_change(connection)
    stamp = head.stamp if head else Stamp(now_ms, 0, device, b"\0" * 32)
    put_fence(connection, kind, source, b"", stamp, device, change, now_ms)
    if row is not None:
        _remove_rows(connection, row, change)
    return row is not None


def delete_workspace(
    connection: Connection, workspace: str, kind: str, device: str, now_ms: int
) -> int:
    """Remove every source of a workspace; returns how many there were."""
    sources = [
        SourceId(workspace, project, key)
        for project, key in all_of(
            connection,
            "SELECT project, key FROM sources WHERE workspace = ? ORDER BY id",
            (plain(workspace),),
        )
    ]
    for source in sources:
        delete_source(connection, source, kind, device, now_ms)
    return len(sources)


def exclude(connection: Connection, kind: str, value: str, now_ms: int, *, excluded: bool) -> None:
    """
    Keep something out, or let it in again; what is stored stays.

    Raises:
        UsageError: No such kind.
    """
    if kind not in EXCLUSION_KINDS:
        raise UsageError(f"an exclusion is one of {', '.join(EXCLUSION_KINDS)}, not {kind!r}")
    held = plain(value).rstrip("/") if kind == "project" else plain(value)
    if excluded:
        connection.execute(
            "INSERT OR IGNORE INTO exclusions (kind, value, created_ms) VALUES (?, ?, ?)",
            (kind, held, now_ms),
        )
    else:
        connection.execute("DELETE FROM exclusions WHERE kind = ? AND value = ?", (kind, held))


def lift_fence(connection: Connection, source: SourceId) -> bool:
    """The user wants a purged or forgotten source again; True if a fence stood."""
    connection.execute(
        "DELETE FROM fences WHERE workspace = ? AND key = ? AND project = ?",
        (plain(source.workspace), plain(source.key), plain(source.project)),
    )
    return bool(connection.changes())


def renew_index_id(connection: Connection) -> str:
    """A new life of the change log."""
    index_id = new_id("i")
    connection.execute("UPDATE device SET index_id = ?", (index_id,))
    return index_id


def put_fence(
    connection: Connection,
    kind: str,
    source: SourceId,
    root: bytes,
    stamp: Stamp,
    device: str,
    change: int,
    now_ms: int,
) -> None:
    """Keep a source, or for `forget` one text of it, from coming back."""
    connection.execute(
        "INSERT OR REPLACE INTO fences (kind, workspace, project, key, root, stamp_ms,"
        " stamp_counter, stamp_device, stamp_digest, change, created_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            kind,
            plain(source.workspace),
            plain(source.project),
            plain(source.key),
            root,
            stamp.update_ms,
            # after what it takes away, whatever the clocks say
            stamp.counter + 1,
            device,
            stamp.digest,
            change,
            now_ms,
        ),
    )


def _remove_rows(connection: Connection, row: int, change: int) -> None:
    drop_blocks(connection, row)
    chunkrows.end_all(connection, row, change)
    connection.execute("DELETE FROM points WHERE scope = ?", (row,))
    for table in ("heads", "alternates", "ledger", "cursors"):
        connection.execute(f"DELETE FROM {table} WHERE source = ?", (row,))  # noqa: S608 - joins constants
    connection.execute("DELETE FROM sources WHERE id = ?", (row,))
    chunkrows.drop_unused_contents(connection)
