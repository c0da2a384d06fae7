"""
How long a question takes, from its words to hits with excerpts.

    PYTHONPATH=tests python -m bench.query                    # 25,000 and 250,000 chunks
    PYTHONPATH=tests python -m bench.query --chunks 25000 --json

Goes the way of the daemon: canonical text, chunks of about 1,000 characters,
the store, both caches, and a question with its own embedding. Texts are made up
(see bench.lexical) and so are the chunks' vectors: mixtures of real vectors of
some hundred texts, plus noise. So recall of the vector index is that of this
mixture. CPU time of this process decides; wall time is given beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bench.lexical import WORD, made_lines, rows_of
from bench.stand import Stand, model_folder
from imprintd.model.snapshot import Limits, Point
from imprintd.search.index import from_halves

SMALL: Final = Limits(size_prose=1300, size_code=1300, overlap=100)
CHUNKS_PER_SOURCE: Final = 100
BASES: Final = 400
Matrix = npt.NDArray[np.float32]


def base_vectors(stand: Stand, rng: random.Random) -> Matrix:
    """Vectors of short real sentences in the made-up language; random ones without a model."""
    if stand.embedder is None:
        random_ones = np.random.default_rng(7).standard_normal((BASES, 384)).astype(np.float32)
        unit: Matrix = random_ones / np.linalg.norm(random_ones, axis=1, keepdims=True)
        return unit
    return stand.embedder.embed([line[:80] for line in made_lines(rng, BASES)])


def mixed(bases: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """Each a mixture of three bases plus noise of a third of its length."""
    shares = rng.dirichlet((1.0, 0.6, 0.3), count).astype(np.float32)
    picks = rng.integers(0, len(bases), (count, 3))
    vectors = np.einsum("nk,nkd->nd", shares, bases[picks])
    vectors += rng.standard_normal(vectors.shape).astype(np.float32) * (0.3 / 384**0.5)
    unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def fill(stand: Stand, chunks: int, rng: random.Random) -> None:
    lines = made_lines(rng, 100_000)
    for number in range(0, chunks, CHUNKS_PER_SOURCE):
        rows = rows_of(lines, CHUNKS_PER_SOURCE, rng)
        day = f"2026-{1 + number % 12:02d}-{1 + number % 28:02d}T10:00:00.000Z"
        roles = ("user", "assistant")
        said = [(roles[n % 2], day, row) for n, row in enumerate(rows)]
        stand.publish(f"/bench/p{number // 5000}", f"bench:{number}", said, limits=SMALL)
        print(f"\r{number} rows", end="", file=sys.stderr)


def give_vectors(stand: Stand, rng: random.Random) -> None:
    rules = stand.rules or "none"
    bases = base_vectors(stand, rng)
    noise = np.random.default_rng(11)
    row = 0
    while rows := stand.store.chunks_born_after(0, 5000, after_row=row, content=False):
        row = rows[-1].row
        vectors = mixed(bases, len(rows), noise).astype("<f2")
        points = [
            Point(one.content_digest, 0, 1, rules, vector.tobytes())
            for one, vector in zip(rows, vectors, strict=True)
        ]
        stand.store.add_points(points)
        print(f"\r{row} vectors", end="", file=sys.stderr)


def asked(stand: Stand, count: int, rng: random.Random) -> list[str]:
    """Questions of 2-5 words that stand in one chunk, half of them in a sentence."""
    last = stand.store.statistics().chunks
    questions: list[str] = []
    while len(questions) < count:
        for one in stand.store.chunks_by_row([rng.randint(1, last)], content=True):
            words = sorted(set(WORD.findall((one.content or "").split("\n", 1)[-1])))
            if len(words) >= 5:
                chosen = " ".join(rng.sample(words, rng.randint(2, 5)))
                plain = len(questions) % 2 == 0
                questions.append(chosen if plain else f"how did we change the {chosen} last week?")
    return questions


def recall(stand: Stand, questions: list[str]) -> float:
    """Share of the ten truly nearest vectors that the index names as its ten nearest."""
    assert stand.embedder is not None
    vectors = [stand.embedder.query(text) for text in questions]
    best: list[list[tuple[float, int]]] = [[] for _ in vectors]
    point = 0
    while page := stand.store.points_after(point, 5000):
        point = page[-1].id
        near = from_halves([one.vector for one in page]) @ np.stack(vectors).T
        for column, top in enumerate(best):
            scores = near[:, column]
            first = np.argpartition(-scores, min(10, len(page) - 1))[:10]
            top.extend((float(scores[n]), page[n].id) for n in first)
            best[column] = sorted(top, reverse=True)[:10]
    index = stand.search.caches.vectors
    found = 0
    for vector, top in zip(vectors, best, strict=True):
        ids, _ = index.search(vector, 10)
        found += len({number for _, number in top}.intersection(ids.tolist()))
    return found / (10 * len(vectors))


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(times, p)), 1) for p in (50, 90, 99)}


def measure(stand: Stand, questions: list[str], mode: str, **filters: Any) -> dict[str, Any]:
    for text in questions[:20]:
        stand.ask(text, filters.get("project"), mode, 10)
    cpu, wall = [], []
    hits = 0
    gc.collect()
    for text in questions:
        begin, clock = time.process_time(), time.perf_counter()
        hits += len(stand.ask(text, filters.get("project"), mode, 10).hits)
        cpu.append((time.process_time() - begin) * 1000)
        wall.append((time.perf_counter() - clock) * 1000)
    return {
        "cpu_ms": percentiles(cpu),
        "wall_ms": percentiles(wall),
        "hits": round(hits / len(questions), 1),
    }


def run(folder: Path, chunks: int, count: int) -> dict[str, Any]:
    rng = random.Random(20261201)
    with Stand(folder, model_folder(folder.parent)) as stand:
        if not stand.known():
            fill(stand, chunks, rng)
            give_vectors(stand, rng)
        began = time.process_time()
        stand.search.refresh()
        first = time.process_time() - began
        questions = asked(stand, count, random.Random(5))
        began = time.process_time()
        for _ in range(200):
            stand.search.refresh()
        idle = (time.process_time() - began) / 200
        figures = stand.store.statistics()
        words = stand.search.caches.words.size_bytes()
        report: dict[str, Any] = {
            "chunks": len(stand.search.caches.table),
            "chars": figures.text_chars,
            "first_refresh_cpu_s": round(first, 1),
            "unchanged_refresh_ms": round(1000 * idle, 3),
            "words_over_text": round(words / figures.text_chars, 3),
            "hybrid": measure(stand, questions, "hybrid"),
            "hybrid_in_a_project": measure(stand, questions, "hybrid", project="/bench/p0"),
            "lexical": measure(stand, questions, "lexical"),
            "vector": measure(stand, questions, "vector"),
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        if stand.embedder is not None:
            report["vector_recall_10"] = round(recall(stand, questions[:100]), 4)
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--chunks", type=int, action="append")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "imprintd-bench"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = {}
    for chunks in options.chunks or (25_000, 250_000):
        report[str(chunks)] = run(options.cache / f"query-{chunks}", chunks, options.questions)
        print(json.dumps({chunks: report[str(chunks)]}), file=sys.stderr)
    print(json.dumps(report) if options.json else json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
