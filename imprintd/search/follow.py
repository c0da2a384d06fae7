"""
Following the store: table, words and vectors caught up by change number.

Refreshing is cheap when nothing changed (two small reads). It writes under a
lock of its own, so that questions go on while a long catch-up runs, and takes
the caches' lock only for moments.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from imprintd.search.entries import entries_of
from imprintd.search.generations import Generations
from imprintd.search.index import Page, VectorIndex, from_halves
from imprintd.search.lexical import Lexical
from imprintd.search.pages import ROWS_PAGE, TEXT_PAGE, dead_rows, last_erased, text_page
from imprintd.search.ports import Archive, PointRow
from imprintd.search.records import SCHEMA, Entry, State
from imprintd.search.table import Table

POINTS_PAGE: Final = 4000
COMMIT_CHARS: Final = 24_000_000
"""Text that goes into one commit of a long catch-up."""

GATHERED_MAX: Final = 1000
"""Vectors without a chunk that may gather before they are removed."""


class Caches:
    """
    The three caches of one store.

    Args:
        archive: The store.
        folder: Cache folder; made if absent, mode 0700.
        rules: Fingerprint of the vectors that count; None: no model, none do.

    Attributes:
        lock: Held while table, words or vectors change or are read.
    """

    def __init__(self, archive: Archive, folder: Path, rules: str | None) -> None:
        self.lock = threading.RLock()
        self._refreshing = threading.Lock()
        self._archive = archive
        self._folder = folder
        self._rules = rules
        self._index_id = archive.index_id
        self._change = 0
        self._last_point = 0
        self._swept = 0
        self._sweep_due = False
        self._loaded = False
        self.table = Table()
        self.vectors = VectorIndex(self._stored)
        self._generations = Generations(folder / "lexical")
        self.words = self._generations.open()
        self._next: Lexical | None = None

    # -- state

    @property
    def change(self) -> int:
        """Every cache contains this change; the store may forget dead rows up to it."""
        return min(self._change, self._writing.state.change)

    @property
    def behind(self) -> bool:
        """The store has gone on since the last refresh."""
        return self.change != self._archive.change()

    def use(self, rules: str | None) -> None:
        """Count vectors made under other rules from now on (a model came or changed)."""
        with self._refreshing, self.lock:
            if rules != self._rules:
                self._rules = rules
                self._forget_table()

    # -- following

    def refresh(self, chars_max: int | None = None, wait_s: float = -1) -> bool:
        """
        Catch up with the store.

        Args:
            chars_max: Stop indexing words after about so much text; None: go on
                to the end.
            wait_s: For another refresh that is under way; -1: as long as it takes.

        Returns:
            Everything is contained that was committed before the call.
        """
        if not self._refreshing.acquire(timeout=wait_s):
            return False
        try:
            self._check_life()
            upto = self._archive.change()
            self._follow_rows(upto)
            self._follow_points()
            return self._follow_words(upto, chars_max)
        finally:
            self._refreshing.release()

    def rebuild(self) -> None:
        """Throw everything away and take it from the store again."""
        with self._refreshing:
            with self.lock:
                self._forget_table()
            self._vector_file.unlink(missing_ok=True)
            self._new_words()
        self.refresh()

    def renew_words(self) -> None:
        """Another folder for the index of words: the one in use cannot be read or written."""
        with self._refreshing:
            self._new_words()

    def close(self) -> None:
        """Keep the vectors' index if it is worth a file."""
        with self._refreshing:
            self._save_vectors()

    def _check_life(self) -> None:
        if self._archive.index_id != self._index_id:
            with self.lock:
                self._index_id = self._archive.index_id
                self._forget_table()
            self._vector_file.unlink(missing_ok=True)
        state = self._writing.state
        other_life = state.index_id not in ("", self._index_id)
        future = state.change > self._archive.change()
        older = state.schema != SCHEMA
        if older or other_life or future:
            self._new_words()
        elif self._erased_after(state) > state.erased:
            # The old folder answers until the new one is whole; what was erased
            # is no live row any more and so is never shown.
            if self._next is not None:
                self._next.drop()
            self._next = self._generations.after(self._writing)
            self._sweep_due = True

    def _erased_after(self, state: State) -> int:
        """The last erasure that the index of words may still hold; 0 while it holds nothing."""
        if state.change == 0 and state.row == 0:
            return 0
        return max(state.erased, last_erased(self._archive, state.erased))

    def _follow_rows(self, upto: int) -> None:
        if upto == self._change and self._loaded:
            return
        row = 0
        # An empty table holds nothing that could have died.
        while self._loaded:
            dead = self._archive.chunks_died_after(self._change, ROWS_PAGE, after_row=row)
            with self.lock:
                for one in dead:
                    self.table.kill(one.row)
            if len(dead) < ROWS_PAGE:
                break
            row = dead[-1].row
        row = 0
        while True:
            born = self._archive.chunks_born_after(
                self._change, ROWS_PAGE, after_row=row, content=False
            )
            with self.lock:
                for chunk in born:
                    self.table.add(chunk)
            if len(born) < ROWS_PAGE:
                break
            row = born[-1].row
        self._change = upto
        self._loaded = True

    def _follow_words(self, upto: int, chars_max: int | None) -> bool:
        words = self._writing
        state = words.state
        if state.change == upto:
            return self._take_over()
        base = dataclasses.replace(state, index_id=self._index_id)
        if state.change == 0 and state.row == 0:
            base = dataclasses.replace(base, erased=last_erased(self._archive, 0))
        drop = dead_rows(self._archive, state.change)
        left = chars_max
        entries: list[Entry] = []
        chars, row = 0, state.row
        while left is None or left > 0:
            page = text_page(self._archive, state.change, row)
            for chunk in page:
                entries += entries_of(chunk)
                size = len(chunk.content or "")
                chars += size
                left = None if left is None else left - size
                row = chunk.row
                if left is not None and left <= 0:
                    break
            else:
                if len(page) < TEXT_PAGE:
                    words.write(entries, drop, dataclasses.replace(base, change=upto, row=0))
                    return self._take_over()
            if chars >= COMMIT_CHARS:
                words.write(entries, drop, dataclasses.replace(base, row=row))
                entries, drop, chars = [], [], 0
        if entries or drop:
            words.write(entries, drop, dataclasses.replace(base, row=row))
        return False

    # -- words

    @property
    def _writing(self) -> Lexical:
        """The index of words that is caught up: the next one while there is one."""
        return self.words if self._next is None else self._next

    def _new_words(self) -> None:
        """Another, empty folder; the old one goes with all it holds."""
        unfinished, fresh = self._next, self._generations.after(self._writing)
        if unfinished is not None:
            unfinished.drop()
        self._next = fresh
        self._take_over()

    def _take_over(self) -> bool:
        """The next index of words, now whole, takes the place of the one in use."""
        if self._next is not None:
            old = self.words
            with self.lock:
                self.words, self._next = self._next, None
            old.drop()
        return True

    # -- vectors

    @property
    def _vector_file(self) -> Path:
        return self._folder / "vectors"

    def _stored(self, ids: Sequence[int]) -> dict[int, bytes]:
        return {point.id: point.vector for point in self._archive.points_by_id(ids)}

    def _follow_points(self) -> None:
        if self._rules is None:
            return
        fresh = self._last_point == 0
        while True:
            page = self._archive.points_after(self._last_point, POINTS_PAGE)
            with self.lock:
                mine = self._take(page)
                if not fresh and mine:
                    self.vectors.add(*_as_page(mine))
            if page:
                self._last_point = page[-1].id
            if len(page) < POINTS_PAGE:
                break
        if fresh and len(self.table.point):
            self._load_or_build()
        elif self.vectors.outgrown:
            self._build()
        with self.lock:
            if self._sweep_due or self.table.dead > self._swept + GATHERED_MAX:
                self._sweep()

    def _take(self, page: Sequence[PointRow]) -> list[PointRow]:
        mine = [point for point in page if point.rules == self._rules]
        for point in mine:
            self.table.add_point(point)
        return mine

    def _load_or_build(self) -> None:
        index = VectorIndex(self._stored)
        note = index.load(self._vector_file)
        wanted = {"rules": self._rules, "index_id": self._index_id}
        if note is None or {key: note.get(key) for key in wanted} != wanted:
            self._build()
            return
        held = int(note["last_point"])
        if len(index) != self.table.points_up_to(held):
            self._build()
            return
        later = list(self._pages(held))
        with self.lock:
            self.vectors = index
            for ids, vectors in later:
                index.add(ids, vectors)
            self._sweep()

    def _build(self) -> None:
        index = VectorIndex(self._stored)
        index.build(lambda: self._pages(0), len(self.table.point))
        with self.lock:
            self.vectors = index
            self.vectors.remove(self.table.drop_orphans())
        self._save_vectors()

    def _pages(self, after: int) -> Iterator[Page]:
        """Vectors that count, up to the last one that the table knows."""
        while after < self._last_point:
            page = self._archive.points_after(after, POINTS_PAGE)
            mine = [
                point
                for point in page
                if point.rules == self._rules and point.id <= self._last_point
            ]
            if mine:
                yield _as_page(mine)
            if not page:
                return
            after = page[-1].id

    def _sweep(self) -> None:
        """Vectors whose content no chunk has any more leave memory and file."""
        self._swept, self._sweep_due = self.table.dead, False
        if self.vectors.remove(self.table.drop_orphans()) and not self.vectors.exact:
            self._save_vectors()

    def _save_vectors(self) -> None:
        self.vectors.save(
            self._vector_file,
            {"rules": self._rules, "index_id": self._index_id, "last_point": self._last_point},
        )

    def _forget_table(self) -> None:
        self.table = Table()
        self.vectors = VectorIndex(self._stored)
        self._change = self._last_point = self._swept = 0
        self._loaded = False


def _as_page(points: Sequence[PointRow]) -> Page:
    ids = np.array([point.id for point in points], np.int64)
    return ids, from_halves([point.vector for point in points])
