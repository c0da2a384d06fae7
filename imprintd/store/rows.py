"""
Between rows and model objects; statements that reading and writing share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from imprintd.errors import NotKnown
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import Head, Stamp
from imprintd.model.source import SourceId, SourceMeta
from imprintd.store.connection import Connection
from imprintd.store.spans import unpack_coverage

LONG_EVENT: Final = 1
CODE: Final = 2

HEAD_COLUMNS: Final = (
    "s.workspace, s.project, s.key, s.client, s.title, s.parent, s.updated_ms, s.language,"
    " h.version, h.profile, h.learner, h.stamp_ms, h.stamp_counter, h.stamp_device,"
    " h.stamp_digest, h.origin, h.change, h.revision, h.blocks, h.chunks, h.chars, h.bytes,"
    " h.events, h.root, h.manifest_root, h.coverage"
)
HEAD_TABLES: Final = "heads AS h JOIN sources AS s ON s.id = h.source"


def head_from(row: Sequence[Any]) -> Head:
    """A head from HEAD_COLUMNS."""
    return Head(
        source=SourceId(row[0], row[1], row[2]),
        meta=SourceMeta(row[3], row[4], row[5], row[6], row[7]),
        version=row[8],
        profile=row[9],
        learner=row[10],
        stamp=Stamp(row[11], row[12], row[13], row[14]),
        origin=row[15],
        change=row[16],
        revision=row[17],
        blocks=row[18],
        chunks=row[19],
        total_chars=row[20],
        total_bytes=row[21],
        events=row[22],
        root=row[23],
        manifest_root=row[24],
        coverage=unpack_coverage(row[25]),
    )


def source_row(connection: Connection, source: SourceId) -> int | None:
    """Row of a source, None if it is not known."""
    found: int | None = connection.execute(
        "SELECT id FROM sources WHERE workspace = ? AND key = ? AND project = ?",
        (plain(source.workspace), plain(source.key), plain(source.project)),
    ).get
    return found


def head_of(connection: Connection, row: int) -> Head | None:
    """Head of a source row."""
    statement = f"SELECT {HEAD_COLUMNS} FROM {HEAD_TABLES} WHERE h.source = ?"  # noqa: S608 - joins constants
    found = connection.execute(statement, (row,)).fetchone()
    return head_from(found) if found else None


def expect_head(connection: Connection, source: SourceId) -> tuple[int, Head]:
    """
    Row and head of a source.

    Raises:
        NotKnown: There is no such source, or it has no snapshot.
    """
    row = source_row(connection, source)
    head = head_of(connection, row) if row is not None else None
    if row is None or head is None:
        raise NotKnown(
            f"source {source.key!r} " + ("is not known" if row is None else "has no full text")
        )
    return row, head


CURSOR_COLUMNS: Final = (
    "path, device, inode, offset, fingerprint, anchor, size, mtime_ns, lines, compressed"
)


def cursor_from(row: Sequence[Any]) -> Cursor:
    """A cursor from CURSOR_COLUMNS."""
    return Cursor(
        path=path_text(row[0]),
        device=unsigned(row[1]),
        inode=unsigned(row[2]),
        offset=row[3],
        fingerprint=row[4],
        anchor=row[5],
        size=row[6],
        mtime_ns=row[7],
        lines=row[8],
        compressed=bool(row[9]),
    )


def cursor_values(cursor: Cursor) -> tuple[Any, ...]:
    """Values for CURSOR_COLUMNS."""
    return (
        path_bytes(cursor.path),
        signed(cursor.device),
        signed(cursor.inode),
        cursor.offset,
        cursor.fingerprint,
        cursor.anchor,
        cursor.size,
        cursor.mtime_ns,
        cursor.lines,
        int(cursor.compressed),
    )


def plain(text: str) -> str:
    """Text that SQLite can hold: a lone surrogate becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def plain_or_none(text: str | None) -> str | None:
    """Likewise, for what may be absent."""
    return None if text is None else plain(text)


def path_bytes(path: str) -> bytes:
    """A path as bytes; no name that a file system can hold is lost."""
    return path.encode("utf-8", "surrogatepass")


def path_text(path: bytes) -> str:
    """The path again."""
    return path.decode("utf-8", "surrogatepass")


def signed(number: int) -> int:
    """An unsigned 64-bit number (an inode of some file systems) as SQLite holds it."""
    return number - (1 << 64) if number >= 1 << 63 else number


def unsigned(number: int) -> int:
    """The number again; only inodes and devices pass here, and none is negative."""
    return number + (1 << 64) if number < 0 else number


def digest_of(content: str) -> bytes:
    """SHA-256 of a content's UTF-8 bytes."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()
