"""
What exchange with peers needs of the store besides `publish` and reading.

A received version keeps the stamp and the origin it came with. Where local
redaction changed its text, the description it was offered under stays with
the head, so that it is still the same version on every device.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import msgpack

from imprintd.errors import VersionReplaced
from imprintd.model.snapshot import Head, Point, SnapshotUpdate, Stamp
from imprintd.model.source import SourceId
from imprintd.store.connection import Connection, all_of, value_of
from imprintd.store.publish import is_excluded, next_change, publish
from imprintd.store.rows import expect_head, head_of, plain, source_row
from imprintd.store.store import Store
from imprintd.store.texts import blocks as blocks_at

ALTERNATES_MAX: Final = 8
"""Alternates kept for one source; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class Alternate:
    """A concurrent version that lost: which one, and its packed blocks in order."""

    source: SourceId
    version: str
    stamp: Stamp
    origin: str
    kept_ms: int
    packed: tuple[bytes, ...]


class Exchange:
    """
    A store, seen by the exchange with peers.

    Args:
        store: Opened for writing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(
        self,
        update: SnapshotUpdate,
        rules: str | None,
        *,
        expected: Stamp | None,
        keep_alternate: bool,
        offered: bytes | None,
        now_ms: int,
    ) -> Head:
        """
        Put a received version in place of the head it was judged against.

        One transaction: the alternate, the snapshot, its points, its stamp.

        Args:
            update: With `stamp` and `origin` set.
            rules: As for `Store.publish`.
            expected: Stamp of the head it was judged against, None: no head.
            keep_alternate: Keep the replaced head as an alternate.
            offered: How the origin described the version, where local
                redaction changed it; else None.
            now_ms: Wall clock.

        Raises:
            VersionReplaced: The head is another one by now; nothing changed.
            Refused, IntegrityError, ResourceError: As for `Store.publish`.
        """
        assert update.stamp is not None
        stamp = update.stamp
        store = self._store

        def task(connection: Connection) -> Head:
            row = source_row(connection, update.source)
            head = None if row is None else head_of(connection, row)
            if (None if head is None else head.stamp) != expected:
                raise VersionReplaced(f"source {update.source.key!r} changed meanwhile")
            if keep_alternate and row is not None and head is not None:
                _keep(connection, row, head, now_ms)
            new = publish(connection, update, rules, store.device, now_ms)
            if new.stamp != stamp:
                # the same text and manifest: publishing left the head as it was
                new = _restamp(connection, new, stamp)
            if offered is not None:
                connection.execute(
                    "UPDATE heads SET origin_root = ?, origin_blocks = ? WHERE source = ?",
                    (stamp.digest, offered, source_row(connection, update.source)),
                )
            return new

        return store._writer.run(task)  # noqa: SLF001 - same room

    def restamp(self, source: SourceId, stamp: Stamp, *, expected: Stamp) -> Head:
        """
        Give a head, unchanged, another stamp and a change number of its own.

        Raises:
            VersionReplaced: The head has another stamp by now.
            NotKnown: There is no head.
        """

        def task(connection: Connection) -> Head:
            _, head = expect_head(connection, source)
            if head.stamp != expected:
                raise VersionReplaced(f"source {source.key!r} changed meanwhile")
            return _restamp(connection, head, stamp)

        return self._store._writer.run(task)  # noqa: SLF001 - same room

    def held(self, workspace: str, digests: Collection[bytes]) -> set[bytes]:
        """Which blocks some source of a workspace has."""
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            return {
                digest for digest in digests if _packed(connection, workspace, digest) is not None
            }

    def block(self, workspace: str, digest: bytes) -> bytes | None:
        """
        Plain bytes of a block that some source of a workspace has.

        Raises:
            IntegrityError: It is damaged.
        """
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            packed = _packed(connection, workspace, digest)
        return None if packed is None else self._store._codec.unpack(packed, digest)  # noqa: SLF001

    def refusal(self, source: SourceId, stamp: Stamp, root: bytes) -> str | None:
        """
        Why a version of a peer is not wanted; None if it may come.

        `excluded` or `purged` whatever it is, `forgotten` for this very text,
        `deleted` unless it is newer than what was deleted.
        """
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            if is_excluded(connection, source):
                return "excluded"
            fences = all_of(
                connection,
                "SELECT kind, root, stamp_ms, stamp_counter, stamp_device, stamp_digest"
                " FROM fences WHERE workspace = ? AND key = ? AND project = ?",
                (plain(source.workspace), plain(source.key), plain(source.project)),
            )
        for kind, fenced, *until in fences:
            if kind == "purge":
                return "purged"
            if kind == "forget" and fenced in {root, stamp.digest}:
                return "forgotten"
            if kind == "delete" and stamp <= Stamp(*until):
                return "deleted"
        return None

    def offered(self, source: SourceId) -> bytes | None:
        """How the origin described a head whose text was redacted further here."""
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            found: bytes | None = value_of(
                connection,
                "SELECT origin_blocks FROM heads WHERE source = ?",
                (source_row(connection, source),),
            )
        return found

    def points(self, source: SourceId, digest: bytes, rules: str) -> list[Point]:
        """Vectors of one content that count for a source, the locally made ones first."""
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            rows = all_of(
                connection,
                "SELECT p.window, p.windows, p.vector FROM points AS p"
                " JOIN contents AS k ON k.id = p.content JOIN rules AS r ON r.id = p.rules"
                " WHERE k.digest = ? AND r.fingerprint = ? AND p.scope IN (0, ?)"
                " ORDER BY p.scope, p.window",
                (digest, rules, source_row(connection, source) or 0),
            )
        best: dict[int, Point] = {}
        for window, windows, vector in rows:
            best.setdefault(window, Point(digest, window, windows, rules, vector))
        return list(best.values())

    def alternates(self, source: SourceId) -> list[Alternate]:
        """Concurrent versions of a source that lost, the newest stamp first."""
        with self._store._reading() as connection:  # noqa: SLF001 - same room
            rows = all_of(
                connection,
                "SELECT version, stamp_ms, stamp_counter, stamp_device, stamp_digest, origin,"
                " kept_ms, body FROM alternates WHERE source = ?"
                " ORDER BY stamp_ms DESC, stamp_counter DESC",
                (source_row(connection, source),),
            )
        return [
            Alternate(source, row[0], Stamp(*row[1:5]), row[5], row[6], tuple(_unpacked(row[7])))
            for row in rows
        ]


def _restamp(connection: Connection, head: Head, stamp: Stamp) -> Head:
    change = next_change(connection)
    connection.execute(
        "UPDATE heads SET stamp_ms = ?, stamp_counter = ?, stamp_device = ?, stamp_digest = ?,"
        " change = ? WHERE source = ?",
        (
            stamp.update_ms,
            stamp.counter,
            plain(stamp.device),
            stamp.digest,
            change,
            source_row(connection, head.source),
        ),
    )
    return replace(head, stamp=stamp, change=change)


def _keep(connection: Connection, row: int, head: Head, now_ms: int) -> None:
    packed = [block.packed for block in blocks_at(connection, row, 0, None, packed=True)]
    connection.execute(
        "INSERT OR REPLACE INTO alternates (source, version, stamp_ms, stamp_counter,"
        " stamp_device, stamp_digest, origin, kept_ms, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row,
            head.version,
            head.stamp.update_ms,
            head.stamp.counter,
            plain(head.stamp.device),
            head.stamp.digest,
            plain(head.origin),
            now_ms,
            msgpack.packb(packed, use_bin_type=True),
        ),
    )
    connection.execute(
        "DELETE FROM alternates WHERE source = ? AND id NOT IN"
        " (SELECT id FROM alternates WHERE source = ? ORDER BY kept_ms DESC, id DESC LIMIT ?)",
        (row, row, ALTERNATES_MAX),
    )


def _unpacked(body: bytes) -> list[Any]:
    found: list[Any] = msgpack.unpackb(body, raw=False)
    return found


def _packed(connection: Connection, workspace: str, digest: bytes) -> bytes | None:
    found: bytes | None = value_of(
        connection,
        "SELECT b.packed FROM blocks AS b WHERE b.digest = ? AND EXISTS"
        " (SELECT 1 FROM snapshot_blocks AS n JOIN sources AS s ON s.id = n.source"
        "  WHERE n.block = b.id AND s.workspace = ?)",
        (digest, plain(workspace)),
    )
    return found
