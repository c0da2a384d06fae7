"""
How well and how fast redaction works: recall, false hits, speed, start-up.

    PYTHONPATH=tests python -m bench.redaction [folder with cases/ and corpus/]

A span counts as found when at most a tenth of it, or two characters, stays
readable; PEM headers, escapes, quotes, line prefixes and colours do not count.
A negative text with any span is a false hit. Speed is processor time on one
core over the decoded strings of real transcripts.
"""

from __future__ import annotations

import collections
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from imprintd.redact import Redacted, Redactor

SHARED: Final = Path(__file__).resolve().parents[3] / "shared"
PEERS: Final = """published figures of others on the other half of these cases (not run here):
  tool                        recall %   false hits % (hard / repository lines)   MB/s
  CredSweeper, ML               76.4        1.9 /  2.3                            0.02
  CredSweeper, no ML            80.4        9.7 / 43.4                            0.02
  betterleaks                   57.3        1.6 /  4.3                            0.3
  gitleaks 8.30.1               49.7        0.0 /  0.8                            2.2
  kingfisher, library           42.4        1.9 /  0.8                            17 to 32
  detect-secrets, file mode     38.5       14.5 / 20.7                            0.03
  secretlint                    14.1        1.6 /  0.4                            0.25"""

_UNCOUNTED: Final = re.compile(
    r"-----(?:BEGIN|END) [A-Z0-9 ]*-----?|\\+[nrt\"']|\\+u00[0-9a-f]{2}|\x1b\[[0-9;]*[A-Za-z]"
    r"|^[ +\-\d→|#.]*|[\s\"'+,;()\\]",
    re.MULTILINE,
)


@dataclass(slots=True)
class Score:
    """
    Counts over a case set.

    Attributes:
        spans: Secret spans by group (`all`, `source …`, `tier …`).
        found: Those of them that were found.
        negatives: Texts without a secret by group.
        hits: Those of them in which something was removed.
        unstable: Texts that a second redaction changed.
    """

    spans: collections.Counter[str] = field(default_factory=collections.Counter)
    found: collections.Counter[str] = field(default_factory=collections.Counter)
    negatives: collections.Counter[str] = field(default_factory=collections.Counter)
    hits: collections.Counter[str] = field(default_factory=collections.Counter)
    unstable: int = 0

    def recall(self, group: str = "all") -> float:
        """Share of the spans of a group that were found."""
        return self.found[group] / self.spans[group]

    def false_hits(self, *groups: str) -> float:
        """Share of the negatives of these groups in which something was removed."""
        return sum(self.hits[g] for g in groups) / sum(self.negatives[g] for g in groups)


def readable(text: str, start: int, end: int, result: Redacted) -> int:
    """How many characters of a secret are still there to be read."""
    covered = bytearray(end - start)
    for span in result.spans:
        low, high = max(span.start, start), min(span.end, end)
        if low < high:
            covered[low - start : high - start] = b"\1" * (high - low)
    for part in _UNCOUNTED.finditer(text[start:end]):
        covered[part.start() : part.end()] = b"\1" * (part.end() - part.start())
    return covered.count(0)


def score(redactor: Redactor, cases: Iterable[dict[str, Any]]) -> Score:
    """Redact every case and count."""
    result = Score()
    for case in cases:
        text = case["text"]
        redacted = redactor.redact(text)
        result.unstable += redactor.redact(redacted.text).text != redacted.text
        if not case["spans"]:
            group = case.get("neg_kind") or "report"
            group = "hard" if case["source"] == "negatives" else group
            result.negatives[group] += 1
            result.hits[group] += bool(redacted.spans)
        for start, end, _ in case["spans"]:
            left = readable(text, start, end, redacted)
            for group in ("all", f"source {case['source']}", f"tier {case['tier']}"):
                result.spans[group] += 1
                result.found[group] += left <= max(2, (end - start) / 10)
    return result


def cases(file: Path) -> list[dict[str, Any]]:
    """The records of a case file."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def strings(value: Any) -> Iterator[str]:
    """Every string value of a decoded JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def corpus(folder: Path) -> list[str]:
    """The readable strings of the transcripts below a folder."""
    texts: list[str] = []
    for file in sorted(folder.glob("c*/**/*.jsonl")):
        with file.open("rb") as lines:
            for line in lines:
                try:
                    texts += (text for text in strings(json.loads(line)) if len(text) > 40)
                except ValueError:
                    continue
    return texts


def speed(redactor: Redactor, texts: list[str]) -> tuple[float, int]:
    """Best of three runs in MB/s of processor time, and the spans removed."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    best = float("inf")
    spans = 0
    for _ in range(3):
        begun = time.process_time()
        spans = sum(len(result.spans) for result in redactor.redact_many(texts))
        best = min(best, time.process_time() - begun)
    return size / 1e6 / best, spans


def main() -> None:
    shared = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "cached"):
            begun = time.process_time()
            redactor = Redactor(Path(folder))
            ready = time.process_time() - begun
            redactor.redact("k=ghp_Qz7Lm2Xr9Vt4Kb8Nw3Hs6Jd1Fg5Pc0YaTuEi")
            first = time.process_time() - begun
            print(f"start {name:6}  ready {ready:6.2f} s, first token done {first:6.2f} s CPU")
        print(f"profile {redactor.profile[:16]}")
        for name in ("redaction-dev.jsonl", "redaction-reports.jsonl"):
            file = shared / "cases" / name
            if not file.is_file():
                print(f"{name}: skipped, there is no {file}")
                continue
            print(f"\n{name}")
            result = score(redactor, cases(file))
            for group in sorted(result.spans):
                count = f"{result.found[group]}/{result.spans[group]}"
                print(f"  found  {group:28} {count:>10}  {100 * result.recall(group):5.1f} %")
            for group in sorted(result.negatives):
                count = f"{result.hits[group]}/{result.negatives[group]}"
                print(f"  false  {group:28} {count:>10}  {100 * result.false_hits(group):5.1f} %")
            print(f"  texts changed by a second redaction: {result.unstable}")
        texts = corpus(shared / "corpus")
        if texts:
            single, spans = speed(redactor, texts)
            joined, _ = speed(
                redactor, ["\n".join(texts[i : i + 200]) for i in range(0, len(texts), 200)]
            )
            size = sum(map(len, texts)) / 1e6
            print(f"\ncorpus {size:.1f} M characters in {len(texts)} strings: {spans} spans")
            print(f"speed  {single:.1f} MB/s string by string, {joined:.1f} MB/s in long texts")
        else:
            print(f"speed: skipped, there are no transcripts below {shared / 'corpus'}")
    print(f"\n{PEERS}")


if __name__ == "__main__":
    main()
