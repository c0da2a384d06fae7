"""
From owed contents to points: views, windows, embedding, reuse.

A growing conversation changes its last chunk with every turn, but most windows
of it stay as they were; their vectors are kept here and not made twice.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from imprintd.errors import ModelError
from imprintd.learn.embed_half import to_half
from imprintd.learn.embed_lazy import LazyEmbedder
from imprintd.learn.messages import EmbedBatch, Embedded, Owed
from imprintd.model.snapshot import Limits, Point
from imprintd.text.view import VIEW_RULES, embedding_text

WINDOWS_KEPT: Final = 4096
"""Vectors of recent windows in memory: about 3 MB."""


def rules_of(model_rules: str, limits: Limits) -> str:
    """Fingerprint of all that decides a chunk's vectors: model, view rules, limits."""
    told = f"{model_rules}|{VIEW_RULES}|{limits.size_prose}|{limits.hard_max}|{limits.piece}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


class VectorMaker:
    """
    Makes the vectors of contents.

    Args:
        embedder: The model, loaded when first needed.
        limits: Chunker limits; part of the rules.
    """

    def __init__(self, embedder: LazyEmbedder, limits: Limits) -> None:
        self._embedder = embedder
        self._limits = limits
        self._recent: OrderedDict[bytes, bytes] = OrderedDict()

    def make(self, batch: EmbedBatch) -> Embedded:
        """Vectors for a batch; an unusable model is an answer, not an exception."""
        started = time.process_time()
        try:
            embedder = self._embedder.get()
            rules = rules_of(embedder.rules, self._limits)
            wanted: list[tuple[Owed, int, int, list[int]]] = []
            for owed in batch.contents:
                windows = embedder.windows(embedding_text(owed.content, self._limits))
                chosen = [0] if batch.first_only else range(len(windows))
                wanted.extend(
                    (owed, number, len(windows), windows[number])
                    for number in chosen
                    if number not in owed.have
                )
            vectors, reused = self._vectors(embedder, rules, [w[3] for w in wanted])
        except ModelError as error:
            return Embedded(error=error.message)
        return Embedded(
            points=tuple(
                Point(owed.content_digest, number, count, rules, vector)
                for (owed, number, count, _), vector in zip(wanted, vectors, strict=True)
            ),
            windows=len(wanted) - reused,
            reused=reused,
            cpu_s=time.process_time() - started,
        )

    def _vectors(
        self, embedder: Any, rules: str, windows: Sequence[Sequence[int]]
    ) -> tuple[list[bytes], int]:
        keys = [_key(rules, window) for window in windows]
        missing = {
            key: window
            for key, window in zip(keys, windows, strict=True)
            if key not in self._recent
        }
        made = to_half(embedder.embed_windows(list(missing.values()))) if missing else []
        known = dict(zip(missing, made, strict=True))
        vectors = [known[key] if key in known else self._recent[key] for key in keys]
        for key, vector in zip(keys, vectors, strict=True):
            self._recent[key] = vector
            self._recent.move_to_end(key)
        while len(self._recent) > WINDOWS_KEPT:
            self._recent.popitem(last=False)
        return vectors, len(windows) - len(missing)


def _key(rules: str, window: Sequence[int]) -> bytes:
    return hashlib.sha256(f"{rules}:{','.join(map(str, window))}".encode()).digest()
