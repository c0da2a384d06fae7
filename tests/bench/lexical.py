"""
Which engine finds words: SQLite's FTS5, tamed, or tantivy beside the database.

Builds both indexes over the same rows and asks them the same questions, one
thread, warm. Figures are CPU time of this process, so that a busy machine does
not decide; commits are given in wall time too, because they wait for the disk.

    PYTHONPATH=tests python -m bench.lexical                          # 250,000 rows
    PYTHONPATH=tests python -m bench.lexical --rows 25000 --json
    PYTHONPATH=tests python -m bench.lexical --texts FOLDER           # lines of your own JSONL

Rows of about 1,000 characters are drawn from a pool of lines: from the strings
of JSONL files under FOLDER, or else made from a seeded vocabulary whose word
frequencies fall off as in prose (Zipf). Every question is 2-5 words of one row
and so has one known answer: `found` is the share of questions whose row is
among the first ten.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import tantivy

ROW_CHARS = 1000
COMMON_SHARE = 0.05
"""A word in more than this share of the rows is left out where others remain."""
WORD = re.compile(r"[^\W_]{3,40}")

Question = tuple[int, list[str]]
Ask = Callable[[list[str]], list[int]]


def made_lines(rng: random.Random, count: int) -> list[str]:
    """Lines of a made-up language: 60,000 words, Zipf frequencies, some identifiers."""
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(60_000)]
    ranks = list(itertools.accumulate(1.0 / (rank + 2.7) for rank in range(len(words))))
    lines = []
    for _ in range(count):
        line = rng.choices(words, cum_weights=ranks, k=rng.randint(4, 18))
        if rng.random() < 0.2:
            line.append("_".join(rng.choices(words, k=2)) + ".py")
        lines.append(" ".join(line))
    return lines


def read_lines(folder: Path) -> list[str]:
    """Lines of 20-400 characters among the strings of all JSONL files."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from itertools.chain.from_iterable(map(strings, value.values()))
        elif isinstance(value, list):
            yield from itertools.chain.from_iterable(map(strings, value))

    found: set[str] = set()
    for path in sorted(folder.rglob("*.jsonl")):
        for record in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                value = json.loads(record)
            except json.JSONDecodeError:
                continue
            for text in strings(value):
                lines = (line.strip()[:400] for line in text.splitlines())
                found.update(line for line in lines if len(line) >= 20)
    return [line.encode("utf-8", "replace").decode() for line in sorted(found)]


