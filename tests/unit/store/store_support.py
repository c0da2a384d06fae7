"""
Sources made by hand for the store's tests, with a codec of their own.

Chunks are cut every few characters and blocks every few bytes, so that small
texts have many of both; the store does not care how they were cut.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace

import zstandard

from imprintd.errors import IntegrityError
from imprintd.model.event import EventSpan, Kind
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import Block, Chunk, Point, SnapshotUpdate, Tail
from imprintd.model.source import Coverage, SourceId, SourceMeta

SOURCE = SourceId("default", "/home/ada/engine", "claude:0001")
START = b"\0" * 32


class SmallCodec:
    """Packs with zstd, or not at all where a test looks for plain bytes in a file."""

    def __init__(self, *, stored: bool = False) -> None:
        self.stored = stored
        self.opened = 0

    def pack(self, plain: bytes) -> bytes:
        return plain if self.stored else zstandard.ZstdCompressor(level=1).compress(plain)

    def unpack(self, packed: bytes, digest: bytes) -> bytes:
        self.opened += 1
        try:
            plain = packed if self.stored else zstandard.ZstdDecompressor().decompress(packed)
        except zstandard.ZstdError:
            raise IntegrityError("a block does not decompress") from None
        if hashlib.sha256(plain).digest() != digest:
            raise IntegrityError("a block differs from its digest")
        return plain

    def root(self, blocks: Sequence[tuple[bytes, int]], total_chars: int) -> bytes:
        link = START
        for digest, size in blocks:
            link = hashlib.sha256(link + digest + size.to_bytes(8, "big")).digest()
        return hashlib.sha256(link + total_chars.to_bytes(8, "big")).digest()

    def manifest_root(self, chunks: Sequence[Chunk], total_chars: int, total_bytes: int) -> bytes:
        link = START
        for chunk in chunks:
            link = hashlib.sha256(link + chunk.memory_id.encode() + chunk.content_digest).digest()
        return hashlib.sha256(link + repr((total_chars, total_bytes)).encode()).digest()

    def memory_id(self, source: SourceId, start: int, end: int, content_digest: bytes) -> str:
        told = repr((source.project, source.key, start, end)).encode() + content_digest
        return "m" + base64.b32encode(hashlib.sha256(told).digest())[:25].decode().lower()


def cut_text(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def update_of(
    text: str,
    *,
    source: SourceId = SOURCE,
    base_text: str | None = None,
    base_version: str | None = None,
    codec: SmallCodec | None = None,
    block_chars: int = 64,
    chunk_chars: int = 16,
    profile: str = "p1",
    learner: int = 3,
    title: str = "A title",
    updated_ms: int = 1_000,
    keep: bool = True,
    points: tuple[Point, ...] = (),
    record_keys: tuple[bytes, ...] = (),
    cursor: Cursor | None = None,
    kind: Kind = "message",
    state: bytes = b"state",
) -> SnapshotUpdate:
    """
    The update that brings `base_text` (None: nothing) to `text`.

    What both share is kept, as an append would; `keep=False` sends it all.
    """
    codec = codec or SmallCodec()
    pieces = [piece.encode("utf-8", "surrogatepass") for piece in cut_text(text, block_chars)]
    blocks = [
        Block(
            hashlib.sha256(p).digest(),
            len(p.decode("utf-8", "surrogatepass")),
            len(p),
            codec.pack(p),
        )
        for p in pieces
    ]
    chunks: list[Chunk] = []
    for number, piece in enumerate(cut_text(text, chunk_chars)):
        start = number * chunk_chars
        digest = hashlib.sha256(piece.encode("utf-8", "surrogatepass")).digest()
        span = EventSpan(
            start,
            start + len(piece),
            "user",
            kind,
            number,
            f"2026-05-01T10:00:{number % 60:02d}.250Z",
        )
        chunks.append(
            Chunk(
                codec.memory_id(source, start, start + len(piece), digest),
                start,
                start + len(piece),
                digest,
                False,
                False,
                (span,),
            )
        )
    size = sum(block.size for block in blocks)
    root = codec.root([(b.digest, b.size) for b in blocks], len(text))
    manifest_root = codec.manifest_root(chunks, len(text), size)
    kept_blocks = kept_chunks = 0
    if base_text is not None and keep and text.startswith(base_text):
        kept_blocks = len(base_text) // block_chars
        kept_chunks = len(base_text) // chunk_chars
    version = hashlib.sha256(root + manifest_root + f"{profile}{learner}".encode()).hexdigest()[:32]
    closed_blocks = len(text) // block_chars
    closed_chunks = len(text) // chunk_chars
    return SnapshotUpdate(
        source=source,
        meta=SourceMeta("claude", title, None, updated_ms, None),
        base_version=base_version,
        version=version,
        profile=profile,
        learner=learner,
        keep_blocks=kept_blocks,
        blocks=tuple(blocks[kept_blocks:]),
        keep_chunks=kept_chunks,
        chunks=tuple(chunks[kept_chunks:]),
        total_chars=len(text),
        total_bytes=size,
        events=len(chunks),
        root=root,
        manifest_root=manifest_root,
        coverage=Coverage({"image": 1}, {"odd": 2}, 0, 1, 0, 7),
        tail=Tail(
            closed_blocks=closed_blocks,
            closed_chars=closed_blocks * block_chars,
            closed_chunks=closed_chunks,
            open_start=closed_chunks * chunk_chars,
            total_chars=len(text),
            events=len(chunks),
        ),
        state=state,
        cursor=cursor,
        record_keys=record_keys,
        points=points,
    )


def append_of(update: SnapshotUpdate, base: str, more: str, **given: object) -> SnapshotUpdate:
    """The update that continues another one by `more`."""
    return update_of(
        base + more,
        source=update.source,
        base_text=base,
        base_version=update.version,
        **given,  # type: ignore[arg-type]
    )


def cursor_at(path: str, offset: int = 10, **given: object) -> Cursor:
    plain = Cursor(path, 7, 1 << 63 | 5, offset, b"f" * 32, b"a" * 32, 99, 123_456_789, 4)
    return replace(plain, **given)  # type: ignore[arg-type]


def point_of(content: str, window: int = 0, windows: int = 1, rules: str = "r1") -> Point:
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()
    return Point(digest, window, windows, rules, bytes([window]) * 8)
