"""
The exact text of a source as it is stored: blocks, chunks, stamps, heads.

All positions are code points of the canonical text, half open, unless a name
says bytes. All digests are SHA-256, 32 raw bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from imprintd.model.event import EventSpan
from imprintd.model.reading import Cursor
from imprintd.model.source import Coverage, SourceId, SourceMeta

LEARNER_VERSION: Final = 3
"""Sources learned by an older version are learned once again."""

BLOCK_BYTES_MAX: Final = 256 * 1024
"""Plain UTF-8 bytes of a block: 86 % of the throughput of 1 MiB at a quarter
of the memory, so the unit of storage is also the unit of the wire."""

TEXT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Readable text of one snapshot; larger ones are refused by name."""

MANIFEST_ENTRIES_MAX: Final = 100_000
"""Chunks of one snapshot; larger manifests are refused by name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Chunker limits in characters; part of the rules fingerprint of a vector.

    Attributes:
        size_prose: Whole events are packed up to this.
        size_code: Likewise for code files.
        hard_max: No ordinary chunk is longer; a longer tool event is one
            chunk of its own.
        overlap: Characters that a cut inside a message repeats.
        piece: A long tool event is cut at line ends into pieces of this.
    """

    size_prose: int = 6000
    size_code: int = 4000
    hard_max: int = 8000
    overlap: int = 400
    piece: int = 262_144


@dataclass(frozen=True, slots=True)
class Block:
    """
    One stored piece of canonical text.

    Attributes:
        digest: SHA-256 of the plain UTF-8 (surrogatepass) bytes.
        chars: Code points it holds.
        size: Plain bytes it holds, at most BLOCK_BYTES_MAX.
        packed: The bytes as one zstd frame that declares its content size.
    """

    digest: bytes
    chars: int
    size: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """
    One search unit: the exact span `text[start:end]` of its snapshot.

    Attributes:
        memory_id: `m` and 25 base32 characters, from source key, span and
            content; the same on every device that holds the same text.
        start: First character.
        end: One past the last character.
        content_digest: SHA-256 of the content's UTF-8 (surrogatepass) bytes.
        long_event: It is a tool event (or a piece of one) over hard_max.
        code: It was cut as code (file sources).
        events: The events under it, clipped to the span; empty for files.
    """

    memory_id: str
    start: int
    end: int
    content_digest: bytes
    long_event: bool
    code: bool
    events: tuple[EventSpan, ...]


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """
    Total order of heads: the source's update time, ratcheted past every head
    this device has seen, then a counter, the origin and the digest.
    """

    update_ms: int
    counter: int
    device: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """
    What an append needs to know of the snapshot it continues, of constant size.

    Attributes:
        closed_blocks: Leading blocks that no append will change.
        closed_blocks_chain: Hash chain over them (see text.blocks.chain).
        closed_bytes: Plain bytes in them.
        closed_chars: Characters in them.
        closed_chunks: Leading chunks that no append will change.
        closed_chunks_chain: Hash chain over them.
        open_start: First character of the chunk that an append may change.
        total_chars: Length of the text.
        events: Number of events so far.
        last_event_start: First character of the last event's header.
        open_events: Spans of the events of the open chunk (whole, not clipped).
    """

    closed_blocks: int = 0
    closed_blocks_chain: bytes = b"\0" * 32
    closed_bytes: int = 0
    closed_chars: int = 0
    closed_chunks: int = 0
    closed_chunks_chain: bytes = b"\0" * 32
    open_start: int = 0
    total_chars: int = 0
    events: int = 0
    last_event_start: int = 0
    open_events: tuple[EventSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """
    One vector of one window of a chunk's text or view.

    Attributes:
        content_digest: The chunk content it belongs to.
        window: 0-based; the best window of a chunk counts.
        windows: How many windows the chunk has under these rules.
        rules: Fingerprint of model, view rules and limits.
        vector: float16 little endian, L2-normalised.
    """

    content_digest: bytes
    window: int
    windows: int
    rules: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class SnapshotUpdate:
    """
    Everything one publication changes; the store applies it in one transaction.

    The new snapshot is `keep_blocks` leading blocks of the base followed by
    `blocks`, and `keep_chunks` leading chunks of the base followed by `chunks`.

    Attributes:
        base_version: Version this continues, None for a new source. The store
            refuses the update when the head is another one by now.
        version: 32 hex characters; names text, manifest, profile and learner.
        root: Chain over all block digests, total length closed in.
        manifest_root: Chain over all chunks.
        state: The reader's and pipeline's own continuation, opaque, bounded.
        record_keys: Ids of records that became part of the text with this
            update (8 bytes each), for the ledger.
        origin: Device that learned it; None: this one.
        stamp: None: the store makes one from meta.updated_ms.
        lines: Lines (JSONL) consumed so far, for error messages.
    """

    source: SourceId
    meta: SourceMeta
    base_version: str | None
    version: str
    profile: str
    learner: int
    keep_blocks: int
    blocks: tuple[Block, ...]
    keep_chunks: int
    chunks: tuple[Chunk, ...]
    total_chars: int
    total_bytes: int
    events: int
    root: bytes
    manifest_root: bytes
    coverage: Coverage
    tail: Tail
    state: bytes = b""
    cursor: Cursor | None = None
    record_keys: tuple[bytes, ...] = ()
    points: tuple[Point, ...] = ()
    origin: str | None = None
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The current snapshot of a source, as the store describes it."""

    source: SourceId
    meta: SourceMeta
    version: str
    profile: str
    learner: int
    stamp: Stamp
    origin: str
    change: int
    revision: int
    blocks: int
    chunks: int
    total_chars: int
    total_bytes: int
    events: int
    root: bytes
    manifest_root: bytes
    coverage: Coverage = field(default_factory=Coverage)