def rows_of(lines: Sequence[str], count: int, rng: random.Random) -> list[str]:
    rows = []
    for _ in range(count):
        parts: list[str] = []
        size = 0
        target = rng.randint(ROW_CHARS // 4, ROW_CHARS * 7 // 4)
        while size < target:
            parts.append(lines[rng.randrange(len(lines))])
            size += len(parts[-1]) + 1
        rows.append("\n".join(parts))
    return rows


def questions_of(rows: Sequence[str], count: int, rng: random.Random) -> list[Question]:
    questions: list[Question] = []
    while len(questions) < count:
        number = rng.randrange(len(rows))
        words = sorted({word.lower() for word in WORD.findall(rows[number])})
        if len(words) >= 5:
            questions.append((number + 1, rng.sample(words, rng.randint(2, 5))))
    return questions


class Fts5:
    """
    FTS5 with contentless deletes.

    Two ways to ask: every word optional; or tamed: words that are everywhere
    are left out, the rest must all match, and only where that gives fewer than
    ten rows are they optional.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fts.sqlite3"
        self.db = apsw.Connection(str(self.path))
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "PRAGMA cache_size=-65536",
            (
                "CREATE VIRTUAL TABLE words USING fts5(body, content='', contentless_delete=1,"
                " tokenize='porter unicode61 remove_diacritics 2')"
            ),
            "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'row')",
        ):
            self.db.execute(statement)
        self.rows = 0

    def build(self, rows: Sequence[str]) -> None:
        for start in range(0, len(rows), 5000):
            with self.db:
                self.db.executemany(
                    "INSERT INTO words(rowid, body) VALUES (?, ?)",
                    enumerate(rows[start : start + 5000], start + 1),
                )
        with self.db:
            self.db.execute("INSERT INTO words(words) VALUES ('optimize')")
        self.rows = len(rows)
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> int:
        pages, free, page = (
            int(self.db.pragma(name)) for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page

    def _match(self, expression: str) -> list[int]:
        found = self.db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 100", (expression,)
        )
        return [row[0] for row in found]

    def any_word(self, words: list[str]) -> list[int]:
        return self._match(" OR ".join(f'"{word}"' for word in words))

    def tamed(self, words: list[str]) -> list[int]:
        counted = [(self._frequency(word), word) for word in words]
        rare = [word for count, word in counted if count <= COMMON_SHARE * self.rows]
        kept = rare or [min(counted)[1]]
        found = self._match(" AND ".join(f'"{word}"' for word in kept))
        if len(found) >= 10 or len(kept) == 1:
            return found
        known = set(found)
        return found + [row for row in self.any_word(kept) if row not in known]

    def _frequency(self, word: str) -> int:
        # The vocabulary holds stems; the stem is at most as long as the word
        # and a query for it as a phrase would walk all its rows.
        row = self.db.execute(
            "SELECT doc FROM vocabulary WHERE term = ?", (self._stem(word),)
        ).fetchone()
        return int(row[0]) if row else 0

    def _stem(self, word: str) -> str:
        return STEMMER.analyze(word)[0]

    def replace(self, numbers: Sequence[int], rows: Sequence[str]) -> None:
        with self.db:
            for number in numbers:
                self.db.execute("DELETE FROM words WHERE rowid = ?", (number,))
                self.db.execute(
                    "INSERT INTO words(rowid, body) VALUES (?, ?)", (number, rows[number - 1])
                )


STEMMER = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    .filter(tantivy.Filter.remove_long(96))
    .filter(tantivy.Filter.lowercase())
    .filter(tantivy.Filter.ascii_fold())
    .filter(tantivy.Filter.stemmer("english"))
    .build()
)


class Tantivy:
    """tantivy with positions, no stored text; the writer lives only while it writes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tantivy"
        self.path.mkdir()
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("body", tokenizer_name="words", index_option="position")
        builder.add_unsigned_field("row", indexed=True, fast=True)
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema, path=str(self.path))
        self.index.register_tokenizer("words", STEMMER)

    def _add(self, writer: Any, number: int, text: str) -> None:
        document = tantivy.Document()
        document.add_unsigned("row", number)
        document.add_text("body", text)
        writer.add_document(document)

    def build(self, rows: Sequence[str]) -> None:
        writer = self.index.writer(64_000_000, 1)
        for number, text in enumerate(rows, 1):
            self._add(writer, number, text)
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.path.iterdir())

    def any_word(self, words: list[str]) -> list[int]:
        parts = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self.schema, "body", stem))
            for word in words
            for stem in STEMMER.analyze(word)
        ]
        query = tantivy.Query.boolean_query(parts)
        hits = self.searcher.search(query, 100, count=False).hits
        places = [place for _, place in hits]
        return [int(row or 0) for row in self.searcher.fast_field_values("row", places)]

    def replace(self, numbers: Sequence[int], rows: Sequence[str]) -> None:
        writer = self.index.writer(15_000_000, 1)
        for number in numbers:
            writer.delete_documents_by_term("row", number)
            self._add(writer, number, rows[number - 1])
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()


def timed(ask: Ask, questions: Sequence[Question]) -> dict[str, float]:
    for _, words in questions[:50]:
        ask(words)
    times = []
    found = 0
    for number, words in questions:
        begin = time.process_time()
        answer = ask(words)
        times.append((time.process_time() - begin) * 1000)
        found += number in answer[:10]
    return {
        "p50_ms": round(float(np.percentile(times, 50)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "found": round(found / len(questions), 3),
    }


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """CPU and wall seconds of one piece of work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def run(rows: list[str], questions: list[Question], folder: Path) -> dict[str, Any]:
    chars = sum(map(len, rows))
    report: dict[str, Any] = {"rows": len(rows), "chars": chars, "questions": len(questions)}
    fts, other = Fts5(folder), Tantivy(folder)
    asks: dict[str, dict[str, Ask]] = {
        "fts5": {"any word": fts.any_word, "tamed": fts.tamed},
        "tantivy": {"any word": other.any_word},
    }
    engine: Fts5 | Tantivy
    for name, engine in (("fts5", fts), ("tantivy", other)):
        cpu, _ = measured(lambda e=engine: e.build(rows))  # type: ignore[misc]
        figures: dict[str, Any] = {
            "rows_per_cpu_second": round(len(rows) / cpu),
            "size_over_text": round(engine.size() / chars, 3),
        }
        for way, ask in asks[name].items():
            figures[way] = timed(ask, questions)
        changes = [
            measured(lambda e=engine, at=at: e.replace(range(at, at + 30), rows))  # type: ignore[misc]
            for at in range(1, 601, 30)
        ]
        figures["replace_30_cpu_ms"] = round(1000 * float(np.median([c for c, _ in changes])), 1)
        figures["replace_30_wall_ms"] = round(1000 * float(np.median([w for _, w in changes])), 1)
        report[name] = figures
        print(json.dumps({name: figures}), file=sys.stderr)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--texts", type=Path, help="folder of JSONL files to draw lines from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = random.Random(20261201)
    lines = read_lines(options.texts) if options.texts else made_lines(rng, 200_000)
    rows = rows_of(lines, options.rows, rng)
    folder = Path(tempfile.mkdtemp(prefix="imprintd-bench-"))
    try:
        report = run(rows, questions_of(rows, options.questions, rng), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report["lines"] = len(lines)
    print(json.dumps(report) if options.json else json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
