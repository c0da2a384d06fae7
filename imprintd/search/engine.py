"""
A question answered: words and vectors, neighbours, one hit for one text.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from imprintd.errors import ModelError, UsageError
from imprintd.model.source import SourceId
from imprintd.search import check, fusion
from imprintd.search.follow import Caches
from imprintd.search.lexical import Filter, Found
from imprintd.search.match import Match, locate
from imprintd.search.ports import (
    Archive,
    Asked,
    ChunkRow,
    EmbedQuery,
    Held,
    Hit,
    Mode,
    Results,
    Vector,
)
from imprintd.search.table import Mask
from imprintd.search.words import Asking, ask

LIMIT_MAX: Final = 100
PLACES_MAX: Final = 20
"""Places named with a hit; a text that stands in more of them says the first."""

WINDOWS_FOUND: Final = 200
WINDOWS_FOUND_MAX: Final = 1600
"""Windows asked for, and where the same text fills the first 200, at the most."""

POINTS_FOUND: Final = 300
OPENED_MAX: Final = 120
"""Chunks whose text is read for one answer."""

QUESTION_REFRESH_CHARS: Final = 400_000
"""Text that a question indexes itself before it is answered (about 50 ms)."""


@dataclass(slots=True)
class _Side:
    """Candidates of one side by slot: score, and where in the chunk."""

    scores: dict[int, float] = field(default_factory=dict)
    parts: dict[int, int] = field(default_factory=dict)
    windows: dict[int, tuple[int, int]] = field(default_factory=dict)
    folds: dict[int, int] = field(default_factory=dict)


class Search:
    """
    Search over one store. Safe to ask from several threads.

    Args:
        archive: The store.
        data_dir: Data directory; caches lie under `cache/`.
        embed_query: A question's vector; None: no model.
        rules: Fingerprint of the vectors that the model makes.
    """

    def __init__(
        self,
        archive: Archive,
        data_dir: Path,
        embed_query: EmbedQuery | None = None,
        rules: str | None = None,
    ) -> None:
        self._archive = archive
        self._embed = embed_query
        self.caches = Caches(archive, data_dir / "cache", rules if embed_query else None)

    @property
    def change(self) -> int:
        """All caches contain this change; the store may forget dead rows up to it."""
        return self.caches.change

    def use_model(self, embed_query: EmbedQuery | None, rules: str | None) -> None:
        """A model became ready, changed, or went."""
        self._embed = embed_query
        self.caches.use(rules if embed_query else None)

    def refresh(self) -> bool:
        """Catch up with the store to the end; cheap when nothing changed."""
        return self.caches.refresh()

    def close(self) -> None:
        """Put away what is worth keeping."""
        self.caches.close()

    def membership(self, source: SourceId, expected: Mapping[str, bytes]) -> Held:
        """
        Compare what the caches hold of a source with its manifest.

        Args:
            expected: Content digests by memory id.
        """
        self.caches.refresh()
        return check.membership(self.caches, self._archive, source, expected)

    def repair(self) -> None:
        """Throw the caches away and take everything from the store again."""
        self.caches.rebuild()

    def query(self, asked: Asked) -> Results:
        """
        Answer a question.

        Raises:
            UsageError: The question is empty or its limit out of range.
        """
        if not asked.text.strip():
            raise UsageError("the query is empty")
        if not 1 <= asked.limit <= LIMIT_MAX:
            raise UsageError(f"a search gives 1 to {LIMIT_MAX} hits")
        began = time.perf_counter()
        notes: list[str] = []
        if not self.caches.refresh(QUESTION_REFRESH_CHARS, wait_s=0.2):
            notes.append("the index is catching up: the newest text may be missing")
        asking = ask(asked.text)
        vector = self._vector(asked, notes)
        with self.caches.lock:
            hits, mode = self._answer(asked, asking, vector, notes)
        took_ms = (time.perf_counter() - began) * 1000
        return Results(tuple(hits), took_ms, mode, tuple(notes))

    def _vector(self, asked: Asked, notes: list[str]) -> Vector | None:
        if asked.mode == "lexical":
            return None
        vector = None
        if self._embed is not None:
            with contextlib.suppress(ModelError):
                vector = self._embed(asked.text)
        if vector is None:
            notes.append("no embedding model is ready: words only")
        return vector

    def _answer(
        self, asked: Asked, asking: Asking, vector: Vector | None, notes: list[str]
    ) -> tuple[list[Hit], Mode]:
        table = self.caches.table
        if not len(table):
            return [], "lexical" if vector is None else asked.mode
        mask = table.mask(asked)
        words, near = _Side(), _Side()
        if vector is not None:
            near = self._near(vector, mask)
            missing = table.unembedded()
            if missing:
                notes.append(f"{missing} chunks have no vector yet")
        if asked.mode != "vector" or vector is None:
            words = self._words(asked, asking, mask, notes)
        mode: Mode = "lexical" if vector is None else asked.mode
        scores = fusion.fused(words.scores, near.scores)
        return self._hits(asked, asking, mask, scores, words, near), mode

    # -- words

    def _words(self, asked: Asked, asking: Asking, mask: Mask, notes: list[str]) -> _Side:
        index, wanted = self.caches.words, self.caches.table.wanted(asked)
        if asking.empty:
            return _Side()
        side = self._rolled_up(self._found(asking, wanted), mask)
        if not side.scores and asking.phrases:
            loose = Asking((*asking.words, *asking.phrases), (), asking.runs)
            side = self._rolled_up(index.search(loose, wanted, WINDOWS_FOUND), mask)
            if side.scores:
                notes.append("nothing holds the quoted words together")
        side.scores = fusion.leading(side.scores, side.folds.__getitem__)
        self._with_neighbours(side, asking, mask)
        return side

    def _found(self, asking: Asking, wanted: Filter) -> list[Found]:
        """Enough windows that the same text in many places does not fill the list."""
        limit = WINDOWS_FOUND
        while True:
            found = self.caches.words.search(asking, wanted, limit)
            distinct = len({one.fold for one in found})
            if len(found) < limit or distinct >= WINDOWS_FOUND // 4 or limit >= WINDOWS_FOUND_MAX:
                return found
            limit *= 8

    def _rolled_up(self, found: Iterable[Found], mask: Mask) -> _Side:
        """The best window of each chunk; chunks that died or do not pass are left out."""
        table, side = self.caches.table, _Side()
        for one in found:
            slot = table.slot_of(one.row)
            if slot is not None and mask[slot] and one.score > side.scores.get(slot, 0.0):
                side.scores[slot] = one.score
                side.parts[slot] = one.part
                side.folds[slot] = one.fold
        return side

    def _with_neighbours(self, side: _Side, asking: Asking, mask: Mask) -> None:
        """Mix short chunks' scores with their neighbours', which may come in by it."""
        table = self.caches.table
        around = self._around(side.scores)
        if not around:
            return
        unknown = [slot for slot in _members(around) if slot not in side.scores]
        if unknown:
            rows = [table.row[slot] for slot in unknown]
            everything = np.ones(len(mask), np.bool_)
            more = self._rolled_up(self.caches.words.among(asking, rows), everything)
            for slot in unknown:
                side.scores[slot] = more.scores.get(slot, 0.0)
                if slot in more.parts:
                    side.parts[slot] = more.parts[slot]
                    side.folds[slot] = more.folds[slot]
        around.update(self._around(unknown))
        mixed = fusion.with_previous(side.scores, around)
        passing = {slot: score for slot, score in mixed.items() if mask[slot] and score > 0}
        side.scores = fusion.leading(passing, lambda slot: side.folds.get(slot, -1 - slot))

    def _around(self, slots: Iterable[int]) -> dict[int, tuple[int | None, int | None]]:
        table = self.caches.table
        return {
            slot: table.neighbours(slot, fusion.SHORT_CHARS)
            for slot in slots
            if table.is_short(slot, fusion.SHORT_CHARS)
        }

    # -- vectors

    def _near(self, vector: Vector, mask: Mask) -> _Side:
        table, index = self.caches.table, self.caches.vectors
        allowed = None if int(mask.sum()) == len(table) else table.points_under(mask)
        side = _Side()
        for point, score in zip(*index.search(vector, POINTS_FOUND, allowed), strict=True):
            number = table.point_at(int(point))
            if number is None:
                continue
            window = (table.point_window[number], table.point_windows[number])
            for count, slot in enumerate(table.slots_of_point(number)):
                if count >= fusion.GROUP_MAX:
                    break
                if mask[slot] and float(score) > side.scores.get(slot, -1.0):
                    side.scores[slot] = float(score)
                    side.windows[slot] = window
        side.scores = fusion.leading(side.scores, table.code.__getitem__)
        self._smooth(side, vector, mask)
        return side

    def _smooth(self, side: _Side, question: Vector, mask: Mask) -> None:
        """Score short chunks with their neighbours' vectors, which may come in by it."""
        table = self.caches.table
        around = self._around(side.scores)
        if not around:
            return
        newcomers = [slot for slot in _members(around) if slot not in side.scores and mask[slot]]
        around.update(self._around(newcomers))
        needed = {*around, *_members(around)}
        points = {slot: next(table.points_of(slot), None) for slot in needed}
        ids = {slot: table.point[n] for slot, n in points.items() if n is not None}
        vectors = self.caches.vectors.vectors(sorted(set(ids.values())))
        by_slot = {slot: vectors[point] for slot, point in ids.items() if point in vectors}
        for slot, (before, after) in around.items():
            own = by_slot.get(slot)
            if own is not None and mask[slot]:
                side.scores[slot] = fusion.smoothed(
                    own,
                    by_slot.get(before) if before is not None else None,
                    by_slot.get(after) if after is not None else None,
                    question,
                )
                side.windows.setdefault(slot, (0, 1))
        side.scores = fusion.leading(side.scores, table.code.__getitem__)

    # -- hits

    def _hits(
        self,
        asked: Asked,
        asking: Asking,
        mask: Mask,
        scores: Mapping[int, float],
        words: _Side,
        near: _Side,
    ) -> list[Hit]:
        table = self.caches.table
        groups = self._folded(scores, {**near.folds, **words.folds})
        weights = self.caches.words.weights(asking)
        narrow = asked.role is not None or asked.kind is not None
        found: list[tuple[float, int, ChunkRow, Match, list[int]]] = []
        opened = 0
        for batch in _batches(groups, asked.limit):
            slots = [group[0] for group in batch]
            rows = {
                row.row: row
                for row in self._archive.chunks_by_row(
                    [table.row[slot] for slot in slots], content=True
                )
            }
            opened += len(slots)
            for group in batch:
                slot = group[0]
                row = rows.get(table.row[slot])
                if row is None:
                    # It died since the caches were caught up.
                    continue
                match = locate(
                    row.content or "",
                    row.start,
                    row.events,
                    weights,
                    self.caches.words.tokens,
                    asked,
                    part=words.parts.get(slot),
                    window=near.windows.get(slot),
                )
                if match is not None:
                    score = scores[slot] * (match.share if narrow else 1.0)
                    found.append((score, slot, row, match, group))
            enough = len(found) >= (3 * asked.limit if narrow else asked.limit)
            if enough or opened >= max(OPENED_MAX, asked.limit):
                break
        found.sort(key=lambda item: (-item[0], -item[1]))
        return self._shown(found[: asked.limit], mask)

    def _folded(self, scores: Mapping[int, float], folds: dict[int, int]) -> list[list[int]]:
        """Slots that say the same as one group, best first, the best slot leading it."""
        table = self.caches.table
        unknown = [slot for slot in scores if slot not in folds]
        by_row = self.caches.words.folds([table.row[slot] for slot in unknown])
        for slot in unknown:
            # Not indexed yet: its content names it.
            folds[slot] = by_row.get(table.row[slot], -1 - table.code[slot])
        groups: dict[int, list[int]] = {}
        for slot in scores:
            groups.setdefault(folds[slot], []).append(slot)
        return list(groups.values())

    def _shown(
        self, found: Sequence[tuple[float, int, ChunkRow, Match, list[int]]], mask: Mask
    ) -> list[Hit]:
        table = self.caches.table
        slots_of = {item[1]: self._places(item[4], mask) for item in found}
        elsewhere = {
            table.row[slot] for first, slots in slots_of.items() for slot in slots if slot != first
        }
        rows = {
            row.row: row for row in self._archive.chunks_by_row(sorted(elsewhere), content=False)
        }
        hits = []
        for score, slot, row, match, _ in found:
            others = [rows.get(table.row[other]) for other in slots_of[slot] if other != slot]
            places = [_place(one) for one in (row, *others) if one is not None]
            hits.append(
                Hit(
                    memory_id=row.memory_id,
                    score=score,
                    workspace=row.source.workspace,
                    project=row.source.project,
                    source=row.source.key,
                    client=row.client,
                    kind=match.event.kind if match.event else "",
                    role=match.event.role if match.event else "",
                    start=match.start,
                    end=match.end,
                    excerpt=match.excerpt,
                    places=tuple(places),
                )
            )
        return hits

    def _places(self, group: Sequence[int], mask: Mask) -> list[int]:
        """Every slot with the text of a group, its leader first, up to a bound."""
        table = self.caches.table
        slots = dict.fromkeys(group)
        for slot in group:
            for other in table.slots_of_code(table.code[slot]):
                if len(slots) >= PLACES_MAX:
                    break
                if mask[other]:
                    slots.setdefault(other)
        return list(slots)[:PLACES_MAX]


def _place(row: ChunkRow) -> dict[str, Any]:
    return {
        "memory_id": row.memory_id,
        "source": row.source.key,
        "project": row.source.project,
        "start": row.start,
        "end": row.end,
    }


def _members(around: Mapping[int, tuple[int | None, int | None]]) -> list[int]:
    """Neighbours that are named, once each."""
    return list(dict.fromkeys(n for pair in around.values() for n in pair if n is not None))


def _batches(groups: Sequence[list[int]], size: int) -> Iterable[Sequence[list[int]]]:
    for at in range(0, len(groups), size):
        yield groups[at : at + size]
