"""A store in memory with the methods that search asks for, and a toy embedding."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from imprintd.errors import IntegrityError
from imprintd.model.event import KINDS, ROLES, Event, EventSpan
from imprintd.model.source import SourceId
from imprintd.search.ports import ERASED_SETTING, Vector
from imprintd.text.canonical import render_all

RULES = "toy-1"
DIMENSION = 64


@dataclass(frozen=True, slots=True)
class Row:
    row: int
    source_row: int
    source: SourceId
    client: str
    device: str
    language: str | None
    updated_ms: int
    memory_id: str
    start: int
    end: int
    content_digest: bytes
    events: tuple[EventSpan, ...]
    roles: int
    kinds: int
    first_ms: int | None
    last_ms: int | None
    born: int
    content: str | None


@dataclass(frozen=True, slots=True)
class Dead:
    row: int
    change: int


@dataclass(frozen=True, slots=True)
class Fence:
    change: int


@dataclass(frozen=True, slots=True)
class PointRow:
    id: int
    content_digest: bytes
    window: int
    windows: int
    rules: str
    scope: int
    vector: bytes


def said(
    body: str, role: str = "user", kind: str = "message", timestamp: str | None = None
) -> Event:
    return Event(role, kind, body, 1, timestamp)  # type: ignore[arg-type]


def digest_of(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


def toy_vector(text: str) -> Vector:
    """Words hashed into 64 dimensions: near where words are shared."""
    vector = np.full(DIMENSION, 1e-3, np.float32)
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode("utf-8", "replace")).digest()[0] % DIMENSION] += 1
    return vector / np.linalg.norm(vector)


class FakeArchive:
    def __init__(self) -> None:
        self.index_id = "life-1"
        self.settings: dict[str, str] = {}
        self.calls: Counter[str] = Counter()
        self.damaged: set[int] = set()
        self._change = 0
        self._rows: dict[int, Row] = {}
        self._dead: list[Dead] = []
        self._fences: list[Fence] = []
        self._points: dict[int, PointRow] = {}
        self._sources: dict[SourceId, int] = {}
        self._next_row = 1
        self._next_point = 1

    # -- what the tests do

    def add(
        self,
        key: str,
        content: str | Sequence[Event],
        *,
        project: str = "/shop",
        workspace: str = "default",
        client: str = "claude",
        device: str = "d1",
        language: str | None = None,
        updated_ms: int = 1_000_000,
        first_ms: int | None = None,
        last_ms: int | None = None,
        start: int = 0,
    ) -> Row:
        """A chunk of text, or of events as canonical text, at `start` of its source."""
        events: tuple[EventSpan, ...] = ()
        if not isinstance(content, str):
            content, events = render_all(content, start)
        source = SourceId(workspace, project, key)
        self._change += 1
        digest = digest_of(content)
        row = Row(
            self._next_row,
            self._sources.setdefault(source, len(self._sources) + 1),
            source,
            client,
            device,
            language,
            updated_ms,
            f"m{digest.hex()[:12]}{self._next_row:04d}",
            start,
            start + len(content),
            digest,
            events,
            sum(1 << ROLES.index(role) for role in {e.role for e in events}),
            sum(1 << KINDS.index(kind) for kind in {e.kind for e in events}),
            first_ms,
            last_ms,
            self._change,
            content,
        )
        self._rows[row.row] = row
        self._next_row += 1
        return row

    def embed(self, row: Row, windows: int = 1, *, scope: int = 0, rules: str = RULES) -> None:
        size = -(-len(row.content or "") // windows)
        for number in range(windows):
            text = (row.content or "")[number * size : (number + 1) * size]
            self.add_vector(row, toy_vector(text), number, windows, scope=scope, rules=rules)

    def add_vector(
        self,
        row: Row,
        vector: Vector,
        window: int = 0,
        windows: int = 1,
        *,
        scope: int = 0,
        rules: str = RULES,
    ) -> None:
        point = PointRow(
            self._next_point,
            row.content_digest,
            window,
            windows,
            rules,
            scope,
            vector.astype("<f2").tobytes(),
        )
        self._points[point.id] = point
        self._next_point += 1

    def kill(self, row: Row) -> None:
        self._change += 1
        del self._rows[row.row]
        self._dead.append(Dead(row.row, self._change))
        if all(other.content_digest != row.content_digest for other in self._rows.values()):
            self._points = {
                number: point
                for number, point in self._points.items()
                if point.content_digest != row.content_digest
            }

    def purge(self, row: Row) -> None:
        self.kill(row)
        self._fences.append(Fence(self._change))

    def scrub(self, row: Row, content: str) -> Row:
        """Text replaced by a stricter redaction, without a fence."""
        self.kill(row)
        fresh = self.add(row.source.key, content, project=row.source.project, start=row.start)
        self.settings[ERASED_SETTING] = str(self._change)
        return fresh

    def live(self) -> dict[int, Row]:
        return dict(self._rows)

    def _check(self, rows: Sequence[int], *, content: bool) -> None:
        if content and self.damaged.intersection(rows):
            raise IntegrityError("a stored text lacks a block")

    # -- what search asks

    def change(self) -> int:
        self.calls["change"] += 1
        return self._change

    def setting(self, key: str) -> str | None:
        return self.settings.get(key)

    def fences_after(self, change: int, limit: int) -> list[Fence]:
        return [fence for fence in self._fences if fence.change > change][:limit]

    def chunks_born_after(
        self, change: int, limit: int, *, after_row: int, content: bool
    ) -> list[Row]:
        self.calls["born with text" if content else "born"] += 1
        found = [r for r in self._rows.values() if r.born > change and r.row > after_row]
        self._check([r.row for r in found[:limit]], content=content)
        return [r if content else replace(r, content=None) for r in found[:limit]]

    def chunks_died_after(self, change: int, limit: int, *, after_row: int) -> list[Dead]:
        found = sorted(
            (d for d in self._dead if d.change > change and d.row > after_row),
            key=lambda d: d.row,
        )
        return found[:limit]

    def chunks_by_row(self, rows: Sequence[int], *, content: bool) -> list[Row]:
        self.calls["texts read" if content else "rows read"] += len(rows)
        found = [self._rows[row] for row in rows if row in self._rows]
        self._check(rows, content=content)
        return [r if content else replace(r, content=None) for r in found]

    def points_after(self, point_id: int, limit: int) -> list[PointRow]:
        self.calls["points"] += 1
        return [p for n, p in self._points.items() if n > point_id][:limit]

    def points_by_id(self, ids: Sequence[int]) -> list[PointRow]:
        return [self._points[number] for number in ids if number in self._points]
