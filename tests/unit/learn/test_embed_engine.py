"""An `Embedder` on a tiny model: windows, batches, queries, damage, unloading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from embed_tiny import WINDOW, listed, tokenizer, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from imprintd.clock import ManualClock
from imprintd.errors import ModelError
from imprintd.learn import catalogue
from imprintd.learn.catalogue import Expected
from imprintd.learn.embed import BATCH_TOLERANCE, Embedder, Vectors, answers, selftest
from imprintd.learn.embed_lazy import LazyEmbedder
from imprintd.learn.model_install import install

WORDS = ("the", "disk", "is", "full", "backup", "xyzzy", "[SEP]", "é", "!", "\ud800", " \n", "ΔΩ")
TEXT = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("tiny")
    files = write_files(base / "files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(catalogue.LISTED, "tiny", listed(files))
        install("tiny", base / "models", source=files)
    return base / "models" / "tiny"


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return Embedder(folder, batch_tokens=40)


def plain_ids(text: str) -> list[int]:
    made = tokenizer()
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = True
    ids: list[int] = made.encode(text, add_special_tokens=False).ids
    return ids


@given(text=TEXT)
def test_the_windows_of_a_text_hold_all_its_tokens(embedder: Embedder, text: str) -> None:
    windows = embedder.windows(text)

    ids = plain_ids(text.replace("\ud800", "\ufffd"))
    assert [token for window in windows for token in window[1:-1]] == ids
    assert {(window[0], window[-1]) for window in windows} == {(2, 3)}
    assert max(map(len, windows)) <= WINDOW


def test_marks_written_in_a_text_are_text(embedder: Embedder) -> None:
    (window,) = embedder.windows("[SEP]")

    assert window == [2, *plain_ids("["), *plain_ids("sep"), *plain_ids("]"), 3]


@settings(max_examples=40)
@given(texts=st.lists(TEXT, min_size=1, max_size=12), seed=st.randoms(use_true_random=False))
def test_company_and_order_change_no_vector(
    embedder: Embedder, texts: list[str], seed: object
) -> None:
    windows = [window for text in texts for window in embedder.windows(text)]

    together = embedder.embed_windows(windows)

    alone = np.concatenate([embedder.embed_windows([window]) for window in windows])
    turned = embedder.embed_windows(windows[::-1])[::-1]
    assert together.shape == (len(windows), embedder.dimension)
    assert together.dtype == np.float32
    assert float(np.abs(together - alone).max()) <= BATCH_TOLERANCE
    assert float(np.abs(together - turned).max()) <= BATCH_TOLERANCE
    assert float(np.abs(np.linalg.norm(together, axis=1) - 1).max()) <= 1e-6


def test_the_same_call_gives_the_same_bits(embedder: Embedder) -> None:
    texts = ["the disk is full", "backup", "the backup is full " * 9]

    assert embedder.embed(texts).tobytes() == embedder.embed(texts).tobytes()


def test_a_text_is_its_first_window_and_a_query_is_one_vector(embedder: Embedder) -> None:
    long = "the disk is full " * 10

    first = embedder.embed_windows(embedder.windows(long)[:1])

    assert embedder.embed([long]).tobytes() == first.tobytes()
    assert embedder.query(long).tobytes() == first[0].tobytes()
    assert embedder.query(long).shape == (embedder.dimension,)


def test_nothing_to_embed_is_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_an_empty_text_has_a_vector(embedder: Embedder) -> None:
    assert embedder.embed(["", " \n\x00"]).shape == (2, embedder.dimension)


def test_work_is_split_into_small_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Embedder(folder, batch_tokens=40)
    sizes: list[tuple[int, int]] = []
    run = counted._run

    def count(items: Sequence[Sequence[int]]) -> Vectors:
        sizes.append((len(items), max(map(len, items))))
        return run(items)

    monkeypatch.setattr(counted, "_run", count)

    counted.embed_windows([[2, 5, 3]] * 15 + [[2, *range(4, 14), 3]] * 5)

    assert sizes == [(3, 12), (3, 12), (13, 3), (1, 3)]


@pytest.mark.parametrize("window", [[], [2] * (WINDOW + 1)])
def test_a_window_of_the_wrong_length_is_refused(embedder: Embedder, window: list[int]) -> None:
    with pytest.raises(ModelError, match=f"1 to {WINDOW} tokens"):
        embedder.embed_windows([[2, 3], window])


@pytest.mark.parametrize("token", [160, -200, 2**40])
def test_a_token_that_the_model_lacks_is_refused(embedder: Embedder, token: int) -> None:
    with pytest.raises(ModelError, match="tiny failed"):
        embedder.embed_windows([[2, token, 3]])


def damaged_copy(folder: Path, target: Path) -> Path:
    target.mkdir()
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "weights.bin"])
@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_a_damaged_file_is_named(folder: Path, tmp_path: Path, name: str, how: str) -> None:
    copy = damaged_copy(folder, tmp_path / "tiny")
    raw = bytearray((copy / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    if how == "gone":
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(raw[:-1] if how == "cut" else raw)

    with pytest.raises(ModelError, match=f"{name} of the model tiny is damaged"):
        Embedder(copy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("window_tokens", 8),
        ("pooling", "sum"),
        ("format", 2),
        ("dimension", 0),
        ("dimension", "24"),
        ("weights_sha256", "0" * 64),
        ("expected", 3),
        ("surplus", 1),
    ],
)
def test_a_card_that_was_changed_is_not_believed(
    folder: Path, tmp_path: Path, key: str, value: object
) -> None:
    copy = damaged_copy(folder, tmp_path / "tiny")
    table = json.loads((copy / "model.json").read_text("utf-8"))
    (copy / "model.json").write_text(json.dumps({**table, key: value}), "utf-8")

    with pytest.raises(ModelError, match="damaged or was written by a newer"):
        Embedder(copy)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"[" * 100_000, b" " * 300_000, b"\xff"])
def test_a_card_that_is_no_card_is_not_believed(folder: Path, tmp_path: Path, raw: bytes) -> None:
    copy = damaged_copy(folder, tmp_path / "tiny")
    (copy / "model.json").write_bytes(raw)

    with pytest.raises(ModelError, match="damaged"):
        Embedder(copy)


def test_a_model_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not installed") as caught:
        Embedder(tmp_path / "minilm-l6-v2")

    assert caught.value.remedy == "run `imprintd model install minilm-l6-v2`"


def test_the_selftest_accepts_the_right_answers_and_no_others(embedder: Embedder) -> None:
    (right,) = answers(embedder, ["the disk is full"])
    wrong = Expected(right.text, (right.head[0] + 3e-4, *right.head[1:]), right.norm)

    selftest(embedder, [right])
    with pytest.raises(ModelError, match="does not compute what it should"):
        selftest(embedder, [right, wrong])
    with pytest.raises(ModelError, match="does not compute what it should"):
        selftest(embedder, [Expected(right.text, right.head, float("nan"))])


def test_rules_change_with_everything_that_decides_a_vector(embedder: Embedder) -> None:
    info = embedder.info
    others = [
        replace(info, weights_sha256="0" * 64),
        replace(info, tokenizer_sha256="0" * 64),
        replace(info, variant="plain-2"),
        replace(info, window_tokens=128),
        replace(info, pooling="cls"),
        replace(info, prefix_text="passage: "),
        replace(info, prefix_query="query: "),
    ]

    assert len({info.rules, *(other.rules for other in others)}) == 8
    assert replace(info, graph_sha256="0" * 64, licence="MIT", name="x").rules == info.rules
    assert embedder.rules == info.rules


def test_a_lazy_model_comes_when_asked_and_goes_when_idle(folder: Path) -> None:
    clock = ManualClock()
    lazy = LazyEmbedder(folder, 1, 300.0, clock)
    seen = [lazy.loaded]

    first = lazy.get()
    clock.advance(299)
    seen += [lazy.tick(), lazy.loaded]
    second = lazy.get()
    clock.advance(299)
    seen += [lazy.tick(), lazy.loaded]
    clock.advance(1)
    seen += [lazy.tick(), lazy.loaded, lazy.tick()]
    third = lazy.get()
    lazy.unload()

    assert seen == [False, False, True, False, True, True, False, False]
    assert (second is first, third is first, lazy.loaded) == (True, False, False)
    assert third.embed(["disk"]).tobytes() == first.embed(["disk"]).tobytes()


def test_a_lazy_model_tells_its_rules_without_loading(folder: Path, embedder: Embedder) -> None:
    lazy = LazyEmbedder(folder, 1, 300.0, ManualClock())

    assert (lazy.info, lazy.loaded) == (embedder.info, False)
