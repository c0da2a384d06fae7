"""
Two lists of scores into one: pure arithmetic.

Each side is stretched to 0..1 over its own candidates and the sides are added
with fixed weights. (Measured: adding reciprocal ranks with equal weights is
worse than words alone.) A short chunk is scored together with its neighbours
first, because an answer of one line rarely repeats the words of its question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

VECTOR_WEIGHT: Final = 0.3
CANDIDATES: Final = 100
"""Different texts that each side may name."""

GROUP_MAX: Final = 8
"""Chunks with the same text that are scored, each in its surroundings."""

SHORT_CHARS: Final = 600
"""A chunk of at most so many characters is scored with its neighbours."""

SMOOTHING: Final = 0.4
"""Weight of each neighbour's vector against a short chunk's own."""

PREVIOUS_PULL: Final = 0.65
"""How far a short chunk's word score is drawn up to that of the one before it."""

NEXT_PULL: Final = 0.5
"""Likewise to the one after it."""

Vector = npt.NDArray[np.float32]
Neighbours = Mapping[int, tuple[int | None, int | None]]


def stretched(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores from 0 (the least) to 1 (the best); all 1 where they are equal."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}


def best(scores: Mapping[int, float], count: int) -> dict[int, float]:
    """The `count` highest scores; equal ones by key, newest (highest) first."""
    chosen = sorted(scores.items(), key=lambda item: (-item[1], -item[0]))[:count]
    return dict(chosen)


def leading(scores: Mapping[int, float], group_of: Callable[[int], int]) -> dict[int, float]:
    """
    The keys of the `CANDIDATES` best groups, best first.

    Keys that say the same are one group, so that copies do not crowd out the
    rest; of each group the best `GROUP_MAX` stay.
    """
    kept: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for key, score in best(scores, len(scores)).items():
        group = group_of(key)
        size = sizes.get(group, 0)
        if size == GROUP_MAX or (size == 0 and len(sizes) == CANDIDATES):
            continue
        sizes[group] = size + 1
        kept[key] = score
    return kept


def fused(
    words: Mapping[int, float], vectors: Mapping[int, float], weight: float = VECTOR_WEIGHT
) -> dict[int, float]:
    """
    One score in 0..1 for every key of either side, best first.

    A key that one side does not name counts 0 there; a side that names nothing
    at all has no weight.
    """
    if not words:
        weight = 1.0
    elif not vectors:
        weight = 0.0
    left, right = stretched(words), stretched(vectors)
    total = {
        key: (1 - weight) * left.get(key, 0.0) + weight * right.get(key, 0.0)
        for key in {**left, **right}
    }
    return best(total, len(total))


def drawn_up(scores: Mapping[int, float], neighbours: Neighbours) -> dict[int, float]:
    """
    Word scores of short chunks, drawn up towards better neighbours' own.

    An answer beside its question comes in that way, and never before it:
    adding the neighbour's score instead costs a fifth of the first places.

    Args:
        scores: By key, neighbours that were looked up included.
        neighbours: Of the short chunks among them; others keep their score.
    """
    drawn = {}
    for key, score in scores.items():
        before, after = neighbours.get(key, (None, None))
        gain = 0.0
        if before is not None:
            gain = max(gain, PREVIOUS_PULL * (scores.get(before, 0.0) - score))
        if after is not None:
            gain = max(gain, NEXT_PULL * (scores.get(after, 0.0) - score))
        drawn[key] = score + gain
    return drawn


def smoothed(own: Vector, before: Vector | None, after: Vector | None, question: Vector) -> float:
    """Similarity of a short chunk's vector, mixed with its neighbours', to a question."""
    mixed = own.copy()
    for other in (before, after):
        if other is not None:
            mixed += SMOOTHING * other
    return float(mixed @ question / max(float(np.linalg.norm(mixed)), 1e-9))
