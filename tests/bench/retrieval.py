"""
How often the right place is found, and how far up: LoCoMo and a needle test.

    PYTHONPATH=tests python -m bench.retrieval                 # needles; LoCoMo if the data is there
    PYTHONPATH=tests python -m bench.retrieval --data FILE --json

LoCoMo (snap-research/locomo, CC BY-NC 4.0, not part of this repository): ten
long conversations and about 1,980 questions with the turns that answer them.
Everything goes the way it goes in the daemon: canonical text, chunks, the
store, the embedding model, `Search`. Once with a session as a source, once
with every single turn as a source of its own; the same configuration for both.
A hit counts if any of the question's places is among the first k. Redaction is
left out, as it would change nothing here.

Vectors are kept under the bench's cache folder, for they take minutes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import evidence
from bench.stand import Stand, model_folder

DATA: Final = Path(__file__).resolve().parents[3] / "shared" / "data" / "locomo10.json"
CUTS: Final = (1, 5, 10)
MODES: Final = ("lexical", "vector", "hybrid")
_DATE: Final = re.compile(r"(\d+):(\d+) (am|pm) on (\d+) (\w+), (\d+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question within one conversation and the places that answer it."""

    project: str
    text: str
    places: frozenset[str]
    category: int


def sessions(conversation: dict[str, Any]) -> Iterator[tuple[int, dt.datetime, list[Any]]]:
    number = 1
    while (turns := conversation.get(f"session_{number}")) is not None:
        when = _DATE.match(conversation[f"session_{number}_date_time"])
        assert when is not None
        hour = int(when[1]) % 12 + 12 * (when[3] == "pm")
        day = dt.datetime.strptime(f"{when[4]} {when[5]} {when[6]} +0000", "%d %B %Y %z")
        yield number, day.replace(hour=hour, minute=int(when[2])), turns
        number += 1


def learn(stand: Stand, data: list[Any], level: str) -> None:
    """Publish every session, or every turn, as a source."""
    for sample in data:
        project = f"/locomo/{sample['sample_id']}"
        conversation = sample["conversation"]
        for number, begin, turns in sessions(conversation):
            said = []
            for index, turn in enumerate(turns):
                role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
                when = (begin + dt.timedelta(seconds=20 * index)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
                body = f"{turn['speaker']}: {turn['text']}"
                if turn.get("blip_caption"):
                    body += f" [shares {turn['blip_caption']}]"
                said.append((role, when, body, turn["dia_id"]))
            if level == "session":
                stand.publish(project, f"D{number}", [item[:3] for item in said])
            else:
                for item in said:
                    stand.publish(project, item[3], [item[:3]])


def questions(data: list[Any], level: str) -> list[Asked]:
    asked = []
    for sample in data:
        known = {
            turn["dia_id"] for _, _, turns in sessions(sample["conversation"]) for turn in turns
        }
        for item in sample["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(map(str, item.get("evidence", []))))
            places = {place for place in named if level == "session" or place in known}
            if level == "session":
                places = {place.split(":")[0] for place in places}
            if places:
                project = f"/locomo/{sample['sample_id']}"
                asked.append(Asked(project, item["question"], frozenset(places), item["category"]))
    return asked


def measure(stand: Stand, asked: Sequence[Asked], mode: str) -> dict[str, Any]:
    hits: dict[int, int] = dict.fromkeys(CUTS, 0)
    by_category: dict[int, list[int]] = defaultdict(list)
    begin = time.process_time()
    for question in asked:
        found: list[str] = []
        for source in stand.sources(question.text, question.project, mode, max(CUTS)):
            if source not in found:
                found.append(source)
        for cut in CUTS:
            hits[cut] += bool(question.places.intersection(found[:cut]))
        by_category[question.category].append(bool(question.places.intersection(found[:10])))
    return {
        "hit": {str(cut): round(100 * count / len(asked), 1) for cut, count in hits.items()},
        "by_category_10": {
            str(c): round(100 * sum(v) / len(v), 1) for c, v in sorted(by_category.items())
        },
        "cpu_ms_per_question": round(1000 * (time.process_time() - begin) / len(asked), 2),
    }


def locomo(data: list[Any], cache: Path, model: Path) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for level in ("session", "turn"):
        with Stand(cache / f"locomo-{level}", model) as stand:
            if not stand.known():
                learn(stand, data, level)
            embedded = stand.embed(progress=True)
            asked = questions(data, level)
            report[level] = {
                "questions": len(asked),
                "chunks": stand.chunks(),
                "new_vectors": embedded,
                **{mode: measure(stand, asked, mode) for mode in MODES},
            }
            print(json.dumps({level: report[level]}), file=sys.stderr)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "imprintd-bench"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = model_folder(options.cache)
    report: dict[str, Any] = {"evidence": evidence.run(model)}
    print(json.dumps(report), file=sys.stderr)
    if model is not None and options.data.is_file():
        data = json.loads(options.data.read_text(encoding="utf-8"))
        report["locomo"] = locomo(data, options.cache, model)
    print(json.dumps(report) if options.json else json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
