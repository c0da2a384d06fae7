"""
The cache of vectors: nearest neighbours in memory, rebuilt from the store.

The only module that imports faiss. Exact (float16) up to 100,000 vectors; above
that inverted lists with 8 bits a component, whose best candidates are scored
again with the stored vectors. A file is kept only above the limit; it carries
our own checksum, because a damaged one would load without an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from imprintd.errors import IntegrityError

Ids = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]
Page = tuple[Ids, Vectors]

EXACT_MAX: Final = 100_000
"""Vectors up to which every one is compared: 12 ms here at the limit."""

PROBES: Final = 128
"""Lists looked into. At 290,000 vectors of made mixtures 32 of 512 find 0.93 of the
ten nearest, 64 find 0.975, 128 find 0.99, for 4 ms more."""

RESCORED: Final = 200
_SAMPLE_PER_LIST: Final = 48
_MAGIC: Final = b"imprintd vectors 1\n"

Stored = Callable[[Sequence[int]], Mapping[int, bytes]]


def from_halves(halves: Sequence[bytes]) -> Vectors:
    """float16 little endian vectors as float32 (n, dimension)."""
    flat = np.frombuffer(b"".join(halves), "<f2").astype(np.float32)
    return flat.reshape(len(halves), -1)


class VectorIndex:
    """
    Vectors by id.

    Args:
        stored: Exact vectors by id, for scoring again.
        exact_max: Vectors up to which the search is exact.
    """

    def __init__(self, stored: Stored, exact_max: int = EXACT_MAX) -> None:
        self._stored = stored
        self._exact_max = exact_max
        self._index: Any = None
        self._lists = 0
        self._trained_for = 0

    def __len__(self) -> int:
        return int(self._index.ntotal) if self._index is not None else 0

    @property
    def exact(self) -> bool:
        """Every vector is compared."""
        return self._lists == 0

    @property
    def outgrown(self) -> bool:
        """It has grown beyond its form and should be built anew."""
        if self.exact:
            return len(self) > self._exact_max * 5 // 4
        return len(self) > 2 * self._trained_for

    def build(self, pages: Callable[[], Iterator[Page]], expected: int) -> None:
        """
        Throw away what is held and take all vectors.

        Args:
            pages: Gives all pages from the first on; called twice where lists
                have to be trained.
            expected: About how many vectors there are.
        """
        self._index, self._lists = None, 0
        if expected > self._exact_max:
            self._train(pages(), expected)
        for ids, vectors in pages():
            self.add(ids, vectors)

    def _train(self, pages: Iterable[Page], expected: int) -> None:
        faiss = _faiss()
        lists = 1 << max(4, round(float(np.log2(expected**0.5))))
        step = max(1, expected // (lists * _SAMPLE_PER_LIST))
        sample: list[Vectors] = []
        seen = 0
        for _, vectors in pages:
            sample.append(vectors[(-seen) % step :: step].copy())
            seen += len(vectors)
        taught = np.concatenate(sample)
        if len(taught) < lists:
            return
        dimension = taught.shape[1]
        self._index = faiss.index_factory(dimension, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
        self._index.train(taught)
        self._lists = lists
        self._trained_for = max(expected, seen)

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """
        Add vectors of length 1: float32 (n, dimension).

        Raises:
            IntegrityError: They have another dimension than those held.
        """
        if not len(ids):
            return
        if self._index is None:
            faiss = _faiss()
            self._index = faiss.index_factory(
                vectors.shape[1], "IDMap2,SQfp16", faiss.METRIC_INNER_PRODUCT
            )
            self._index.train(np.ascontiguousarray(vectors))
        if vectors.shape[1] != self._index.d:
            raise IntegrityError(f"a vector of {vectors.shape[1]} components, not {self._index.d}")
        self._index.add_with_ids(np.ascontiguousarray(vectors), np.ascontiguousarray(ids))

    def remove(self, ids: Ids) -> int:
        """Remove vectors; returns how many were held."""
        if self._index is None or not len(ids):
            return 0
        return int(self._index.remove_ids(np.ascontiguousarray(ids)))

    def search(
        self, vector: Vectors, count: int, allowed: Ids | None = None
    ) -> tuple[Ids, Vectors]:
        """
        The nearest vectors, best first.

        Args:
            vector: float32 (dimension,), length 1.
            count: At the most.
            allowed: Ids that may be found; None: all.

        Returns:
            Ids and similarities (cosine).
        """
        if self._index is None or (allowed is not None and not len(allowed)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if vector.shape != (self._index.d,):
            raise IntegrityError(f"a question of {vector.shape} components, not {self._index.d}")
        faiss = _faiss()
        chosen: dict[str, Any] = {}
        if allowed is not None:
            bits = np.zeros(int(allowed[-1]) + 1, np.bool_)
            bits[allowed] = True
            chosen["sel"] = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
        if self.exact:
            parameters = faiss.SearchParameters(**chosen)
            wanted = count
        else:
            # A narrow filter leaves little in each list, so look into more.
            share = 1.0 if allowed is None else max(1, len(allowed)) / len(self)
            probes = min(self._lists, int(PROBES / max(share, PROBES / self._lists)))
            parameters = faiss.SearchParametersIVF(nprobe=probes, **chosen)
            wanted = max(count, RESCORED)
        scores, found = self._index.search(
            vector[None, :], min(wanted, len(self)), params=parameters
        )
        held = found[0] >= 0
        ids, near = found[0][held], scores[0][held]
        if not self.exact:
            ids, near = self._again(vector, ids, near)
        return ids[:count], near[:count]

    def _again(self, vector: Vectors, ids: Ids, near: Vectors) -> tuple[Ids, Vectors]:
        best = ids[:RESCORED]
        halves = self._stored(best.tolist())
        kept = [n for n, point in enumerate(best.tolist()) if point in halves]
        if not kept:
            return ids, near
        exact = from_halves([halves[int(best[n])] for n in kept]) @ vector
        order = np.argsort(-exact, kind="stable")
        # What comes after was behind by the rough score already.
        return (
            np.concatenate([best[kept][order], ids[RESCORED:]]),
            np.concatenate([exact[order], near[RESCORED:]]).astype(np.float32),
        )

    def held(self, ids: Sequence[int]) -> set[int]:
        """Those of some ids that are in the index."""
        if self._index is None:
            return set()
        if self.exact:
            return set(self._one_by_one(ids))
        faiss = _faiss()
        lists = self._index.invlists
        wanted = np.asarray(ids, np.int64)
        found: set[int] = set()
        for number in range(self._lists):
            size = lists.list_size(number)
            if size:
                inside = faiss.rev_swig_ptr(lists.get_ids(number), size)
                found.update(wanted[np.isin(wanted, inside)].tolist())
        return found

    def vectors(self, ids: Sequence[int]) -> dict[int, Vectors]:
        """Vectors by id, float32 (dimension,); absent where one is not held."""
        if self._index is None or not len(ids):
            return {}
        if not self.exact:
            halves = self._stored(list(ids))
            exact = from_halves(list(halves.values())) if halves else ()
            return dict(zip(halves, exact, strict=True))
        try:
            matrix = self._index.reconstruct_batch(np.asarray(ids, np.int64))
        except RuntimeError:
            return self._one_by_one(ids)
        return dict(zip(ids, matrix, strict=True))

    def _one_by_one(self, ids: Sequence[int]) -> dict[int, Vectors]:
        found = {}
        for point in ids:
            try:
                found[point] = self._index.reconstruct(int(point))
            except RuntimeError:
                continue
        return found

    def save(self, path: Path, note: Mapping[str, Any]) -> None:
        """Write the index with a note and a checksum: temporary file, fsync, rename."""
        if self._index is None or self.exact:
            path.unlink(missing_ok=True)
            return
        body = _faiss().serialize_index(self._index).tobytes()
        head = {
            "sha256": hashlib.sha256(body).hexdigest(),
            "lists": self._lists,
            "trained_for": self._trained_for,
            "note": dict(note),
        }
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_MAGIC + json.dumps(head).encode() + b"\n")
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def load(self, path: Path) -> dict[str, Any] | None:
        """
        Take a saved index; returns its note, or None where there is none to take.

        A file that is damaged in any place counts as none.
        """
        try:
            with path.open("rb") as file:
                if file.readline(64) != _MAGIC:
                    return None
                head = json.loads(file.readline(65536))
                body = file.read()
        except (OSError, ValueError):
            return None
        if hashlib.sha256(body).hexdigest() != head.get("sha256"):
            return None
        self._index = _faiss().deserialize_index(np.frombuffer(body, np.uint8))
        self._lists, self._trained_for = int(head["lists"]), int(head["trained_for"])
        note: dict[str, Any] = head["note"]
        return note


def _faiss() -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss
