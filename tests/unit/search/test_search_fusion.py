"""Arithmetic of scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.search import fusion

scores = st.dictionaries(st.integers(0, 50), st.floats(0, 100), max_size=30)


def test_each_side_is_stretched_and_weighed() -> None:
    fused = fusion.fused({1: 10.0, 2: 5.0, 3: 0.0}, {2: 0.9, 4: 0.5})

    assert fused == pytest.approx({1: 0.7, 2: 0.35 + 0.3, 3: 0.0, 4: 0.0})
    assert list(fused)[:2] == [1, 2]


def test_a_side_that_names_nothing_has_no_weight() -> None:
    assert fusion.fused({}, {1: 0.9, 2: 0.4}) == {1: 1.0, 2: 0.0}
    assert fusion.fused({1: 3.0}, {}) == {1: 1.0}
    assert fusion.fused({}, {}) == {}


@given(scores, scores)
def test_fused_scores_are_within_bounds_best_first_and_complete(
    words: dict[int, float], vectors: dict[int, float]
) -> None:
    fused = fusion.fused(words, vectors)

    assert fused.keys() == words.keys() | vectors.keys()
    assert all(0 <= score <= 1 + 1e-9 for score in fused.values())
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


def test_copies_are_one_candidate_and_a_few_of_them_stay() -> None:
    copies = dict.fromkeys(range(1000), 5.0)
    others = {1000 + n: 1.0 - n / 1000 for n in range(200)}

    kept = fusion.leading({**copies, **others}, lambda key: -1 if key < 1000 else key)

    assert sum(key < 1000 for key in kept) == fusion.GROUP_MAX
    assert [key for key in kept if key >= 1000] == list(range(1000, 1099))


@given(scores, st.floats(0, 10))
def test_a_neighbour_never_passes_what_drew_it_up(own: dict[int, float], other: float) -> None:
    own[60] = other
    neighbours = {key: (60, None) for key in own if key != 60}

    drawn = fusion.drawn_up(own, neighbours)

    assert drawn[60] == other
    for key, score in own.items():
        assert drawn[key] >= score
        assert drawn[key] <= max(score, other) + 1e-9


def test_the_better_neighbour_counts() -> None:
    drawn = fusion.drawn_up({1: 10.0, 2: 2.0, 3: 20.0}, {2: (1, 3)})

    assert drawn == pytest.approx({1: 10.0, 2: 2 + fusion.NEXT_PULL * 18, 3: 20.0})


def test_neighbours_vectors_count_less_than_the_own() -> None:
    question = np.array([1, 0], np.float32)
    away = np.array([0, 1], np.float32)

    alone = fusion.smoothed(away, None, None, question)
    helped = fusion.smoothed(away, question, None, question)

    assert alone == 0.0
    assert helped == pytest.approx(0.4 / (1 + 0.16) ** 0.5)
    assert fusion.smoothed(question, away, away, question) == pytest.approx(1 / (1 + 0.64) ** 0.5)


def test_a_cancelled_vector_is_no_division_by_zero() -> None:
    question = np.array([1, 0], np.float32)

    assert fusion.smoothed(0 * question, None, None, question) == 0.0
