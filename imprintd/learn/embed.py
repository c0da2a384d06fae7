"""
Turn text into vectors.

The only module that imports onnxruntime and tokenizers. One `Embedder` holds
one loaded model; `embed_lazy` loads and unloads it as it is needed.

Vectors do not depend on what else is embedded in the same call beyond float32
rounding: batches are padded to their longest member and sums over padding are
grouped differently. Measured with MiniLM the largest difference is below 1e-6
per component, and `BATCH_TOLERANCE` is what callers may rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from imprintd.errors import ModelError
from imprintd.learn import windows as cutting
from imprintd.learn.catalogue import SELFTEST_COMPONENTS, SELFTEST_TOLERANCE, Expected
from imprintd.learn.model import GRAPH, TOKENIZER, ModelInfo, check_files, read_card

Vectors = npt.NDArray[np.float32]

BATCH_TOLERANCE: Final = 5e-6
"""Largest difference per component between two runs of a text in other company."""

_INPUT_IDS: Final = "input_ids"
_INPUT_MASK: Final = "attention_mask"
_INPUT_TYPES: Final = "token_type_ids"


class Embedder:
    """
    One loaded model.

    Safe to use from several threads; a run uses `threads` of the machine's
    cores and no core while idle.

    Args:
        folder: An installed model.
        threads: Threads of one run.
        batch_tokens: Tokens of a batch, padding included.

    Attributes:
        info: The model's description.
        rules: Fingerprint of what decides a vector; stored with each of them.
        dimension: Components of a vector.

    Raises:
        ModelError: The model is missing, damaged, or cannot be run.
    """

    def __init__(
        self, folder: Path, threads: int = 1, *, batch_tokens: int = cutting.BATCH_TOKENS
    ) -> None:
        self.info: ModelInfo = read_card(folder)
        check_files(folder, self.info)
        self.rules: str = self.info.rules
        self.dimension: int = self.info.dimension
        self._batch_tokens = batch_tokens
        self._tokenizer = _load_tokenizer(folder / TOKENIZER)
        self._session = _load_session(folder / GRAPH, threads)
        self._inputs = _inputs(self._session)
        self._output = _output(self._session)
        opening, self._after = _specials(self._tokenizer)
        self._before = {
            prefix: [*opening, *self._ids(prefix)]
            for prefix in {self.info.prefix_text, self.info.prefix_query}
        }

    def windows(self, text: str) -> list[list[int]]:
        """
        The text's windows as token ids, ready for `embed_windows`.

        Consecutive windows of `info.window_tokens` tokens, special tokens and
        the text prefix included; together they hold every token of the text
        once, in order. Only the first `CHARS_MAX` characters and `WINDOWS_MAX`
        windows are made. An empty text has one window.
        """
        return self._cut(text, self.info.prefix_text)

    def embed_windows(self, items: Sequence[Sequence[int]]) -> Vectors:
        """
        One vector of length 1 for each window.

        Args:
            items: Windows as `windows` makes them, in any order and mixture.

        Returns:
            float32 (n, dimension), in the order of `items`.

        Raises:
            ModelError: A window is empty or too long, or the run failed.
        """
        vectors = np.empty((len(items), self.dimension), np.float32)
        lengths = [len(item) for item in items]
        if lengths and not 0 < min(lengths) <= max(lengths) <= self.info.window_tokens:
            raise ModelError(f"a window must have 1 to {self.info.window_tokens} tokens")
        for batch in cutting.plan(lengths, self._batch_tokens):
            vectors[batch] = self._run([items[index] for index in batch])
        return vectors

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text, of its first window: float32 (n, dimension)."""
        return self.embed_windows([self.windows(text)[0] for text in texts])

    def query(self, text: str) -> Vectors:
        """The vector of a question, of its first window: float32 (dimension,)."""
        vector: Vectors = self.embed_windows([self._cut(text, self.info.prefix_query)[0]])[0]
        return vector

    def token_count(self, text: str) -> int:
        """Tokens of the text's windows, special ones not counted; for measuring."""
        return len(self._ids(text))

    def _cut(self, text: str, prefix: str) -> list[list[int]]:
        return cutting.cut(
            self._ids(text), self._before[prefix], self._after, self.info.window_tokens
        )

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(cutting.clean(text), add_special_tokens=False).ids
        return ids

    def _run(self, items: Sequence[Sequence[int]]) -> Vectors:
        width = max(len(item) for item in items)
        ids = np.zeros((len(items), width), np.int64)
        mask = np.zeros((len(items), width), np.int64)
        for row, item in enumerate(items):
            ids[row, : len(item)] = item
            mask[row, : len(item)] = 1
        feed = {_INPUT_IDS: ids, _INPUT_MASK: mask}
        if _INPUT_TYPES in self._inputs:
            feed[_INPUT_TYPES] = np.zeros_like(ids)
        try:
            (result,) = self._session.run([self._output], feed)
        except Exception as error:
            # onnxruntime's errors share no base class; none of them names text.
            raise ModelError(f"the model {self.info.name} failed: {_brief(error)}") from None
        return self._finish(np.asarray(result), mask)

    def _finish(self, result: npt.NDArray[Any], mask: npt.NDArray[np.int64]) -> Vectors:
        vectors = result.astype(np.float32, copy=False)
        if self.info.pooling == "mean" and vectors.ndim == 3:
            weight = mask[:, :, None].astype(np.float32)
            vectors = (vectors * weight).sum(axis=1) / weight.sum(axis=1)
        elif self.info.pooling == "cls" and vectors.ndim == 3:
            vectors = vectors[:, 0]
        if vectors.shape != (len(mask), self.dimension):
            raise ModelError(f"the model {self.info.name} answered with shape {result.shape}")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise ModelError(f"the model {self.info.name} answered with no direction")
        finished: Vectors = vectors / lengths
        return finished


