"""
From scored chunks to hits: one for each text, with places and an excerpt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from imprintd.errors import IntegrityError
from imprintd.search.follow import Caches
from imprintd.search.match import Match, locate
from imprintd.search.ports import Archive, Asked, ChunkRow, Hit
from imprintd.search.sides import Side
from imprintd.search.table import Mask
from imprintd.search.words import Asking

PLACES_MAX: Final = 20
"""Places named with a hit; a text that stands in more of them names the first."""

OPENED_MAX: Final = 120
"""Chunks whose text is read for one answer."""


class Hits:
    """Opens chunks and shows them; the caches' lock is held by the caller."""

    def __init__(self, archive: Archive, caches: Caches) -> None:
        self._archive = archive
        self._caches = caches

    def open(
        self,
        asked: Asked,
        asking: Asking,
        mask: Mask,
        scores: Mapping[int, float],
        words: Side,
        near: Side,
        notes: list[str],
    ) -> list[Hit]:
        """
        The hits of an answer.

        Args:
            mask: Slots that may be named.
            scores: Fused, by slot, best first.
            words: Candidates by words.
            near: Candidates by vectors.
            notes: Gets what the user should know.
        """
        table = self._caches.table
        groups = self._folded(scores, dict(words.folds), 4 * asked.limit)
        weights = self._caches.words.weights(asking)
        narrow = asked.role is not None or asked.kind is not None
        found: list[tuple[float, int, ChunkRow, Match, list[int]]] = []
        opened = 0
        for batch in _batches(groups, asked.limit):
            slots = [group[0] for group in batch]
            rows = self._texts([table.row[slot] for slot in slots], notes)
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
                    self._caches.words.tokens,
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

    def _texts(self, rows: Sequence[int], notes: list[str]) -> dict[int, ChunkRow]:
        """Chunks with their text by row; those whose text is damaged are left out."""
        try:
            return {row.row: row for row in self._archive.chunks_by_row(rows, content=True)}
        except IntegrityError:
            found: dict[int, ChunkRow] = {}
            for row in rows:
                with contextlib.suppress(IntegrityError):
                    found.update(
                        {one.row: one for one in self._archive.chunks_by_row([row], content=True)}
                    )
            notes.append("some stored text is damaged: run `imprintd verify --all`")
            return found

    def _folded(
        self, scores: Mapping[int, float], folds: dict[int, int], looked_up: int
    ) -> list[list[int]]:
        """Slots that say the same as one group, best first, the best slot leading it."""
        table = self._caches.table
        unknown = [slot for slot in scores if slot not in folds]
        # A look-up walks the dictionary of rows, so only for what may be shown.
        near_top = [slot for slot in list(scores)[:looked_up] if slot not in folds]
        by_row = self._caches.words.folds([table.row[slot] for slot in near_top])
        for slot in unknown:
            # Its content names it.
            folds[slot] = by_row.get(table.row[slot], -1 - table.code[slot])
        groups: dict[int, list[int]] = {}
        for slot in scores:
            groups.setdefault(folds[slot], []).append(slot)
        return list(groups.values())

    def _shown(
        self, found: Sequence[tuple[float, int, ChunkRow, Match, list[int]]], mask: Mask
    ) -> list[Hit]:
        table = self._caches.table
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
        table = self._caches.table
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


def _batches(groups: Sequence[list[int]], size: int) -> Iterable[Sequence[list[int]]]:
    for at in range(0, len(groups), size):
        yield groups[at : at + size]
