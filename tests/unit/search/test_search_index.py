"""The vectors' index: exact below, lists above, files that are believed or not."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from imprintd.errors import IntegrityError
from imprintd.search.index import Ids, Page, VectorIndex, Vectors, from_halves

DIMENSION = 32


def unit(count: int, seed: int = 1) -> Vectors:
    """Vectors in clumps, as those of texts are."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, DIMENSION))
    vectors = centres[rng.integers(0, 40, count)] + 0.5 * rng.standard_normal((count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


class Shelf:
    """Vectors by id, as the store has them; counts what is asked for."""

    def __init__(self, vectors: Vectors, first: int = 1) -> None:
        self.ids: Ids = np.arange(first, first + len(vectors), dtype=np.int64)
        self.vectors = vectors
        self.asked = 0

    def stored(self, ids: Sequence[int]) -> dict[int, bytes]:
        self.asked += len(ids)
        first = int(self.ids[0])
        return {n: self.vectors[n - first].astype("<f2").tobytes() for n in ids}

    def pages(self) -> Iterator[Page]:
        for at in range(0, len(self.ids), 700):
            yield self.ids[at : at + 700], self.vectors[at : at + 700]

    def truth(self, question: Vectors, count: int, allowed: Ids | None = None) -> list[int]:
        near = self.vectors.astype("<f2").astype(np.float32) @ question
        if allowed is not None:
            near[~np.isin(self.ids, allowed)] = -9
        order = np.argsort(-near, kind="stable")[:count]
        return [int(one) for one in self.ids[order]]


def build(shelf: Shelf, exact_max: int) -> VectorIndex:
    index = VectorIndex(shelf.stored, exact_max)
    index.build(shelf.pages, len(shelf.ids))
    return index


def recall(shelf: Shelf, index: VectorIndex, allowed: Ids | None = None) -> float:
    questions = unit(60, seed=9)
    found = 0
    for question in questions:
        ids, near = index.search(question, 10, allowed)
        assert np.all(np.diff(near) <= 1e-6)
        found += len(set(ids.tolist()) & set(shelf.truth(question, 10, allowed)))
    return found / (10 * len(questions))


def test_below_the_limit_every_vector_is_compared() -> None:
    shelf = Shelf(unit(3000))
    index = build(shelf, 5000)

    assert (index.exact, len(index), shelf.asked) == (True, 3000, 0)
    assert recall(shelf, index) > 0.995


def test_above_the_limit_lists_find_nearly_all_of_it() -> None:
    shelf = Shelf(unit(6000))
    index = build(shelf, 5000)

    assert (index.exact, len(index)) == (False, 6000)
    assert recall(shelf, index) >= 0.98


@pytest.mark.parametrize("exact_max", [5000, 100])
@pytest.mark.parametrize("step", [2, 50, 1500])
def test_a_filter_is_applied_before_the_cut(exact_max: int, step: int) -> None:
    shelf = Shelf(unit(3000))
    index = build(shelf, exact_max)
    allowed = shelf.ids[::step].copy()

    ids, _ = index.search(unit(1, seed=5)[0], 20, allowed)

    assert len(ids) == min(20, len(allowed))
    assert set(ids.tolist()) <= set(allowed.tolist())
    assert recall(shelf, index, allowed) * max(10, 1) >= 0.97 * min(10, len(allowed))


@pytest.mark.parametrize("exact_max", [5000, 100])
def test_what_is_removed_is_not_found(exact_max: int) -> None:
    shelf = Shelf(unit(1000))
    index = build(shelf, exact_max)
    question = unit(1, seed=3)[0]
    gone = np.array(shelf.truth(question, 5), np.int64)

    assert index.remove(gone) == 5
    assert index.remove(gone) == 0
    assert not set(index.search(question, 50)[0].tolist()) & set(gone.tolist())
    assert index.held([*gone.tolist(), 500]) == {500} - set(gone.tolist())


@pytest.mark.parametrize("exact_max", [5000, 100])
def test_vectors_come_back_by_id(exact_max: int) -> None:
    shelf = Shelf(unit(500))
    index = build(shelf, exact_max)

    found = index.vectors([7, 3])

    assert list(found) == [7, 3]
    assert np.abs(found[7] - shelf.vectors[6]).max() < 1e-3


def test_an_unknown_id_is_left_out() -> None:
    index = build(Shelf(unit(50)), 100)

    assert list(index.vectors([3, 999])) == [3]


def test_an_empty_index_answers_with_nothing() -> None:
    index = VectorIndex(lambda _: {})

    assert len(index.search(unit(1)[0], 5)[0]) == 0
    assert (len(index), index.vectors([1]), index.held([1]), index.remove(np.array([1]))) == (
        0, {}, set(), 0,
    )  # fmt: skip


def test_no_allowed_id_is_no_hit() -> None:
    index = build(Shelf(unit(50)), 100)

    assert len(index.search(unit(1)[0], 5, np.empty(0, np.int64))[0]) == 0


def test_another_dimension_is_refused() -> None:
    index = build(Shelf(unit(50)), 100)

    with pytest.raises(IntegrityError):
        index.add(np.array([99]), np.ones((1, DIMENSION + 1), np.float32))
    with pytest.raises(IntegrityError):
        index.search(np.ones(DIMENSION + 1, np.float32), 5)


def test_growth_beyond_its_form_is_said() -> None:
    shelf = Shelf(unit(130))
    index = build(Shelf(unit(100)), 100)
    assert not index.outgrown

    index.add(shelf.ids[100:] + 1000, shelf.vectors[100:])

    assert index.outgrown


def test_a_small_index_has_no_file(tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    file.write_bytes(b"old")

    build(Shelf(unit(50)), 100).save(file, {})

    assert not file.exists()


def test_a_file_gives_the_same_answers(tmp_path: Path) -> None:
    shelf = Shelf(unit(1000))
    index = build(shelf, 100)
    index.save(tmp_path / "vectors", {"last_point": 1000})
    other = VectorIndex(shelf.stored, 100)

    assert other.load(tmp_path / "vectors") == {"last_point": 1000}
    question = unit(1, seed=4)[0]
    assert other.search(question, 10)[0].tolist() == index.search(question, 10)[0].tolist()
    assert (tmp_path / "vectors").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("place", [0.0, 0.001, 0.3, 0.6, 0.999])
def test_a_flipped_byte_makes_a_file_worthless(tmp_path: Path, place: float) -> None:
    shelf = Shelf(unit(600))
    file = tmp_path / "vectors"
    build(shelf, 100).save(file, {})
    data = bytearray(file.read_bytes())
    data[int(place * len(data))] ^= 0x40
    file.write_bytes(data)

    assert VectorIndex(shelf.stored, 100).load(file) is None


def test_a_missing_or_short_file_is_none(tmp_path: Path) -> None:
    index = VectorIndex(lambda _: {})

    assert index.load(tmp_path / "none") is None
    (tmp_path / "short").write_bytes(b"imprintd vectors 1\n{}")
    assert index.load(tmp_path / "short") is None


def test_halves_become_singles() -> None:
    halves = [np.array([1, -0.5], "<f2").tobytes(), np.array([0, 2], "<f2").tobytes()]

    assert from_halves(halves).tolist() == [[1.0, -0.5], [0.0, 2.0]]