def inspect(graph: Path) -> tuple[int, int]:
    """
    Look into a graph that was not made here.

    Returns:
        Rank of its output (2: finished vectors, 3: token states) and dimension.

    Raises:
        ModelError: It cannot be loaded, or has inputs that cannot be fed.
    """
    session = _load_session(graph, 1)
    _inputs(session)
    wanted = _output(session)
    shape = next(item.shape for item in session.get_outputs() if item.name == wanted)
    if not isinstance(shape[-1], int):
        raise ModelError("the graph does not say how many components its vectors have")
    return len(shape), shape[-1]


def answers(embedder: Embedder, texts: Sequence[str]) -> tuple[Expected, ...]:
    """What the model answers to each text, in the form a self-test compares."""
    vectors = embedder.embed(texts)
    return tuple(
        Expected(
            text,
            tuple(float(value) for value in vector[:SELFTEST_COMPONENTS]),
            float(np.linalg.norm(vector)),
        )
        for text, vector in zip(texts, vectors, strict=True)
    )


def selftest(embedder: Embedder, expected: Sequence[Expected]) -> None:
    """
    Compare the model's answers with the expected ones.

    Raises:
        ModelError: A component or a norm is off by more than the tolerance.
    """
    for wanted, found in zip(
        expected, answers(embedder, [item.text for item in expected]), strict=True
    ):
        pairs = zip((*wanted.head, wanted.norm), (*found.head, found.norm), strict=True)
        # Written so that a NaN is a difference too.
        if not all(abs(a - b) <= SELFTEST_TOLERANCE for a, b in pairs):
            raise ModelError(
                f"the model {embedder.info.name} does not compute what it should",
                remedy=f"run `imprintd model install {embedder.info.name}` again",
            )


def _load_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
        # The published file truncates and pads to 128; windows need neither.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # "[SEP]" in a transcript is text that somebody wrote, not a mark.
        tokenizer.encode_special_tokens = True
    except Exception as error:
        raise ModelError(f"the tokenizer cannot be loaded: {_brief(error)}") from None
    return tokenizer


def _load_session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Waiting threads that spin cost a fifth of the work and an idle core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"the model's graph cannot be loaded: {_brief(error)}") from None


def _inputs(session: Any) -> frozenset[str]:
    names = frozenset(item.name for item in session.get_inputs())
    strange = names - {_INPUT_IDS, _INPUT_MASK, _INPUT_TYPES}
    if strange or not {_INPUT_IDS, _INPUT_MASK} <= names:
        raise ModelError(f"the graph wants inputs that are not known: {sorted(names)}"[:300])
    return names


def _output(session: Any) -> str:
    """The finished vector if the graph has one, else the token states."""
    outputs = session.get_outputs()
    for rank in (2, 3):
        named = [item.name for item in outputs if len(item.shape) == rank]
        # BERT's `pooler_output` is no sentence vector, although it has the shape of one.
        usable = [name for name in named if name != "pooler_output"]
        if usable:
            return str(usable[0])
    raise ModelError("the graph has no output that could be a vector")


def _specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Special tokens that open and close a text."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    full = tokenizer.encode("a", add_special_tokens=True).ids
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    raise ModelError("the tokenizer changes a text that it marks")


def _brief(error: Exception) -> str:
    return str(error).replace("\n", " ")[:300]
