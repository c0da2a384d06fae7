"""
A question answered: words and vectors, neighbours, one hit for one text.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from imprintd.errors import ModelError, UsageError
from imprintd.model.source import SourceId
from imprintd.search import check, filters, fusion
from imprintd.search.follow import Caches
from imprintd.search.hits import Hits
from imprintd.search.ports import Archive, Asked, EmbedQuery, Held, Hit, Mode, Results, Vector
from imprintd.search.records import WordsUnreadable
from imprintd.search.sides import Side, Sides
from imprintd.search.words import Asking, ask

LIMIT_MAX: Final = 100
QUESTION_REFRESH_CHARS: Final = 400_000
"""Text that a question indexes itself before it is answered (about 50 ms)."""

REFRESH_WAIT_S: Final = 0.2
"""How long a question waits for a refresh that is under way elsewhere."""


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
        self._sides = Sides(self.caches)
        self._hits = Hits(archive, self.caches)

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
        try:
            self.caches.refresh()
        except WordsUnreadable:
            self.caches.renew_words()
            self.caches.refresh()
        return check.membership(self.caches, self._archive, source, expected)

    def status(self) -> dict[str, Any]:
        """Counts for the status: what the caches hold and whether they are behind."""
        with self.caches.lock:
            table = self.caches.table
            return {
                "change": self.change,
                "behind": self.caches.behind,
                "chunks": len(table),
                "vectors": len(self.caches.vectors),
                "without_vector": table.unembedded(),
                "words_bytes": self.caches.words.size_bytes(),
            }

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
        asking = ask(asked.text)
        vector = self._vector(asked, notes)
        try:
            hits, mode = self._attempt(asked, asking, vector, notes)
        except WordsUnreadable:
            # Damage that shows only while reading; the caches are not the truth.
            self.caches.renew_words()
            notes.append("the index of words was damaged: it is built anew")
            hits, mode = self._attempt(asked, asking, vector, notes)
        took_ms = (time.perf_counter() - began) * 1000
        return Results(tuple(hits), took_ms, mode, tuple(notes))

    def _attempt(
        self, asked: Asked, asking: Asking, vector: Vector | None, notes: list[str]
    ) -> tuple[list[Hit], Mode]:
        if not self.caches.refresh(QUESTION_REFRESH_CHARS, wait_s=REFRESH_WAIT_S):
            notes.append("the index is catching up: the newest text may be missing")
        with self.caches.lock:
            return self._answer(asked, asking, vector, notes)

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
        mask = filters.mask(table, asked)
        words, near = Side(), Side()
        if vector is not None:
            near = self._sides.near(vector, mask)
            missing = table.unembedded()
            if missing:
                notes.append(f"{missing} chunks have no vector yet")
        if asked.mode != "vector" or vector is None:
            words = self._sides.words(asked, asking, mask, notes)
        mode: Mode = "lexical" if vector is None else asked.mode
        scores = fusion.fused(words.scores, near.scores)
        hits = self._hits.open(asked, asking, mask, scores, words, near, notes)
        return hits, mode
