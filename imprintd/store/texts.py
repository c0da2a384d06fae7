"""
Text out of blocks: spans, single blocks, block lists.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from imprintd.errors import IntegrityError
from imprintd.store.connection import Connection, all_of, first_of, value_of
from imprintd.store.records import Codec, StoredBlock

OPEN_BLOCKS_MAX: Final = 4
"""Decoded blocks that a `TextWindow` keeps: at most about 4 MiB of text."""


def span(connection: Connection, codec: Codec, row: int, start: int, end: int) -> str:
    """
    Characters `start` to `end` of a source's text.

    Raises:
        IntegrityError: A block is missing or damaged.
    """
    if start >= end:
        return ""
    pieces: list[str] = []
    at = start
    found = connection.execute(
        "SELECT s.start, b.digest, b.packed FROM snapshot_blocks AS s"
        " JOIN blocks AS b ON b.id = s.block WHERE s.source = ? AND s.start < ?"
        " AND s.position >= (SELECT coalesce(max(position), 0) FROM snapshot_blocks"
        "  WHERE source = ? AND start <= ?) ORDER BY s.position",
        (row, end, row, start),
    )
    for first, digest, packed in found:
        text = codec.unpack(packed, digest).decode("utf-8", "surrogatepass")
        if first > at:
            break
        pieces.append(text[at - first : end - first])
        at = first + len(text)
    if at < end:
        raise IntegrityError("a stored text lacks a block")
    return "".join(pieces)


def block_at(connection: Connection, codec: Codec, row: int, position: int) -> bytes:
    """Plain bytes of the block at a place, empty if there is none."""
    found = first_of(
        connection,
        "SELECT b.digest, b.packed FROM snapshot_blocks AS s JOIN blocks AS b ON b.id = s.block"
        " WHERE s.source = ? AND s.position = ?",
        (row, position),
    )
    return codec.unpack(found[1], found[0]) if found else b""


def blocks(
    connection: Connection, row: int, first: int = 0, count: int | None = None, *, packed: bool
) -> list[StoredBlock]:
    """Blocks of a source from a place on."""
    body = "b.packed" if packed else "x''"
    rows = connection.execute(
        f"SELECT s.position, s.start, b.digest, b.chars, b.size, {body} FROM snapshot_blocks AS s"  # noqa: S608 - joins constants
        " JOIN blocks AS b ON b.id = s.block WHERE s.source = ? AND s.position >= ?"
        " ORDER BY s.position LIMIT ?",
        (row, first, -1 if count is None else count),
    )
    return [StoredBlock(*values) for values in rows]


class TextWindow:
    """
    Reads many spans of the same texts and keeps the last blocks decoded.

    Lives inside one reading transaction.
    """

    def __init__(self, connection: Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._starts: dict[int, list[tuple[int, int, bytes]]] = {}
        self._texts: OrderedDict[bytes, str] = OrderedDict()

    def span(self, row: int, start: int, end: int) -> str:
        """
        Characters `start` to `end` of a source's text.

        Raises:
            IntegrityError: A block is missing or damaged.
        """
        if row not in self._starts:
            self._starts[row] = all_of(
                self._connection,
                "SELECT s.start, s.start + b.chars, b.digest FROM snapshot_blocks AS s"
                " JOIN blocks AS b ON b.id = s.block WHERE s.source = ? ORDER BY s.position",
                (row,),
            )
        pieces: list[str] = []
        for first, last, digest in self._starts[row]:
            if first < end and start < last:
                pieces.append(self._text(digest)[max(start - first, 0) : end - first])
        text = "".join(pieces)
        if len(text) != end - start:
            raise IntegrityError("a stored text lacks a block")
        return text

    def legacy(self, chunk: int) -> str:
        """Text of a chunk whose snapshot is gone."""
        text: bytes | None = value_of(
            self._connection, "SELECT text FROM legacy_texts WHERE chunk = ?", (chunk,)
        )
        if text is None:
            raise IntegrityError("a chunk without a snapshot has no text of its own")
        return text.decode("utf-8", "surrogatepass")

    def _text(self, digest: bytes) -> str:
        text = self._texts.get(digest)
        if text is None:
            packed = value_of(
                self._connection, "SELECT packed FROM blocks WHERE digest = ?", (digest,)
            )
            text = self._codec.unpack(packed, digest).decode("utf-8", "surrogatepass")
            self._texts[digest] = text
            if len(self._texts) > OPEN_BLOCKS_MAX:
                self._texts.popitem(last=False)
        else:
            self._texts.move_to_end(digest)
        return text
