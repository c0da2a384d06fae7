"""
What one publication does to the tables, inside a transaction of the writer.

A new snapshot is a few leading blocks and chunks of the old one and new ones
behind them. Only rows behind the kept part are touched, so that the cost of
an append does not depend on the length of what it continues.
"""

from __future__ import annotations

from typing import Final

from imprintd.errors import IntegrityError, Refused, VersionReplaced
from imprintd.model.snapshot import (
    BLOCK_BYTES_MAX,
    MANIFEST_ENTRIES_MAX,
    TEXT_BYTES_MAX,
    Head,
    SnapshotUpdate,
    Stamp,
)
from imprintd.model.source import SourceId
from imprintd.store import blockrows, chunkrows, pointrows
from imprintd.store.connection import Connection, all_of, first_of, value_of
from imprintd.store.rows import (
    CURSOR_COLUMNS,
    cursor_values,
    head_of,
    plain,
    plain_or_none,
    source_row,
)
from imprintd.store.spans import pack_coverage, pack_tail

ERASED_SETTING: Final = "erased_change"
"""Setting: the last change that took text away for good without a fence."""

KEY_CHARS_MAX: Final = 1024
PROJECT_CHARS_MAX: Final = 8192
TITLE_CHARS_MAX: Final = 4096
STATE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longer ones come from a broken reader or a hostile peer."""


def publish(
    connection: Connection, update: SnapshotUpdate, rules: str | None, device: str, now_ms: int
) -> Head:
    """
    Put one update in place of its base.

    Args:
        rules: Fingerprint of the active model's rules; None without a model.
        device: This device.
        now_ms: Wall clock, for `first_seen_ms` only.

    Returns:
        The head as it is now; the old one when nothing of the text changed.

    Raises:
        VersionReplaced: The head is no longer the base.
        Refused: A limit, an exclusion or a purge fence forbids it.
        IntegrityError: The update contradicts itself or its base.
    """
    _admit(connection, update)
    row = source_row(connection, update.source)
    head = head_of(connection, row) if row is not None else None
    _check_base(update, head)
    learned_again = _is_learned_again(update, head, device)
    _check_shape(update, head)
    if head is not None and row is not None and _is_same(update, head):
        saved = _save_quietly(connection, update, row, head, learned_again=learned_again)
        _save_points(connection, update, row, device)
        return saved
    change = next_change(connection)
    row = _save_source(connection, update, row, now_ms)
    blocks = blockrows.replace_blocks(connection, row, update)
    chunkrows.replace_from(
        connection, row, update.keep_chunks, update.chunks, change, update.total_chars
    )
    if head is None:
        # separate chunks of a source whose full text is back
        connection.execute(
            "DELETE FROM legacy_texts WHERE chunk IN (SELECT id FROM chunks WHERE source = ?)",
            (row,),
        )
    _save_head(connection, row, update, head, change, device, blocks)
    _save_progress(connection, row, update, learned_again=learned_again)
    _save_points(connection, update, row, device)
    pointrows.owe(connection, row, change, rules, update.meta.updated_ms)
    chunkrows.drop_unused_contents(connection)
    if head is not None and head.profile != update.profile and head.root != update.root:
        # a stricter redaction took text away: caches of words must not keep it
        note_erasure(connection, change)
    new = head_of(connection, row)
    assert new is not None
    return new


def next_change(connection: Connection) -> int:
    """Give out the next change number; it is durable with this transaction or never was."""
    number: int = value_of(connection, "UPDATE device SET change = change + 1 RETURNING change")
    return number


def save_cursor(connection: Connection, row: int, workspace: str, update: SnapshotUpdate) -> None:
    """Remember how far the file behind an update has been read."""
    if update.cursor is not None:
        connection.execute(
            f"INSERT OR REPLACE INTO cursors (workspace, source, {CURSOR_COLUMNS})"  # noqa: S608 - joins constants
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (plain(workspace), row, *cursor_values(update.cursor)),
        )


def note_erasure(connection: Connection, change: int) -> None:
    """Say that a change took text away for good that no fence speaks of."""
    connection.execute(
        "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)",
        (ERASED_SETTING, str(change)),
    )


def is_excluded(connection: Connection, source: SourceId) -> bool:
    """Whether the user keeps this source out: its workspace, a folder above it, or itself."""
    parts = plain(source.project).rstrip("/").split("/")
    folders = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    values = [("workspace", plain(source.workspace)), ("source", plain(source.key))]
    values += [("project", folder) for folder in folders if folder]
    return any(
        first_of(connection, "SELECT 1 FROM exclusions WHERE kind = ? AND value = ?", pair)
        for pair in values
    )


def _admit(connection: Connection, update: SnapshotUpdate) -> None:
    if update.total_bytes > TEXT_BYTES_MAX:
        raise Refused("the text is larger than 64 MiB", reason="text-too-large")
    if update.keep_chunks + len(update.chunks) > MANIFEST_ENTRIES_MAX:
        raise Refused("the manifest has too many entries", reason="too-many-chunks")
    if _is_oversized(update):
        raise Refused("a name, a title or the state of the reader is too long", reason="too-long")
    if is_excluded(connection, update.source):
        raise Refused("the user excluded this source", reason="excluded")
    source = update.source
    fences = all_of(
        connection,
        "SELECT kind, root FROM fences WHERE workspace = ? AND key = ? AND project = ?",
        (plain(source.workspace), plain(source.key), plain(source.project)),
    )
    for kind, root in fences:
        if kind == "purge":
            raise Refused("this source was purged", reason="purged")
        if kind == "forget" and root == update.root:
            raise Refused("a part of this text was deleted on purpose", reason="forgotten")


def _is_oversized(update: SnapshotUpdate) -> bool:
    source, meta = update.source, update.meta
    keys = (source.workspace, source.key, meta.client, meta.parent or "", meta.language or "")
    return (
        max(map(len, keys)) > KEY_CHARS_MAX
        or len(source.project) > PROJECT_CHARS_MAX
        or len(meta.title) > TITLE_CHARS_MAX
        or len(update.state) > STATE_BYTES_MAX
    )


def _check_base(update: SnapshotUpdate, head: Head | None) -> None:
    held = head.version if head else None
    if update.base_version != held:
        raise VersionReplaced(
            f"source {update.source.key!r} changed while it was being learned",
            remedy="learn it again",
        )


def _is_learned_again(update: SnapshotUpdate, head: Head | None, device: str) -> bool:
    """Whether a newer learner here read the source from its first byte: its ledger starts over."""
    return (
        head is not None
        and update.learner > head.learner
        and update.origin in {None, device}
        and update.keep_blocks == update.keep_chunks == 0
    )


def _check_shape(update: SnapshotUpdate, head: Head | None) -> None:
    kept_blocks, kept_chunks = (head.blocks, head.chunks) if head else (0, 0)
    wrong = (
        not 0 <= update.keep_blocks <= kept_blocks
        or not 0 <= update.keep_chunks <= kept_chunks
        or any(not 0 < block.size <= BLOCK_BYTES_MAX for block in update.blocks)
        or len(update.version) != 32
    )
    at = 0
    for number, chunk in enumerate(update.chunks):
        follows = number > 0 or update.keep_chunks == 0
        wrong = wrong or not chunk.start < chunk.end or (follows and chunk.start > at)
        at = chunk.end
    reached = at if update.chunks else update.total_chars
    if wrong or reached != update.total_chars:
        raise IntegrityError(f"an update of {update.source.key!r} contradicts itself")


def _is_same(update: SnapshotUpdate, head: Head) -> bool:
    return (
        update.root == head.root
        and update.manifest_root == head.manifest_root
        and update.profile == head.profile
        and update.learner == head.learner
        and update.version == head.version
    )


def _save_quietly(
    connection: Connection, update: SnapshotUpdate, row: int, head: Head, *, learned_again: bool
) -> Head:
    """Same text, same manifest: no new version; but how far we read is remembered."""
    connection.execute(
        "UPDATE heads SET coverage = ?, tail = ?, state = ? WHERE source = ?",
        (pack_coverage(update.coverage), pack_tail(update.tail), update.state, row),
    )
    if update.meta != head.meta:
        # what is filtered by changed: caches and peers have to hear of it
        _save_source(connection, update, row, 0)
        connection.execute(
            "UPDATE heads SET change = ? WHERE source = ?", (next_change(connection), row)
        )
    _save_progress(connection, row, update, learned_again=learned_again)
    saved = head_of(connection, row)
    assert saved is not None
    return saved


def _save_source(
    connection: Connection, update: SnapshotUpdate, row: int | None, now_ms: int
) -> int:
    meta = update.meta
    described = (
        plain(meta.client),
        plain(meta.title),
        plain_or_none(meta.parent),
        plain_or_none(meta.language),
        meta.updated_ms,
    )
    if row is not None:
        connection.execute(
            "UPDATE sources SET client = ?, title = ?, parent = ?, language = ?, updated_ms = ?"
            " WHERE id = ?",
            (*described, row),
        )
        return row
    source = update.source
    new: int = value_of(
        connection,
        "INSERT INTO sources (client, title, parent, language, updated_ms, workspace, key,"
        " project, first_seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            *described,
            plain(source.workspace),
            plain(source.key),
            plain(source.project),
            now_ms,
        ),
    )
    return new


def _save_head(
    connection: Connection,
    row: int,
    update: SnapshotUpdate,
    head: Head | None,
    change: int,
    device: str,
    blocks: int,
) -> None:
    stamp = update.stamp or ratcheted(update, head, device)
    connection.execute(
        "INSERT OR REPLACE INTO heads (source, version, revision, profile, learner, stamp_ms,"
        " stamp_counter, stamp_device, stamp_digest, origin, change, blocks, chunks, chars,"
        " bytes, events, root, manifest_root, coverage, tail, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row,
            update.version,
            head.revision + 1 if head else 1,
            update.profile,
            update.learner,
            stamp.update_ms,
            stamp.counter,
            stamp.device,
            stamp.digest,
            update.origin or device,
            change,
            blocks,
            update.keep_chunks + len(update.chunks),
            update.total_chars,
            update.total_bytes,
            update.events,
            update.root,
            update.manifest_root,
            pack_coverage(update.coverage),
            pack_tail(update.tail),
            update.state,
        ),
    )


def ratcheted(update: SnapshotUpdate, head: Head | None, device: str) -> Stamp:
    """
    The stamp of a snapshot made here: after the one it was made upon, whatever the clocks say.
    """
    observed = head.stamp.update_ms if head else update.meta.updated_ms
    update_ms = max(update.meta.updated_ms, observed)
    counter = head.stamp.counter + 1 if head and update_ms == observed else 0
    return Stamp(update_ms, counter, device, update.root)


def _save_points(connection: Connection, update: SnapshotUpdate, row: int, device: str) -> None:
    scope = 0 if update.origin in {None, device} else row
    pointrows.add(connection, update.points, scope)


def _save_progress(
    connection: Connection, row: int, update: SnapshotUpdate, *, learned_again: bool
) -> None:
    save_cursor(connection, row, update.source.workspace, update)
    if learned_again:
        connection.execute("DELETE FROM ledger WHERE source = ?", (row,))
    connection.executemany(
        "INSERT INTO ledger (source, record, count) VALUES (?, ?, 1)"
        " ON CONFLICT (source, record) DO UPDATE SET count = count + 1",
        [(row, key) for key in update.record_keys],
    )
