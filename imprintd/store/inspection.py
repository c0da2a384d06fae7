"""
Looking whether what is stored is what it should be, and mending rows that are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from imprintd.errors import IntegrityError, VersionReplaced
from imprintd.model.event import EventSpan
from imprintd.model.snapshot import Chunk, Head
from imprintd.model.source import SourceId
from imprintd.store import chunkrows, pointrows
from imprintd.store.connection import Connection, all_of, value_of
from imprintd.store.publish import next_change
from imprintd.store.records import Codec, Statistics, StoreVerdict
from imprintd.store.rows import CODE, LONG_EVENT, digest_of, expect_head
from imprintd.store.spans import unpack_spans


def verify(connection: Connection, codec: Codec, head: Head) -> StoreVerdict:
    """
    Rebuild a text and compare everything that is derived from it.

    Raises:
        NotKnown, VersionReplaced: There is no such version.
    """
    row, now = expect_head(connection, head.source)
    if now.version != head.version:
        raise VersionReplaced(f"source {head.source.key!r} has a newer version")
    text, faults = _rebuild(connection, codec, row, now)
    missing, changed, extra = _compare_chunks(connection, codec, row, now, text, faults)
    pending: int = value_of(
        connection,
        "SELECT count(DISTINCT c.content) FROM chunks AS c JOIN owed AS o"
        " ON o.content = c.content WHERE c.source = ?",
        (row,),
    )
    return StoreVerdict(
        version=now.version,
        missing=tuple(missing),
        changed=tuple(changed),
        extra=tuple(extra),
        faults=tuple(faults),
        pending=pending,
        chars=len(text),
    )


def _rebuild(connection: Connection, codec: Codec, row: int, head: Head) -> tuple[str, list[str]]:
    faults: list[str] = []
    pieces: list[str] = []
    listed: list[tuple[bytes, int]] = []
    at = size = 0
    rows = connection.execute(
        "SELECT s.position, s.start, b.digest, b.chars, b.size, b.packed"
        " FROM snapshot_blocks AS s JOIN blocks AS b ON b.id = s.block"
        " WHERE s.source = ? ORDER BY s.position",
        (row,),
    )
    for expected, (position, start, digest, chars, declared, packed) in enumerate(rows):
        if position != expected or start != at:
            faults.append(f"block {expected} is missing or out of place")
        try:
            plain = codec.unpack(packed, digest)
            piece = plain.decode("utf-8", "surrogatepass")
        except (IntegrityError, UnicodeDecodeError):
            faults.append(f"block {position} is damaged")
            # positions behind it stay right
            piece, plain = "\0" * chars, b"\0" * declared
        if len(piece) != chars or len(plain) != declared:
            faults.append(f"block {position} does not hold what it declares")
        pieces.append(piece)
        listed.append((digest, declared))
        at, size = at + len(piece), size + len(plain)
    if (len(listed), at, size) != (head.blocks, head.total_chars, head.total_bytes):
        faults.append("the text has another length than its head says")
    elif codec.root(listed, at) != head.root:
        faults.append("the blocks do not give the root of the text")
    return "".join(pieces), faults


def _compare_chunks(
    connection: Connection, codec: Codec, row: int, head: Head, text: str, faults: list[str]
) -> tuple[list[str], list[str], list[str]]:
    stored = _stored_chunks(connection, row)
    held = {ordinal for ordinal, _ in stored}
    missing = [f"#{ordinal}" for ordinal in range(head.chunks) if ordinal not in held]
    extra = [chunk.memory_id for ordinal, chunk in stored if ordinal >= head.chunks]
    chunks = [chunk for ordinal, chunk in stored if ordinal < head.chunks]
    changed = [
        chunk.memory_id for chunk in chunks if not _is_right(codec, head.source, chunk, text)
    ]
    if missing:
        return missing, changed, extra
    reached = 0
    for chunk in chunks:
        if chunk.start > reached:
            faults.append(f"characters {reached} to {chunk.start} are in no chunk")
        reached = max(reached, chunk.end)
    if reached != head.total_chars:
        faults.append(f"the chunks reach to {reached} of {head.total_chars} characters")
    if codec.manifest_root(chunks, head.total_chars, head.total_bytes) != head.manifest_root:
        faults.append("the chunks do not give the root of the manifest")
    return missing, changed, extra


def _is_right(codec: Codec, source: SourceId, chunk: Chunk, text: str) -> bool:
    content = digest_of(text[chunk.start : chunk.end])
    return (
        0 <= chunk.start < chunk.end <= len(text)
        and content == chunk.content_digest
        and codec.memory_id(source, chunk.start, chunk.end, content) == chunk.memory_id
    )


def _stored_chunks(connection: Connection, row: int) -> list[tuple[int, Chunk]]:
    stored: list[tuple[int, Chunk]] = []
    for ordinal, memory_id, start, end, digest, flags, packed in connection.execute(
        'SELECT c.ordinal, c.memory_id, c.start, c."end", k.digest, c.flags, c.events'
        " FROM chunks AS c JOIN contents AS k ON k.id = c.content"
        " WHERE c.source = ? ORDER BY c.ordinal",
        (row,),
    ):
        events: tuple[EventSpan, ...] = ()
        with suppress(IntegrityError):
            events = unpack_spans(packed, start)
        stored.append(
            (
                ordinal,
                Chunk(
                    memory_id,
                    start,
                    end,
                    digest,
                    bool(flags & LONG_EVENT),
                    bool(flags & CODE),
                    events,
                ),
            )
        )
    return stored


def repair_chunks(
    connection: Connection, codec: Codec, head: Head, chunks: Sequence[Chunk] | None
) -> int:
    """
    Make the chunk rows of a snapshot what its manifest root demands.

    Args:
        chunks: The whole manifest, cut anew from the text. None: take the
            stored spans and work out digests and ids again.

    Returns:
        Rows written anew.

    Raises:
        VersionReplaced: There is no such version any more.
        IntegrityError: These chunks do not give the root either: cut the text
            anew or, if it is damaged itself, learn the source again.
    """
    row, now = expect_head(connection, head.source)
    if now.version != head.version:
        raise VersionReplaced(f"source {head.source.key!r} has a newer version")
    if chunks is None:
        text, faults = _rebuild(connection, codec, row, now)
        if faults:
            raise IntegrityError(f"the text of {head.source.key!r} is damaged: {faults[0]}")
        chunks = [
            _again(codec, head.source, chunk, text)
            for ordinal, chunk in _stored_chunks(connection, row)
            if ordinal < now.chunks
        ]
    if (
        len(chunks) != now.chunks
        or codec.manifest_root(chunks, now.total_chars, now.total_bytes) != now.manifest_root
    ):
        raise IntegrityError(
            f"the chunks of {head.source.key!r} cannot be mended from their rows",
            remedy="learn the source again with --force",
        )
    change = next_change(connection)
    chunkrows.replace_from(connection, row, 0, chunks, change, now.total_chars)
    written = value_of(
        connection, "SELECT count(*) FROM chunks WHERE source = ? AND born = ?", (row, change)
    )
    pointrows.owe(connection, row, change, None, now.meta.updated_ms)
    chunkrows.drop_unused_contents(connection)
    connection.execute("UPDATE heads SET change = ? WHERE source = ?", (change, row))
    return int(written)


def _again(codec: Codec, source: SourceId, chunk: Chunk, text: str) -> Chunk:
    content = digest_of(text[chunk.start : chunk.end])
    memory_id = codec.memory_id(source, chunk.start, chunk.end, content)
    return replace(chunk, memory_id=memory_id, content_digest=content)


def audit(connection: Connection) -> list[str]:
    """
    Counts of references that are wrong and rows that nothing leads to, in plain words.

    Reads whole tables: for `verify` of everything and for tests.
    """
    questions = {
        "blocks with a wrong count of references": (
            "SELECT count(*) FROM blocks AS b WHERE b.refs = 0 OR b.refs <>"
            " (SELECT count(*) FROM snapshot_blocks AS s WHERE s.block = b.id)"
        ),
        "contents with a wrong count of references": (
            "SELECT count(*) FROM contents AS k WHERE k.refs = 0 OR k.refs <>"
            " (SELECT count(*) FROM chunks AS c WHERE c.content = k.id)"
        ),
        "chunks that have neither a snapshot nor a text of their own": (
            "SELECT count(*) FROM chunks AS c WHERE"
            " NOT EXISTS (SELECT 1 FROM heads AS h WHERE h.source = c.source)"
            " AND NOT EXISTS (SELECT 1 FROM legacy_texts AS t WHERE t.chunk = c.id)"
        ),
        "blocks listed for a source without a snapshot": (
            "SELECT count(*) FROM snapshot_blocks AS s WHERE"
            " NOT EXISTS (SELECT 1 FROM heads AS h WHERE h.source = s.source)"
        ),
        "live chunks that are noted as dead": (
            "SELECT count(*) FROM died AS d JOIN chunks AS c ON c.id = d.chunk"
        ),
        "broken references": "SELECT count(*) FROM pragma_foreign_key_check",
    }
    found: list[str] = []
    for words, question in questions.items():
        count = value_of(connection, question)
        if count:
            found.append(f"{count} {words}")
    return found


def statistics(connection: Connection, file: Path, schema: int) -> Statistics:
    """Counts and sizes of a database."""
    ((chars, text_bytes),) = all_of(
        connection, "SELECT coalesce(sum(chars), 0), coalesce(sum(bytes), 0) FROM heads"
    )
    ((blocks, packed),) = all_of(
        connection, "SELECT count(*), coalesce(sum(length(packed)), 0) FROM blocks"
    )
    # counted on an index: the vectors themselves are most of the database
    points = value_of(connection, "SELECT count(*) FROM points")
    last = value_of(connection, "SELECT length(vector) FROM points ORDER BY id DESC LIMIT 1")
    counts = {
        table: value_of(connection, f"SELECT count(*) FROM {table}")  # noqa: S608 - joins constants
        for table in ("heads", "chunks", "contents", "owed", "source_errors")
    }
    wal = file.with_name(file.name + "-wal")
    return Statistics(
        schema=schema,
        change=value_of(connection, "SELECT change FROM device"),
        sources=counts["heads"],
        chunks=counts["chunks"],
        contents=counts["contents"],
        points=points,
        owed=counts["owed"],
        blocks=blocks,
        errors=counts["source_errors"],
        text_chars=chars,
        text_bytes=text_bytes,
        packed_bytes=packed,
        vector_bytes=points * (last or 0),
        db_bytes=_size(file),
        wal_bytes=_size(wal),
        by_client=dict(
            all_of(
                connection,
                "SELECT s.client, count(*) FROM heads AS h JOIN sources AS s ON s.id = h.source"
                " GROUP BY s.client",
            )
        ),
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
