"""
What caches and peers follow: the change number and what lies behind it.

A cache that stands at change n asks for the rows born and died after n and
then stands at `change()` as it was before it asked. Pages continue by row
number, since one change may bear many rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from imprintd.errors import NotKnown
from imprintd.model.snapshot import Head
from imprintd.model.source import SourceId
from imprintd.store import pointrows
from imprintd.store.connection import Connection, all_of, value_of
from imprintd.store.core import StoreCore
from imprintd.store.records import ChunkRow, DeadChunk, Fence, OwedContent, PointRow
from imprintd.store.rows import CODE, LONG_EVENT, expect_head, plain
from imprintd.store.texts import TextWindow

_CHUNK_COLUMNS: Final = (
    "c.id, c.source, s.workspace, s.project, s.key, s.client, coalesce(h.origin, ''), s.language,"
    " s.title, s.updated_ms, coalesce(h.version, ''), c.ordinal, c.memory_id, c.start, c.\"end\","
    " k.digest, c.flags, c.events, c.roles, c.kinds, c.first_ms, c.last_ms, c.born"
)
_CHUNK_TABLES: Final = (
    "chunks AS c JOIN contents AS k ON k.id = c.content JOIN sources AS s ON s.id = c.source"
    " LEFT JOIN heads AS h ON h.source = c.source"
)
_POINT_COLUMNS: Final = (
    "p.id, p.content, k.digest, p.window, p.windows, r.fingerprint, p.scope, p.vector"
)
_POINT_TABLES: Final = (
    "points AS p JOIN contents AS k ON k.id = p.content JOIN rules AS r ON r.id = p.rules"
)


DIED_FLOOR: Final = "died_floor"


class Feeds(StoreCore):
    """Rows for search, for embedding and for exchange with peers."""

    def change(self) -> int:
        """The last committed change number."""
        with self._reading() as connection:
            return _number(connection, "SELECT change FROM device")

    def chunks_born_after(
        self, change: int, limit: int, *, after_row: int = 0, content: bool = True
    ) -> list[ChunkRow]:
        """
        Live chunks born after a change, oldest row first.

        Args:
            after_row: Where the page before ended.
            content: Read the text of each.
        """
        return self._chunks(
            # rows are numbered in the order of changes: the first one is where to begin
            "c.id >= (SELECT id FROM chunks WHERE born > ? ORDER BY born, id LIMIT 1)"
            " AND c.id > ? ORDER BY c.id LIMIT ?",
            (change, after_row, limit),
            content,
        )

    def chunks_died_after(self, change: int, limit: int, *, after_row: int = 0) -> list[DeadChunk]:
        """Chunk rows that ended after a change, by row; a cache may never have had them."""
        with self._reading() as connection:
            return [
                DeadChunk(row, ended)
                for row, ended in connection.execute(
                    "SELECT chunk, change FROM died WHERE change > ? AND chunk > ?"
                    " ORDER BY chunk LIMIT ?",
                    (change, after_row, limit),
                )
            ]

    def died_floor(self) -> int:
        """Deaths up to this change are forgotten: a cache that stands before it begins anew."""
        with self._reading() as connection:
            floor = value_of(connection, "SELECT value FROM settings WHERE key = ?", (DIED_FLOOR,))
        return int(floor or 0)

    def chunk_rows(
        self, head: Head, first: int = 0, count: int | None = None, *, content: bool = False
    ) -> list[ChunkRow]:
        """
        Chunks of a source in manifest order, from an ordinal on.

        Raises:
            NotKnown: The source has no full text.
        """
        with self._reading() as connection:
            row, _ = expect_head(connection, head.source)
            return self._chunks(
                "c.source = ? AND c.ordinal >= ? ORDER BY c.ordinal LIMIT ?",
                (row, first, -1 if count is None else count),
                content,
            )

    def chunks_of(self, source_row: int, *, content: bool = False) -> list[ChunkRow]:
        """Chunks of a source row, with or without a snapshot."""
        return self._chunks("c.source = ? ORDER BY c.ordinal", (source_row,), content)

    def chunk_by_memory_id(self, workspace: str, memory_id: str) -> ChunkRow:
        """
        The live chunk with that id, its content included.

        Raises:
            NotKnown: There is none (any more).
        """
        found = self._chunks(
            "c.memory_id = ? AND s.workspace = ? LIMIT 1",
            (plain(memory_id), plain(workspace)),
            True,
        )
        if not found:
            raise NotKnown(
                "no memory has that id", remedy="its source may have changed: search again"
            )
        return found[0]

    def chunks_by_row(self, rows: Sequence[int], *, content: bool = False) -> list[ChunkRow]:
        """Those of some rows that are live, in no special order."""
        with self._reading():
            return [
                chunk
                for part in _parts(rows)
                for chunk in self._chunks(f"c.id IN ({_marks(part)})", part, content)
            ]

    def chunks_of_contents(
        self, contents: Sequence[int], *, content: bool = False
    ) -> list[ChunkRow]:
        """Every live chunk that says one of some contents (see `PointRow.content`)."""
        with self._reading():
            return [
                chunk
                for part in _parts(contents)
                for chunk in self._chunks(f"c.content IN ({_marks(part)})", part, content)
            ]

    def content_of(self, chunk: ChunkRow) -> str:
        """
        Exact text of a chunk.

        Raises:
            NotKnown: It is no longer live.
        """
        found = self._chunks("c.id = ?", (chunk.row,), True)
        if not found or found[0].content is None:
            raise NotKnown("that chunk was replaced", remedy="search again")
        return found[0].content

    def points_after(self, point_id: int, limit: int, rules: str | None = None) -> list[PointRow]:
        """Vectors added after a point, in order of id; of one set of rules if named."""
        with self._reading() as connection:
            return [
                PointRow(*row)
                for row in connection.execute(
                    f"SELECT {_POINT_COLUMNS} FROM {_POINT_TABLES} WHERE p.id > :after"  # noqa: S608 - joins constants
                    " AND (:rules IS NULL OR r.fingerprint = :rules) ORDER BY p.id LIMIT :limit",
                    {"after": point_id, "rules": rules, "limit": limit},
                )
            ]

    def points_by_id(self, ids: Sequence[int]) -> list[PointRow]:
        """Those of some points that still stand, in no special order."""
        with self._reading() as connection:
            return [
                PointRow(*row)
                for part in _parts(ids)
                for row in connection.execute(
                    f"SELECT {_POINT_COLUMNS} FROM {_POINT_TABLES} WHERE p.id IN ({_marks(part)})",  # noqa: S608 - joins constants
                    part,
                )
            ]

    def points_of(self, source: SourceId, rules: str) -> list[PointRow]:
        """Vectors that count for a source under some rules; for a peer that asks for them."""
        with self._reading() as connection:
            row, _ = expect_head(connection, source)
            return [
                PointRow(*values)
                for values in connection.execute(
                    f"SELECT {_POINT_COLUMNS} FROM {_POINT_TABLES} WHERE r.fingerprint = :rules"  # noqa: S608 - joins constants
                    " AND p.scope IN (0, :row) AND p.content IN"
                    " (SELECT content FROM chunks WHERE source = :row) ORDER BY p.id",
                    {"rules": rules, "row": row},
                )
            ]

    def owed_count(self) -> int:
        """Contents that still lack vectors."""
        with self._reading() as connection:
            return _number(connection, "SELECT count(*) FROM owed")

    def _take_owed(self, limit: int) -> list[OwedContent]:
        """First windows before others, messages before tools, newest first."""
        taken: list[OwedContent] = []
        with self._reading() as connection:
            window = TextWindow(connection, self._codec)
            active = pointrows.active_rules(connection)
            rows = all_of(
                connection,
                "SELECT o.content, o.stage, k.digest FROM owed AS o JOIN contents AS k"
                " ON k.id = o.content ORDER BY o.stage, o.rank, o.recency DESC, o.content DESC"
                " LIMIT ?",
                (limit,),
            )
            for number, stage, digest in rows:
                ((row, source, start, end, flags, snapshot),) = all_of(
                    connection,
                    'SELECT c.id, c.source, c.start, c."end", c.flags, h.source FROM chunks AS c'
                    " LEFT JOIN heads AS h ON h.source = c.source WHERE c.content = ? LIMIT 1",
                    (number,),
                )
                have = all_of(
                    connection,
                    "SELECT p.window FROM points AS p JOIN rules AS r ON r.id = p.rules"
                    " WHERE p.content = ? AND r.fingerprint = ? AND p.scope = 0",
                    (number, active),
                )
                text = window.legacy(row) if snapshot is None else window.span(source, start, end)
                taken.append(
                    OwedContent(
                        content_digest=digest,
                        content=text,
                        stage=stage,
                        long_event=bool(flags & LONG_EVENT),
                        code=bool(flags & CODE),
                        have=frozenset(window for (window,) in have),
                    )
                )
        return taken

    def fences_after(self, change: int, limit: int = 1000) -> list[Fence]:
        """Deletions and purges after a change, in order of change."""
        with self._reading() as connection:
            return [
                Fence(row[0], SourceId(*row[1:4]), *row[4:])
                for row in connection.execute(
                    "SELECT kind, workspace, project, key, root, stamp_ms, stamp_counter,"
                    " stamp_device, stamp_digest, change, created_ms FROM fences"
                    " WHERE change > ? ORDER BY change LIMIT ?",
                    (change, limit),
                )
            ]

    def _chunks(self, condition: str, values: Sequence[Any], content: bool) -> list[ChunkRow]:
        with self._reading() as connection:
            rows = all_of(
                connection,
                f"SELECT {_CHUNK_COLUMNS} FROM {_CHUNK_TABLES} WHERE {condition}",  # noqa: S608 - joins constants
                tuple(values),
            )
            window = TextWindow(connection, self._codec) if content else None
            return list(_chunk_rows(rows, window))


def _chunk_rows(rows: Iterable[Sequence[Any]], window: TextWindow | None) -> Iterator[ChunkRow]:
    names: dict[int, SourceId] = {}
    for row in rows:
        number, source, start, end, version = row[0], row[1], row[13], row[14], row[10]
        text: str | None = None
        if window is not None:
            text = window.span(source, start, end) if version else window.legacy(number)
        named = names.get(source)
        if named is None:
            named = names[source] = SourceId(row[2], row[3], row[4])
        yield ChunkRow(
            row=number,
            source_row=source,
            source=named,
            client=row[5],
            device=row[6],
            language=row[7],
            title=row[8],
            updated_ms=row[9],
            version=version,
            ordinal=row[11],
            memory_id=row[12],
            start=start,
            end=end,
            content_digest=row[15],
            long_event=bool(row[16] & LONG_EVENT),
            code=bool(row[16] & CODE),
            packed_events=row[17],
            roles=row[18],
            kinds=row[19],
            first_ms=row[20],
            last_ms=row[21],
            born=row[22],
            content=text,
        )


def _number(connection: Connection, statement: str) -> int:
    number: int = value_of(connection, statement)
    return number


def _parts(numbers: Sequence[int], size: int = 500) -> Iterator[list[int]]:
    for at in range(0, len(numbers), size):
        yield list(numbers[at : at + size])


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
