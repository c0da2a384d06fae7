"""
What search needs from the store and what it answers with.

The store is the truth. Search keeps two caches of it (words in a folder,
vectors in memory) and a table of the live chunks; each says up to which change
number it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from imprintd.model.event import EventSpan, Kind, Role
from imprintd.model.source import SourceId

Vector = npt.NDArray[np.float32]
Mode = Literal["hybrid", "lexical", "vector"]

EmbedQuery = Callable[[str], Vector | None]
"""A question's vector of length 1, float32 (dimension,); None: no model is ready."""


class ChunkRow(Protocol):
    """
    A live chunk with what search filters by.

    `row` grows with every chunk born and never comes back; `source_row` names
    the source; `roles` and `kinds` are bit masks over the model's ROLES and
    KINDS; `first_ms` and `last_ms` bound the events' times where they can be
    read; `born` is a change number; `content` is None where it was not asked for.
    """

    @property
    def row(self) -> int: ...
    @property
    def source_row(self) -> int: ...
    @property
    def source(self) -> SourceId: ...
    @property
    def client(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def language(self) -> str | None: ...
    @property
    def updated_ms(self) -> int: ...
    @property
    def memory_id(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def content_digest(self) -> bytes: ...
    @property
    def events(self) -> tuple[EventSpan, ...]: ...
    @property
    def roles(self) -> int: ...
    @property
    def kinds(self) -> int: ...
    @property
    def first_ms(self) -> int | None: ...
    @property
    def last_ms(self) -> int | None: ...
    @property
    def born(self) -> int: ...
    @property
    def content(self) -> str | None: ...


class DeadChunk(Protocol):
    """A chunk row that is no more, and the change that ended it."""

    @property
    def row(self) -> int: ...
    @property
    def change(self) -> int: ...


class PointRow(Protocol):
    """
    A stored vector, float16 little endian; `scope` 0: counts for its content
    wherever it stands, else for that source row only.
    """

    @property
    def id(self) -> int: ...
    @property
    def content_digest(self) -> bytes: ...
    @property
    def window(self) -> int: ...
    @property
    def windows(self) -> int: ...
    @property
    def rules(self) -> str: ...
    @property
    def scope(self) -> int: ...
    @property
    def vector(self) -> bytes: ...


class Fence(Protocol):
    """Something that was deleted or purged, and the change that did it."""

    @property
    def change(self) -> int: ...


class Archive(Protocol):
    """The store, for reading."""

    @property
    def index_id(self) -> str:
        """Names the life of the change log; another one: change numbers start anew."""
        ...

    def change(self) -> int:
        """The last committed change number."""
        ...

    def setting(self, key: str) -> str | None:
        """`ERASED_SETTING` is asked for."""
        ...

    def fences_after(self, change: int, limit: int) -> Sequence[Fence]:
        """Deletions and purges after a change, in order of change."""
        ...

    def chunks_born_after(
        self, change: int, limit: int, *, after_row: int, content: bool
    ) -> Sequence[ChunkRow]:
        """Live rows born after a change and above a row, in order of row."""
        ...

    def chunks_died_after(self, change: int, limit: int, *, after_row: int) -> Sequence[DeadChunk]:
        """Rows above a row that died after a change, in order of row."""
        ...

    def chunks_by_row(self, rows: Sequence[int], *, content: bool) -> Sequence[ChunkRow]:
        """Those of the rows that live, in any order."""
        ...

    def points_after(self, point_id: int, limit: int) -> Sequence[PointRow]:
        """Vectors added after a point, in order of id."""
        ...

    def points_by_id(self, ids: Sequence[int]) -> Sequence[PointRow]:
        """Those of the points that still stand, in any order."""
        ...


ERASED_SETTING: Final = "erased_change"
"""
Setting of the store: the last change that took text away for good without a
fence (a stricter redaction, one forgotten memory). Words are then indexed anew.
"""


class Asked(Protocol):
    """One search as it is asked; `Query` is one."""

    @property
    def text(self) -> str: ...
    @property
    def workspace(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    @property
    def client(self) -> str | None: ...
    @property
    def kind(self) -> Kind | None: ...
    @property
    def role(self) -> Role | None: ...
    @property
    def device(self) -> str | None: ...
    @property
    def language(self) -> str | None: ...
    @property
    def since_ms(self) -> int | None: ...
    @property
    def until_ms(self) -> int | None: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def limit(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Query:
    """
    One search.

    Attributes:
        text: As people type it. A part in double quotes must stand together.
        project: A folder (its sub-folders count), or the end of its path.
        kind: The match lies in an event of this kind.
        role: Likewise of this role.
        device: Device that learned it.
        language: BCP 47 tag; `de` finds `de-CH` as well.
        since_ms: Not before, ms since the epoch.
        until_ms: Not after.
        limit: Hits at the most, 1 to 100.
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


@dataclass(frozen=True, slots=True)
class Hit:
    """
    One thing found.

    Attributes:
        memory_id: The chunk.
        score: 0 to 1 within this answer; no measure across answers.
        source: Source key.
        kind: Of the event under the match; empty for files.
        role: Likewise.
        start: First character of the excerpt in the source's text.
        end: One past its last one.
        excerpt: At most about 400 characters around the match.
        places: Every place that holds the same text, this one first:
            `memory_id`, `source`, `project`, `start`, `end`.
    """

    memory_id: str
    score: float
    workspace: str
    project: str
    source: str
    client: str
    kind: str
    role: str
    start: int
    end: int
    excerpt: str
    places: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """
    An answer.

    Attributes:
        mode: What was really used, whatever was asked for.
        notes: What the user should know, such as vectors that are not ready.
    """

    hits: tuple[Hit, ...]
    took_ms: float
    mode: Mode
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """
    What the caches hold of a source, against what they should: memory ids.

    Attributes:
        missing: Expected, but words or table do not know it.
        changed: Held with another content.
        extra: Held but not expected; rows that are gone have a `row:` name.
        reasons: What is wrong, in plain words.
    """

    missing: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Nothing is amiss."""
        return not (self.missing or self.changed or self.extra or self.reasons)
