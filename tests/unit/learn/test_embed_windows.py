"""Windows hold every token once; batches hold every window once and stay small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.errors import IntegrityError
from imprintd.learn.embed_half import from_half, to_half
from imprintd.learn.windows import CHARS_MAX, PADDING_MAX, WINDOWS_MAX, clean, cut, plan

IDS = st.lists(st.integers(0, 40_000), max_size=400)


@given(IDS, st.integers(5, 60), st.lists(st.integers(0, 9), max_size=2))
def test_windows_hold_every_token_once_in_order(
    ids: list[int], window_tokens: int, after: list[int]
) -> None:
    windows = cut(ids, [101, 7], after, window_tokens)

    bodies = [window[2 : len(window) - len(after)] for window in windows]
    body = window_tokens - 2 - len(after)
    assert [token for part in bodies for token in part] == ids[: WINDOWS_MAX * body]
    assert [[101, 7, *part, *after] for part in bodies] == windows
    assert {len(part) for part in bodies[:-1]} <= {body}
    assert len(windows) == max(1, min(WINDOWS_MAX, -(-len(ids) // body)))


def test_an_empty_text_has_one_window() -> None:
    assert cut([], [101], [102], 256) == [[101, 102]]


def test_a_giant_text_has_no_more_windows_than_the_cap() -> None:
    windows = cut(range(WINDOWS_MAX * 8 + 5), [101], [102], 10)

    assert len(windows) == WINDOWS_MAX
    assert windows[-1] == [101, *range(WINDOWS_MAX * 8 - 8, WINDOWS_MAX * 8), 102]


def test_a_window_without_room_for_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        cut([1], [101], [102], 2)


@given(st.lists(st.integers(1, 300), max_size=80), st.integers(1, 1000))
def test_batches_hold_every_item_once_and_keep_the_budget(
    lengths: list[int], tokens_max: int
) -> None:
    batches = plan(lengths, tokens_max)

    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    over = [
        batch
        for batch in batches
        if len(batch) > 1 and len(batch) * max(lengths[index] for index in batch) > tokens_max
    ]
    spread = [
        max(lengths[index] for index in batch) - min(lengths[index] for index in batch)
        for batch in batches
    ]
    assert (over, [size for size in spread if size > PADDING_MAX]) == ([], [])


def test_batches_are_full_and_of_one_length() -> None:
    assert plan([256, 20, 256, 256, 30], 512) == [[0, 2], [3], [4, 1]]


@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_a_cleaned_text_can_be_encoded_and_keeps_its_places(text: str) -> None:
    cleaned = clean(text)

    assert cleaned.encode().decode() == cleaned
    assert [
        (a, b)
        for a, b in zip(text, cleaned, strict=True)
        if a != b and not ("\ud800" <= a <= "\udfff" and b == "\ufffd")
    ] == []


def test_only_the_head_of_a_giant_text_is_looked_at() -> None:
    assert clean("x" * (CHARS_MAX + 1)) == "x" * CHARS_MAX


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_half_precision_keeps_the_direction(rows: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(rows, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    blobs = to_half(vectors)

    back = from_half(blobs, 384)
    cosine = (back * vectors).sum(axis=1) / np.linalg.norm(back, axis=1)
    assert {len(blob) for blob in blobs} == {768}
    assert float(np.abs(1 - cosine).max()) <= 1e-4
    assert to_half(back) == blobs


def test_half_precision_is_little_endian_everywhere() -> None:
    assert to_half(np.array([[1.0, -2.0]], np.float32)) == [b"\x00\x3c\x00\xc0"]
    assert from_half([b"\x00\x3c\x00\xc0"], 2).tolist() == [[1.0, -2.0]]


def test_no_vectors_are_no_rows() -> None:
    assert to_half(np.empty((0, 384), np.float32)) == []
    assert from_half([], 384).shape == (0, 384)


def test_a_blob_of_another_length_is_refused() -> None:
    with pytest.raises(IntegrityError, match="384"):
        from_half([bytes(766)], 384)
