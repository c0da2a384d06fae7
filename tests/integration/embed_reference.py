"""
BERT's forward pass once more, in float64 numpy, straight from its description.

Shares no code with the graph that imprintd writes: two independent roads to
the same vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

_ERF = np.vectorize(math.erf, otypes=[np.float64])


class Reference:
    """A BERT encoder with mean pooling, one text at a time, no padding."""

    def __init__(
        self, weights: Mapping[str, npt.NDArray[np.float32]], *, heads: int, layers: int
    ) -> None:
        self._weights = {name: value.astype(np.float64) for name, value in weights.items()}
        self._heads = heads
        self._layers = layers

    def vector(self, ids: Sequence[int]) -> Doubles:
        rows = list(ids)
        state = (
            self._weights["embeddings.word_embeddings.weight"][rows]
            + self._weights["embeddings.position_embeddings.weight"][: len(rows)]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._norm(state, "embeddings.LayerNorm")
        for layer in range(self._layers):
            state = self._layer(state, f"encoder.layer.{layer}.")
        mean = state.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean))

    def _layer(self, state: Doubles, name: str) -> Doubles:
        tokens, hidden = state.shape
        query, key, value = (
            self._linear(state, f"{name}attention.self.{part}").reshape(
                tokens, self._heads, hidden // self._heads
            )
            for part in ("query", "key", "value")
        )
        scores = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(hidden // self._heads)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", shares, value).reshape(tokens, hidden)
        state = self._norm(
            self._linear(mixed, f"{name}attention.output.dense") + state,
            f"{name}attention.output.LayerNorm",
        )
        inner = self._linear(state, f"{name}intermediate.dense")
        inner = inner * 0.5 * (1.0 + _ERF(inner / math.sqrt(2.0)))
        return self._norm(
            self._linear(inner, f"{name}output.dense") + state, f"{name}output.LayerNorm"
        )

    def _linear(self, value: Doubles, name: str) -> Doubles:
        return np.asarray(value @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])

    def _norm(self, value: Doubles, name: str) -> Doubles:
        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(
            centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        )
