"""
What answering needs from the store and from search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from imprintd.model.event import Kind, Role
from imprintd.model.snapshot import Head
from imprintd.model.source import SourceId

Mode = Literal["hybrid", "lexical", "vector"]


@dataclass(frozen=True, slots=True)
class Question:
    """
    One search.

    Attributes:
        text: As people type it; never a query language by accident.
        limit: Hits at the most.
        since_ms: Not before, milliseconds since the epoch.
        until_ms: Not after.
    """

    text: str
    workspace: str = "default"
    project: str | None = None
    client: str | None = None
    kind: Kind | None = None
    role: Role | None = None
    device: str | None = None
    language: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    mode: Mode = "hybrid"
    limit: int = 10


class Hit(Protocol):
    """One search hit."""

    @property
    def memory_id(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def workspace(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def client(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def excerpt(self) -> str: ...
    @property
    def places(self) -> Sequence[Mapping[str, Any]]: ...


class Results(Protocol):
    """What a search found, and how."""

    @property
    def hits(self) -> Sequence[Hit]: ...
    @property
    def mode(self) -> str: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def took_ms(self) -> float: ...


class Held(Protocol):
    """What the search caches hold of a source, against what they should: memory ids."""

    @property
    def missing(self) -> AbstractSet[str]: ...
    @property
    def changed(self) -> AbstractSet[str]: ...
    @property
    def extra(self) -> AbstractSet[str]: ...
    @property
    def reasons(self) -> Sequence[str]: ...


class Finder(Protocol):
    """Search."""

    def query(self, question: Question) -> Results: ...

    def membership(self, source: SourceId, expected: Mapping[str, bytes]) -> Held:
        """Compare memory ids and content digests with what the caches hold."""
        ...


class ChunkRow(Protocol):
    """A stored chunk."""

    @property
    def memory_id(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def content_digest(self) -> bytes: ...
    @property
    def long_event(self) -> bool: ...
    @property
    def source(self) -> SourceId: ...
    @property
    def version(self) -> str: ...
    @property
    def content(self) -> str | None: ...


class Page(Protocol):
    """A page of text."""

    @property
    def text(self) -> str: ...
    @property
    def next_start(self) -> int | None: ...
    @property
    def total_chars(self) -> int: ...
    @property
    def version(self) -> str: ...


class StoreVerdict(Protocol):
    """What the store says of one source's own consistency."""

    @property
    def missing(self) -> Sequence[str]: ...
    @property
    def changed(self) -> Sequence[str]: ...
    @property
    def extra(self) -> Sequence[str]: ...
    @property
    def pending(self) -> int: ...
    @property
    def faults(self) -> Sequence[str]: ...


class Archive(Protocol):
    """The store, for reading."""

    def heads(self, *, workspace: str | None, client: str | None) -> Iterable[Head]:
        """The latest update first."""
        ...

    def resolve(self, workspace: str, prefix: str, project: str | None) -> Head: ...
    def page(self, head: Head, start: int, max_chars: int, version: str | None) -> Page: ...
    def text(self, head: Head) -> str: ...
    def chunk_rows(
        self, head: Head, first: int = 0, count: int | None = None, *, content: bool = False
    ) -> Sequence[ChunkRow]: ...
    def chunk_by_memory_id(self, workspace: str, memory_id: str) -> ChunkRow:
        """With its content."""
        ...

    def verify(self, head: Head) -> StoreVerdict: ...
