"""
The write side of the store: every call returns when it is durable.

`submit_*` gives a future instead, for code that must not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from imprintd.errors import SourceError
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import Head, Point, SnapshotUpdate
from imprintd.model.source import SourceId
from imprintd.store import forgetting, pointrows, removal
from imprintd.store.connection import Connection, checkpoint
from imprintd.store.feed import DIED_FLOOR, Feeds
from imprintd.store.publish import publish
from imprintd.store.records import OwedContent
from imprintd.store.rows import CURSOR_COLUMNS, cursor_values, path_bytes, plain, source_row

ERROR_CHARS_MAX = 500
"""Longer messages and remedies are cut before they are stored."""


class Writing(Feeds):
    """
    What changes the database.

    Attributes:
        erasure_pending: Deleted bytes may still lie in the log, because a
            reader was in the way; `checkpoint(truncate=True)` tries again.
    """

    erasure_pending: bool = False

    def publish(self, updates: Sequence[SnapshotUpdate], rules: str | None) -> list[Head]:
        """
        Put snapshots in place of their bases, all in one transaction.

        Args:
            rules: Rules fingerprint of the active model: contents without all
                their points under it become owed. None: no model; they are
                owed all the same, under whatever model comes first.

        Raises:
            VersionReplaced: A head is no longer the base; nothing was changed.
            Refused: A limit, an exclusion or a purge fence; nothing was changed.
            IntegrityError: An update contradicts itself; nothing was changed.
            ResourceError: Disk full or the like; nothing was changed.
        """
        return self._writer.run(self._publication(updates, rules))

    def submit_publish(
        self, updates: Sequence[SnapshotUpdate], rules: str | None
    ) -> Future[list[Head]]:
        """`publish`, later."""
        return self._writer.submit(self._publication(updates, rules))

    def add_points(self, points: Sequence[Point]) -> None:
        """
        Store vectors computed here; contents with all their windows are owed no more.

        Points of contents that no chunk says any more are passed over.
        """
        self._writer.run(lambda connection: pointrows.add(connection, points))

    def submit_points(self, points: Sequence[Point]) -> Future[None]:
        """`add_points`, later."""
        return self._writer.submit(lambda connection: pointrows.add(connection, points))

    def take_owed(self, rules: str, limit: int) -> list[OwedContent]:
        """
        Contents that lack vectors, the most useful first; stays owed until points come.

        Args:
            rules: The active model's. New ones make everything owed that lacks
                vectors under them.
        """
        self.activate_rules(rules)
        return self._take_owed(limit)

    def activate_rules(self, rules: str) -> None:
        """Make some rules the active ones; cheap when they are already."""
        with self._reading() as connection:
            active = pointrows.active_rules(connection)
        if active != rules:
            self._writer.run(lambda connection: pointrows.activate(connection, rules))

    def settle_owed(self, digests: Iterable[bytes]) -> None:
        """Contents that give no (more) vectors under the active rules are owed no more."""
        wanted = list(digests)
        self._writer.run(lambda connection: pointrows.settle(connection, wanted))

    def drop_rules(self, rules: str) -> int:
        """Delete the vectors made under rules that are no longer used; returns how many."""
        return self._writer.run(lambda connection: pointrows.drop_rules(connection, rules))

    def save_cursor(self, source: SourceId, cursor: Cursor) -> None:
        """Remember where a file stands whose text did not change."""

        def task(connection: Connection) -> None:
            row = source_row(connection, source)
            if row is not None:
                connection.execute(
                    f"INSERT OR REPLACE INTO cursors (workspace, source, {CURSOR_COLUMNS})"  # noqa: S608 - joins constants
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (plain(source.workspace), row, *cursor_values(cursor)),
                )

        self._writer.run(task)

    def drop_cursor(self, workspace: str, path: str) -> None:
        """Forget how far a file was read; nothing that was learned goes."""
        self._writer.run(
            lambda connection: connection.execute(
                "DELETE FROM cursors WHERE workspace = ? AND path = ?",
                (plain(workspace), path_bytes(path)),
            )
        )

    def record_error(
        self,
        path: str,
        *,
        code: str,
        reason: str,
        message: str,
        remedy: str = "",
        line: int | None = None,
    ) -> None:
        """Keep why a file could not be learned; the same again counts attempts."""
        now_ms = self._clock.wall_ms()
        texts = (plain(message)[:ERROR_CHARS_MAX], plain(remedy)[:ERROR_CHARS_MAX])
        self._writer.run(
            lambda connection: connection.execute(
                "INSERT INTO source_errors (path, code, reason, line, message, remedy, at_ms,"
                " attempts) VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (path) DO UPDATE SET"
                " attempts = CASE WHEN reason = excluded.reason AND line IS excluded.line"
                " THEN attempts + 1 ELSE 1 END, code = excluded.code, reason = excluded.reason,"
                " line = excluded.line, message = excluded.message, remedy = excluded.remedy,"
                " at_ms = excluded.at_ms",
                (path_bytes(path), plain(code), plain(reason), line, *texts, now_ms),
            )
        )

    def record_failure(self, path: str, error: SourceError) -> None:
        """`record_error` from the error itself."""
        self.record_error(
            path,
            code=error.code,
            reason=error.reason,
            message=error.message,
            remedy=error.remedy,
            line=error.line,
        )

    def clear_error(self, path: str) -> bool:
        """The file is well again; True if something was recorded."""
        held = path_bytes(path)
        with self._reading() as connection:
            # the common case costs no write
            if not connection.execute(
                "SELECT 1 FROM source_errors WHERE path = ?", (held,)
            ).fetchone():
                return False
        self._writer.run(
            lambda connection: connection.execute(
                "DELETE FROM source_errors WHERE path = ?", (held,)
            )
        )
        return True

    def set_setting(self, key: str, value: str | None) -> None:
        """Store a setting; None removes it."""
        self._writer.run(
            lambda connection: connection.execute(
                "DELETE FROM settings WHERE key = ?"
                if value is None
                else "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)",
                (key,) if value is None else (key, plain(value)),
            )
        )

    def delete_source(self, source: SourceId, *, kind: str = "delete") -> bool:
        """
        Remove a source: text, chunks, vectors, ledger, cursors.

        Args:
            kind: `delete` may come back when it changes; `purge` never does.

        Returns:
            Whether there was anything.
        """
        now_ms = self._clock.wall_ms()
        known = self._writer.run(
            lambda connection: removal.delete_source(connection, source, kind, self.device, now_ms)
        )
        self._erase()
        return known

    def delete_workspace(self, workspace: str, *, kind: str = "delete") -> int:
        """Remove every source of a workspace, one transaction for all; returns how many."""
        now_ms = self._clock.wall_ms()
        count = self._writer.run(
            lambda connection: removal.delete_workspace(
                connection, workspace, kind, self.device, now_ms
            )
        )
        self._erase()
        return count

    def forget_memory(self, workspace: str, memory_id: str) -> SourceId:
        """
        Delete one chunk for good, and the snapshot that would show its text.

        The other chunks of the source stay, without what overlapped it. The
        same text does not come back before `lift_fence`; a changed one does.

        Returns:
            The source, which has no full text now.

        Raises:
            NotKnown: No chunk has that id.
        """
        now_ms = self._clock.wall_ms()
        source = self._writer.run(
            lambda connection: forgetting.forget_memory(
                connection, self._codec, workspace, memory_id, self.device, now_ms
            )
        )
        self._erase()
        return source

    def lift_fence(self, source: SourceId) -> bool:
        """The user wants a purged or forgotten source again; True if a fence stood."""
        return self._writer.run(lambda connection: removal.lift_fence(connection, source))

    def exclude(self, kind: str, value: str, *, excluded: bool = True) -> None:
        """Keep a `workspace`, `project` folder or `source` key out from now on, or no longer."""
        now_ms = self._clock.wall_ms()
        self._writer.run(
            lambda connection: removal.exclude(connection, kind, value, now_ms, excluded=excluded)
        )

    def forget_died(self, change: int) -> int:
        """
        Drop what is remembered of chunks that died up to a change all caches are past.

        A cache that stands before `died_floor()` cannot catch up: it begins anew.

        Returns:
            How many rows were dropped.
        """

        def task(connection: Connection) -> int:
            connection.execute("DELETE FROM died WHERE change <= ?", (change,))
            dropped = int(connection.changes())
            connection.execute(
                "INSERT INTO settings (key, value) VALUES (:key, :change) ON CONFLICT (key)"
                " DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(:change AS INTEGER))",
                {"key": DIED_FLOOR, "change": str(change)},
            )
            return dropped

        return self._writer.run(task)

    def renew_index_id(self) -> str:
        """A restored database begins a new life of its change log; returns the new id."""
        self.index_id = self._writer.run(removal.renew_index_id)
        return self.index_id

    def checkpoint(self, *, truncate: bool = False) -> bool:
        """
        Move the log into the database file.

        With `truncate` readers are waited for and the log ends empty: after
        that no deleted text is left in either file.

        Returns:
            Whether nothing is left in the log.
        """
        emptied = self._writer.run(
            lambda connection: checkpoint(connection, truncate=truncate), transaction=False
        )
        if truncate and emptied:
            self.erasure_pending = False
        return emptied

    def _erase(self) -> None:
        """Leave nothing of what was deleted in the log, or remember that some is left."""
        self.erasure_pending = True
        self.checkpoint(truncate=True)

    def _publication(
        self, updates: Sequence[SnapshotUpdate], rules: str | None
    ) -> Callable[[Connection], list[Head]]:
        now_ms = self._clock.wall_ms()

        def task(connection: Connection) -> list[Head]:
            return [publish(connection, update, rules, self.device, now_ms) for update in updates]

        return task
