"""
What the learn room needs from others: small protocols, declared by the consumer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from imprintd.model.reading import Cursor
from imprintd.model.snapshot import SnapshotUpdate
from imprintd.model.source import Coverage, SourceId, SourceMeta


class KnownHead(Protocol):
    """The part of a stored head that learning decides by."""

    @property
    def source(self) -> SourceId: ...
    @property
    def meta(self) -> SourceMeta: ...
    @property
    def version(self) -> str: ...
    @property
    def learner(self) -> int: ...
    @property
    def profile(self) -> str: ...
    @property
    def coverage(self) -> Coverage: ...


class Archive(Protocol):
    """Read access to what is already known; a read-only store provides it."""

    def known(self, workspace: str, key: str) -> KnownHead | None:
        """The head of a source key in a workspace, whatever its project."""
        ...

    def cursor(self, workspace: str, path: str) -> tuple[str, Cursor] | None:
        """Source key and cursor last stored for a path."""
        ...

    def cursors_of(self, workspace: str, key: str) -> Sequence[Cursor]:
        """All cursors of a source, for files that moved."""
        ...

    def reader_state(self, source: SourceId) -> bytes:
        """The reader's continuation stored with the head."""
        ...

    def ledger_counts(self, source: SourceId, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """How often each record key was taken into the text."""
        ...

    def text_of(self, source: SourceId) -> str:
        """The whole stored text of a source."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """
    One file to learn.

    Attributes:
        path: Absolute path.
        final: The file has been quiet; a last record without newline counts.
        salvage: Take whole records of damaged lines, count the torn bytes.
        force: Read from the first byte even where the cursor says unchanged.
    """

    path: str
    final: bool = False
    salvage: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What came of a job.

    Attributes:
        job: As given.
        status: `learned` carries an update to publish; `unchanged`, `skipped`
            (not a transcript, or left out by the user) and `failed` do not.
        update: For `learned`.
        key: Source key, where the file was recognised.
        reason: Short stable word for `skipped` and `failed`.
        message: One sentence for the user.
        remedy: What to do about it.
        line: 1-based line, where it applies.
        bytes_read: Bytes of the transcript that were read.
        notes: Things to say in the status, such as `file-replaced`.
    """

    job: Job
    status: str
    update: SnapshotUpdate | None = None
    key: str | None = None
    reason: str = ""
    message: str = ""
    remedy: str = ""
    line: int | None = None
    bytes_read: int = 0
    notes: tuple[str, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
