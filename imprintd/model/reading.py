"""
How far a file has been read, and what one reading of it gave.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from imprintd.model.event import Event
from imprintd.model.source import Coverage


@dataclass(frozen=True, slots=True)
class Cursor:
    """
    A durable place in a source file.

    An inode alone is no identity (delete and recreate gave the same one 50 of
    50 times on ext4), so the start and the last committed bytes are hashed.

    Attributes:
        path: Absolute path, as text (surrogateescape).
        device: st_dev.
        inode: st_ino.
        offset: Bytes consumed, always just past a newline or a whole record.
            For a compressed file: of the decompressed stream.
        fingerprint: SHA-256 of the first min(1024, offset) bytes.
        anchor: SHA-256 of the last min(64, offset) consumed bytes.
        size: File size when it was last looked at.
        mtime_ns: Likewise.
        lines: Complete lines consumed.
        compressed: The file was a zstd stream.
    """

    path: str
    device: int
    inode: int
    offset: int
    fingerprint: bytes
    anchor: bytes
    size: int
    mtime_ns: int
    lines: int
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """
    What a reader made of some bytes.

    Attributes:
        events: In file order; nothing emitted is ever withdrawn.
        consumed: Bytes of the input that are done with. The rest is an
            unfinished line and comes again, longer, with the next reading.
        lines: Complete lines among them.
        state: The reader's continuation: opaque, bounded in size (it does
            not grow with the conversation), stable across versions of the
            reader within one learner version.
        record_keys: One 8-byte key for every record that gave events here,
            in order; the driver stores them in the ledger.
        coverage: Counts of this reading alone.
        project: The working directory, once the records say it.
        title: The client's own title, once the records say it.
        first_question: The first typed question, once it is known.
        updated: Latest record timestamp seen in these bytes (ISO 8601).
    """

    events: tuple[Event, ...] = ()
    consumed: int = 0
    lines: int = 0
    state: bytes = b""
    record_keys: tuple[bytes, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    project: str | None = None
    title: str | None = None
    first_question: str | None = None
    updated: str | None = None
