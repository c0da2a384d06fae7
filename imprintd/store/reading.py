"""
Reading what is stored: heads, exact text, chunks, cursors, the ledger.

Every method reads one state of the database, whatever is published meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from imprintd.errors import NotKnown, UsageError, VersionReplaced
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import Head
from imprintd.model.source import SourceId
from imprintd.store import texts
from imprintd.store.connection import all_of, first_of, value_of
from imprintd.store.core import StoreCore
from imprintd.store.records import BaseData, Page, StoredBlock, StoredCursor, StoredError
from imprintd.store.rows import (
    CURSOR_COLUMNS,
    HEAD_COLUMNS,
    HEAD_TABLES,
    cursor_from,
    expect_head,
    head_from,
    head_of,
    path_bytes,
    path_text,
    plain,
    plain_or_none,
    source_row,
)
from imprintd.store.spans import unpack_tail

PAGE_CHARS_MIN: Final = 100
PAGE_CHARS_MAX: Final = 12_000
CANDIDATES_SHOWN: Final = 5


class Reading(StoreCore):
    """The read side of the store, apart from feeds for caches."""

    def resolve(self, workspace: str, prefix: str, project: str | None = None) -> Head:
        """
        The source that a unique prefix of its key names; a whole key always names its own.

        Raises:
            NotKnown: Nothing begins so, or it has no full text.
            UsageError: Several do; the message names some of them.
        """
        low = plain(prefix)
        asked = None if project is None else plain(project).rstrip("/") or plain(project)
        with self._reading() as connection:
            found = all_of(
                connection,
                "SELECT id, key, project FROM sources WHERE workspace = :workspace"
                " AND key >= :low AND key < :high AND substr(key, 1, :length) = :low"
                # as people name it: the folder, one above it, or its last names
                " AND (:project IS NULL OR project = :project"
                " OR :project <> '' AND (substr(project, 1, length(:project) + 1) = :project || '/'"
                " OR substr(project, -length(:project) - 1) = '/' || :project))"
                " ORDER BY key <> :low, project IS NOT :project, key, project LIMIT 12",
                {
                    "workspace": plain(workspace),
                    "low": low,
                    "high": low + "\U0010ffff",
                    "length": len(low),
                    "project": asked,
                },
            )
            exact = [row for row in found if row[1] == low]
            candidates = exact or found
            candidates = [row for row in candidates if row[2] == asked] or candidates
            if not candidates:
                raise NotKnown(f"no source begins with {prefix!r}")
            if len(candidates) > 1:
                shown = ", ".join(
                    f"{key} ({where or 'no project'})"
                    for _, key, where in candidates[:CANDIDATES_SHOWN]
                )
                more = " and others" if len(candidates) > CANDIDATES_SHOWN else ""
                raise UsageError(
                    f"{prefix!r} names several sources: {shown}{more}",
                    remedy="give more of the key, or --project",
                )
            head = head_of(connection, candidates[0][0])
        if head is None:
            raise NotKnown(
                f"source {candidates[0][1]!r} has no full text, only separate chunks",
                remedy="learn it again with --force to have its text back",
            )
        return head

    def head(self, source: SourceId) -> Head | None:
        """The head of a source, None if it has none."""
        with self._reading() as connection:
            row = source_row(connection, source)
            return None if row is None else head_of(connection, row)

    def known(self, workspace: str, key: str) -> Head | None:
        """The head of a source key in a workspace, whatever its project; the newest one."""
        with self._reading() as connection:
            row = first_of(
                connection,
                f"SELECT {HEAD_COLUMNS} FROM {HEAD_TABLES} WHERE s.workspace = ? AND s.key = ?"  # noqa: S608 - joins constants
                " ORDER BY h.change DESC LIMIT 1",
                (plain(workspace), plain(key)),
            )
        return head_from(row) if row else None

    def heads(
        self,
        *,
        workspace: str | None = None,
        project: str | None = None,
        client: str | None = None,
        origin: str | None = None,
        changed_after: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Head]:
        """Heads, the latest update first; with `changed_after` in order of change instead."""
        wanted: list[tuple[str, Any]] = [
            (column, plain(value))
            for column, value in (
                ("s.workspace = ?", workspace),
                ("s.project = ?", project),
                ("s.client = ?", client),
                ("h.origin = ?", origin),
            )
            if value is not None
        ]
        if changed_after is not None:
            wanted.append(("h.change > ?", changed_after))
        where = " AND ".join(column for column, _ in wanted) or "1"
        order = "s.updated_ms DESC, h.change DESC" if changed_after is None else "h.change"
        with self._reading() as connection:
            rows = all_of(
                connection,
                f"SELECT {HEAD_COLUMNS} FROM {HEAD_TABLES} WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608 - joins constants
                (*(value for _, value in wanted), -1 if limit is None else limit),
            )
        return map(head_from, rows)

    def sources_without_text(self, workspace: str | None = None) -> list[SourceId]:
        """Sources of which only separate chunks are left."""
        with self._reading() as connection:
            found = all_of(
                connection,
                "SELECT s.workspace, s.project, s.key FROM sources AS s WHERE s.id NOT IN"
                " (SELECT source FROM heads) AND s.workspace = coalesce(?, s.workspace)"
                " ORDER BY s.workspace, s.key, s.project",
                (plain_or_none(workspace),),
            )
        return [SourceId(*row) for row in found]

    def base_of(self, source: SourceId) -> BaseData | None:
        """What learning continues; opens the last blocks only."""
        with self._reading() as connection:
            row = source_row(connection, source)
            head = None if row is None else head_of(connection, row)
            if row is None or head is None:
                return None
            ((packed, state),) = all_of(
                connection, "SELECT tail, state FROM heads WHERE source = ?", (row,)
            )
            tail = unpack_tail(packed)
            return BaseData(
                version=head.version,
                meta=head.meta,
                profile=head.profile,
                learner=head.learner,
                tail=tail,
                coverage=head.coverage,
                open_block=texts.block_at(connection, self._codec, row, tail.closed_blocks),
                open_text=texts.span(
                    connection, self._codec, row, tail.open_start, head.total_chars
                ),
                state=state,
            )

    def reader_state(self, source: SourceId) -> bytes:
        """The reader's continuation stored with the head; empty where there is none."""
        with self._reading() as connection:
            row = source_row(connection, source)
            state: bytes | None = value_of(
                connection, "SELECT state FROM heads WHERE source = ?", (row,)
            )
        return state or b""

    def page(
        self, head: Head, start: int = 0, max_chars: int = 4000, version: str | None = None
    ) -> Page:
        """
        A page of the exact text; opens only the blocks it touches.

        Args:
            head: Names the source; what is read is its head of this moment.
            start: First character, at most the length of the text.
            max_chars: 100 to 12,000.
            version: To continue an earlier page with.

        Raises:
            NotKnown: The source has no full text.
            VersionReplaced: `version` is no longer the head.
            UsageError: A number is out of range.
        """
        if not PAGE_CHARS_MIN <= max_chars <= PAGE_CHARS_MAX:
            raise UsageError(f"a page has {PAGE_CHARS_MIN} to {PAGE_CHARS_MAX:,} characters")
        with self._reading() as connection:
            row, now = expect_head(connection, head.source)
            if version is not None and version != now.version:
                raise VersionReplaced(
                    f"source {head.source.key!r} has a newer version than the one named",
                    remedy="read it again from the start",
                )
            if not 0 <= start <= now.total_chars:
                raise UsageError(f"start can be 0 to {now.total_chars}")
            end = min(start + max_chars, now.total_chars)
            text = texts.span(connection, self._codec, row, start, end)
        more = end if end < now.total_chars else None
        return Page(text, start, more, now.total_chars, now.version)

    def text_of(self, source: SourceId, start: int = 0, end: int | None = None) -> str:
        """
        The exact text of a source, or a span of it.

        Raises:
            NotKnown: The source has no full text.
            IntegrityError: A stored block is damaged.
        """
        with self._reading() as connection:
            row, head = expect_head(connection, source)
            stop = head.total_chars if end is None else min(end, head.total_chars)
            return texts.span(connection, self._codec, row, max(start, 0), stop)

    def text(self, head: Head) -> str:
        """
        The exact text of this very version.

        Raises:
            VersionReplaced: The source has moved on.
            NotKnown, IntegrityError: As for `text_of`.
        """
        with self._reading() as connection:
            row, now = expect_head(connection, head.source)
            if (now.version, now.revision) != (head.version, head.revision):
                raise VersionReplaced(f"source {head.source.key!r} has a newer version")
            return texts.span(connection, self._codec, row, 0, now.total_chars)

    def blocks_of(
        self, head: Head, first: int = 0, count: int | None = None, *, packed: bool = False
    ) -> list[StoredBlock]:
        """
        Blocks of this very version by their places, with their packed bytes if asked for.

        Raises:
            VersionReplaced: The source has moved on.
        """
        with self._reading() as connection:
            row, now = expect_head(connection, head.source)
            if (now.version, now.revision) != (head.version, head.revision):
                raise VersionReplaced(f"source {head.source.key!r} has a newer version")
            return texts.blocks(connection, row, first, count, packed=packed)

    def ledger_counts(self, source: SourceId, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """How often each record key was taken into the text; never: absent."""
        counts: dict[bytes, int] = {}
        with self._reading() as connection:
            row = source_row(connection, source)
            if row is None:
                return counts
            for key in set(keys):
                count: int | None = value_of(
                    connection,
                    "SELECT count FROM ledger WHERE source = ? AND record = ?",
                    (row, key),
                )
                if count is not None:
                    counts[key] = count
        return counts

    def cursor(self, workspace: str, path: str) -> tuple[str, Cursor] | None:
        """Source key and cursor last stored for a path."""
        with self._reading() as connection:
            row = first_of(
                connection,
                f"SELECT {CURSOR_COLUMNS}, s.key FROM cursors AS c JOIN sources AS s"  # noqa: S608 - joins constants
                " ON s.id = c.source WHERE c.workspace = ? AND c.path = ?",
                (plain(workspace), path_bytes(path)),
            )
        return (row[-1], cursor_from(row)) if row else None

    def cursors_of(self, workspace: str, key: str) -> Sequence[Cursor]:
        """All cursors of a source key, whatever paths they were stored for."""
        with self._reading() as connection:
            rows = all_of(
                connection,
                f"SELECT {CURSOR_COLUMNS} FROM cursors WHERE source IN"  # noqa: S608 - joins constants
                " (SELECT id FROM sources WHERE workspace = ? AND key = ?) ORDER BY path",
                (plain(workspace), plain(key)),
            )
        return [cursor_from(row) for row in rows]

    def cursors(self) -> Iterator[StoredCursor]:
        """Every cursor; for what a scan already knows."""
        with self._reading() as connection:
            rows = all_of(
                connection,
                f"SELECT {CURSOR_COLUMNS}, s.workspace, s.project, s.key FROM cursors AS c"  # noqa: S608 - joins constants
                " JOIN sources AS s ON s.id = c.source",
            )
        return (StoredCursor(SourceId(*row[-3:]), cursor_from(row)) for row in rows)

    def errors(self) -> list[StoredError]:
        """Files that could not be learned, the latest first."""
        with self._reading() as connection:
            rows = all_of(
                connection,
                "SELECT path, code, reason, line, message, remedy, at_ms, attempts"
                " FROM source_errors ORDER BY at_ms DESC, path",
            )
        return [StoredError(path_text(row[0]), *row[1:]) for row in rows]

    def setting(self, key: str) -> str | None:
        """A stored setting."""
        with self._reading() as connection:
            value: str | None = value_of(
                connection, "SELECT value FROM settings WHERE key = ?", (key,)
            )
        return value

    def exclusions(self) -> list[tuple[str, str]]:
        """What the user keeps out: (`workspace` | `project` | `source`, value)."""
        with self._reading() as connection:
            return all_of(connection, "SELECT kind, value FROM exclusions ORDER BY kind, value")
