"""
Candidates of each side, words and vectors, short chunks among their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from imprintd.search import filters, fusion
from imprintd.search.follow import Caches
from imprintd.search.ports import Asked, Vector
from imprintd.search.records import Found, Prepared
from imprintd.search.table import Mask
from imprintd.search.words import Asking

WINDOWS_FOUND: Final = 200
WINDOWS_FOUND_MAX: Final = 1600
"""Windows asked for, and where the same text fills the first 200, at the most."""

POINTS_FOUND: Final = 300


@dataclass(slots=True)
class Side:
    """
    Candidates of one side, by slot.

    Attributes:
        scores: BM25 or cosine.
        parts: Window of the words' match.
        windows: Window of the vector's match, and how many the chunk has.
        folds: Equal where chunks say the same.
    """

    scores: dict[int, float] = field(default_factory=dict)
    parts: dict[int, int] = field(default_factory=dict)
    windows: dict[int, tuple[int, int]] = field(default_factory=dict)
    folds: dict[int, int] = field(default_factory=dict)


class Sides:
    """Asks the caches; their lock is held by the caller."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def words(self, asked: Asked, asking: Asking, mask: Mask, notes: list[str]) -> Side:
        """
        Chunks that hold the words.

        Args:
            mask: Slots that may be found.
            notes: Gets what the user should know.
        """
        index, chosen = self._caches.words, filters.wanted(self._caches.table, asked)
        if asking.empty:
            return Side()
        prepared = index.prepare(asking, chosen)
        side = self._rolled_up(self._found(prepared), mask)
        if not side.scores and asking.phrases:
            prepared = index.prepare(
                Asking((*asking.words, *asking.phrases), (), asking.runs), chosen
            )
            side = self._rolled_up(self._found(prepared), mask)
            if side.scores:
                notes.append("nothing holds the quoted words together")
        side.scores = fusion.leading(side.scores, side.folds.__getitem__)
        matching = set(side.scores)
        self._with_neighbours(side, prepared, mask)
        if asked.mode == "lexical" or asking.phrases:
            # Words were asked for, so each hit has some of them.
            side.scores = {s: score for s, score in side.scores.items() if s in matching}
        return side

    def _found(self, prepared: Prepared) -> list[Found]:
        """Enough windows that the same text in many places does not fill the list."""
        limit = WINDOWS_FOUND
        while True:
            found = self._caches.words.search(prepared, limit)
            distinct = len({one.fold for one in found})
            if len(found) < limit or distinct >= WINDOWS_FOUND // 4 or limit >= WINDOWS_FOUND_MAX:
                return found
            limit *= 8

    def _rolled_up(self, found: Iterable[Found], mask: Mask) -> Side:
        """The best window of each chunk; chunks that died or do not pass are left out."""
        table, side = self._caches.table, Side()
        for one in found:
            slot = table.slot_of(one.row)
            if slot is not None and mask[slot] and one.score > side.scores.get(slot, 0.0):
                side.scores[slot] = one.score
                side.parts[slot] = one.part
                side.folds[slot] = one.fold
        return side

    def _with_neighbours(self, side: Side, prepared: Prepared, mask: Mask) -> None:
        """Mix short chunks' scores with their neighbours', which may come in by it."""
        table = self._caches.table
        around = self._around(side.scores)
        if not around:
            return
        unknown = [slot for slot in _members(around) if slot not in side.scores]
        if unknown:
            rows = [table.row[slot] for slot in unknown]
            everything = np.ones(len(mask), np.bool_)
            more = self._rolled_up(self._caches.words.among(prepared, rows), everything)
            for slot in unknown:
                side.scores[slot] = more.scores.get(slot, 0.0)
                if slot in more.parts:
                    side.parts[slot] = more.parts[slot]
                    side.folds[slot] = more.folds[slot]
        around.update(self._around(unknown))
        mixed = fusion.drawn_up(side.scores, around)
        passing = {slot: score for slot, score in mixed.items() if mask[slot] and score > 0}
        side.scores = fusion.leading(passing, lambda slot: side.folds.get(slot, -1 - slot))

    def _around(self, slots: Iterable[int]) -> dict[int, tuple[int | None, int | None]]:
        table = self._caches.table
        return {
            slot: table.neighbours(slot, fusion.SHORT_CHARS)
            for slot in slots
            if table.is_short(slot, fusion.SHORT_CHARS)
        }

    def near(self, vector: Vector, mask: Mask) -> Side:
        """Chunks whose vectors are near the question's."""
        table, index = self._caches.table, self._caches.vectors
        allowed = None if int(mask.sum()) == len(table) else filters.points_under(table, mask)
        side = Side()
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

    def _smooth(self, side: Side, question: Vector, mask: Mask) -> None:
        """Score short chunks with their neighbours' vectors, which may come in by it."""
        table = self._caches.table
        around = self._around(side.scores)
        if not around:
            return
        newcomers = [slot for slot in _members(around) if slot not in side.scores and mask[slot]]
        around.update(self._around(newcomers))
        needed = {*around, *_members(around)}
        points = {slot: next(table.points_of(slot), None) for slot in needed}
        ids = {slot: table.point[n] for slot, n in points.items() if n is not None}
        vectors = self._caches.vectors.vectors(sorted(set(ids.values())))
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


def _members(around: Mapping[int, tuple[int | None, int | None]]) -> list[int]:
    """Neighbours that are named, once each."""
    return list(dict.fromkeys(n for pair in around.values() for n in pair if n is not None))
