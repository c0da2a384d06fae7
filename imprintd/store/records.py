"""
What the store hands out, and the one port it asks for.

All positions are code points of the canonical text, half open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from imprintd.model.event import EventSpan
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import Chunk, Tail
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.store.spans import unpack_spans


class Codec(Protocol):
    """
    What the text room knows about blocks and chains.

    The store keeps packed bytes and asks for this to open and to verify them.
    """

    def unpack(self, packed: bytes, digest: bytes) -> bytes:
        """
        Plain bytes of a block, at most BLOCK_BYTES_MAX.

        Raises:
            IntegrityError: Not one whole frame, too large, or another digest.
        """
        ...

    def root(self, blocks: Sequence[tuple[bytes, int]], total_chars: int) -> bytes:
        """Root of a text from the (digest, plain size) of its blocks in order."""
        ...

    def manifest_root(self, chunks: Sequence[Chunk], total_chars: int, total_bytes: int) -> bytes:
        """Root of a manifest from its chunks in order."""
        ...

    def memory_id(self, source: SourceId, start: int, end: int, content_digest: bytes) -> str:
        """Memory id of a chunk."""
        ...


@dataclass(frozen=True, slots=True)
class BaseData:
    """
    What learning needs of the head it continues, at constant cost.

    Attributes:
        open_block: Plain bytes of the last block if an append may change it.
        open_text: Text from `tail.open_start` to the end.
        state: The reader's continuation.
    """

    version: str
    meta: SourceMeta
    profile: str
    learner: int
    tail: Tail
    coverage: Coverage
    open_block: bytes
    open_text: str
    state: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """
    A piece of a source's exact text.

    Attributes:
        next_start: Where the next page begins; None at the end.
        version: Continue with this one.
    """

    text: str
    start: int
    next_start: int | None
    total_chars: int
    version: str


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """
    A live chunk with everything that search filters by.

    Attributes:
        row: Grows with every chunk born; a changed chunk is a new row.
        source_row: The source's row.
        ordinal: Position in the manifest.
        device: The device that learned it (the head's origin).
        roles: Bit mask over model ROLES.
        kinds: Bit mask over model KINDS.
        first_ms: Earliest event time that could be read, ms since the epoch.
        last_ms: Latest one.
        born: Change number.
        version: The head's version; empty for a chunk without a snapshot.
        content: The exact text of the span; None where it was not asked for.
    """

    row: int
    source_row: int
    source: SourceId
    client: str
    device: str
    language: str | None
    title: str
    updated_ms: int
    version: str
    ordinal: int
    memory_id: str
    start: int
    end: int
    content_digest: bytes
    long_event: bool
    code: bool
    packed_events: bytes
    roles: int
    kinds: int
    first_ms: int | None
    last_ms: int | None
    born: int
    content: str | None = None

    @property
    def events(self) -> tuple[EventSpan, ...]:
        """The events under it, clipped to the span; unpacked when asked for."""
        return unpack_spans(self.packed_events, self.start)

    # what search names differently
    @property
    def workspace(self) -> str:
        return self.source.workspace

    @property
    def project(self) -> str:
        return self.source.project

    @property
    def key(self) -> str:
        return self.source.key

    @property
    def chunk(self) -> Chunk:
        """The manifest entry."""
        return Chunk(
            self.memory_id,
            self.start,
            self.end,
            self.content_digest,
            self.long_event,
            self.code,
            self.events,
        )


class DeadChunk(NamedTuple):
    """A chunk row that is no more, and the change that ended it."""

    row: int
    change: int


@dataclass(frozen=True, slots=True)
class PointRow:
    """
    A stored vector.

    Attributes:
        id: Grows with every point added; never given twice.
        content: Row of the content it belongs to.
        scope: 0: made here. Else the only source row it counts for.
    """

    id: int
    content: int
    content_digest: bytes
    window: int
    windows: int
    rules: str
    scope: int
    vector: bytes


@dataclass(frozen=True, slots=True)
class OwedContent:
    """
    A content that still lacks vectors under the active rules.

    Attributes:
        stage: 0: nothing yet, the first window is due; 1: the other windows.
        have: Windows that are there.
    """

    content_digest: bytes
    content: str
    stage: int
    long_event: bool
    code: bool
    have: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class StoredCursor:
    """A cursor and the source it belongs to."""

    source: SourceId
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class StoredError:
    """
    Why a file could not be learned.

    Attributes:
        line: 1-based, where it applies.
        attempts: How often in a row.
    """

    path: str
    code: str
    reason: str
    line: int | None
    message: str
    remedy: str
    at_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One block of a snapshot by its place in it; `packed` as it is stored."""

    position: int
    start: int
    digest: bytes
    chars: int
    size: int
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class Fence:
    """
    What was taken away, and until which stamp that counts.

    Attributes:
        kind: `delete`, `purge` or `forget`.
        root: For `forget` the text that must not come back, else empty.
    """

    kind: str
    source: SourceId
    root: bytes
    stamp_ms: int
    stamp_counter: int
    stamp_device: str
    stamp_digest: bytes
    change: int
    created_ms: int


@dataclass(frozen=True, slots=True)
class StoreVerdict:
    """
    What comparing a snapshot with its manifest and rows showed.

    Attributes:
        missing: Memory ids that the text demands and no row has.
        changed: Memory ids whose row disagrees with the text.
        extra: Memory ids of rows outside the manifest.
        faults: What is wrong with the text or the totals, in plain words.
        pending: Contents of the source that still lack vectors.
        chars: Characters that could be read.
    """

    version: str
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    pending: int = 0
    chars: int = 0

    @property
    def sound(self) -> bool:
        """Nothing but vectors still owed is amiss."""
        return not (self.missing or self.changed or self.extra or self.faults)


@dataclass(frozen=True, slots=True)
class Statistics:
    """
    Counts and sizes.

    Attributes:
        text_chars: Of canonical text, as are `text_bytes`.
        packed_bytes: The same text as it is stored.
        vector_bytes: As if every vector were as long as the last one.
        db_bytes: Of the file, as are `wal_bytes`.
    """

    schema: int
    change: int
    sources: int
    chunks: int
    contents: int
    points: int
    owed: int
    blocks: int
    errors: int
    text_chars: int
    text_bytes: int
    packed_bytes: int
    vector_bytes: int
    db_bytes: int
    wal_bytes: int
    by_client: Mapping[str, int] = field(default_factory=dict)
