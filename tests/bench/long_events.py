"""
What one chunk for a long tool event, embedded from a reduced view, saves.

Reads every transcript under the given folders and cuts it twice: with long
tool events as chunks of their own, and as prose like everything else. Counts
chunks and the characters an embedding model is given, checks that the chunks
rebuild each text exactly, and gives CPU time of writing, cutting and reducing.
Nothing is redacted and nothing is stored.

    PYTHONPATH=tests python -m bench.long_events FOLDER... [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

from imprintd.errors import SourceError
from imprintd.model.event import Event
from imprintd.model.snapshot import Chunk, Limits
from imprintd.model.source import SourceId
from imprintd.readers import identify
from imprintd.text.blocks import cut, encode, pack
from imprintd.text.canonical import parse, render_all
from imprintd.text.chunking import TOOL_KINDS, chunk_events
from imprintd.text.view import embedding_text

LIMITS = Limits()
AS_PROSE = replace(LIMITS, hard_max=10**9, piece=10**9)
"""No event is long under these limits, and nothing else depends on them."""


class NothingKnown:
    """A ledger and a side folder that are empty."""

    def counts(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        return {}

    def read(self, name: str, call_id: str | None) -> bytes | None:
        return None


@dataclass
class Tally:
    """What was counted over all conversations."""

    conversations: int = 0
    unread: int = 0
    chars: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    outputs: list[int] = field(default_factory=list)
    long_events: list[int] = field(default_factory=list)
    views: list[int] = field(default_factory=list)
    chunks: int = 0
    chunks_as_prose: int = 0
    embedded: int = 0
    embedded_as_prose: int = 0
    rebuilt: int = 0
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def report(self) -> dict[str, object]:
        """The figures by name."""
        rates = {name: round(self.chars / s / 1e6, 1) for name, s in self.cpu.items() if s}
        return {
            "conversations": self.conversations,
            "rebuilt_exactly": self.rebuilt,
            "unread": self.unread,
            "chars": self.chars,
            "share_by_kind": {k: round(n / self.chars, 3) for k, n in self.by_kind.most_common()},
            "output_chars_median": median(self.outputs),
            "output_chars_p99": round(quantiles(self.outputs, n=100)[98]),
            "output_chars_max": max(self.outputs),
            "chunks_as_prose": self.chunks_as_prose,
            "chunks": self.chunks,
            "chunks_saved": round(1 - self.chunks / self.chunks_as_prose, 4),
            "embedded_as_prose": self.embedded_as_prose,
            "embedded": self.embedded,
            "embedded_saved": round(1 - self.embedded / self.embedded_as_prose, 4),
            "long_events": len(self.long_events),
            "long_event_chars_median": median(self.long_events or [0]),
            "views": len(self.views),
            "view_chars_median": median(self.views or [0]),
            "view_chars_max": max(self.views or [0]),
            "million_chars_per_cpu_second": rates,
        }


def conversations(folders: Sequence[Path], tally: Tally) -> Iterator[tuple[str, list[Event]]]:
    """The events of every source, from its largest file."""
    files: dict[str, tuple[int, Path]] = {}
    for path in sorted(p for folder in folders for p in folder.rglob("*.jsonl") if p.is_file()):
        with path.open("rb") as stream:
            found = identify(str(path), stream.read(65536))
        if found:
            size = path.stat().st_size
            files[found[1].key] = max(files.get(found[1].key, (0, path)), (size, path))
    for key, (_, path) in files.items():
        data = path.read_bytes()
        reader = identify(str(path), data[:65536])
        assert reader is not None
        try:
            reading = reader[0].read(
                data,
                state=b"",
                fresh=False,
                final=True,
                salvage=True,
                ledger=NothingKnown(),
                side=NothingKnown(),
            )
        except SourceError:
            tally.unread += 1
            continue
        if reading.events:
            yield key, list(reading.events)


def measure(key: str, events: list[Event], tally: Tally) -> None:
    """Count one conversation."""
    source = SourceId("bench", "", key)
    clock = time.process_time
    start = clock()
    text, spans = render_all(events)
    tally.cpu["write"] += clock() - start
    start = clock()
    for piece in cut(encode(text)):
        pack(piece)
    tally.cpu["blocks"] += clock() - start
    start = clock()
    chunks = chunk_events(text, 0, spans, source, LIMITS)
    tally.cpu["chunks"] += clock() - start
    start = clock()
    views = [embedding_text(text[c.start : c.end], LIMITS) for c in chunks]
    tally.cpu["views"] += clock() - start
    prose = chunk_events(text, 0, spans, source, AS_PROSE)
    tally.conversations += 1
    tally.rebuilt += rebuilds(text, chunks) and rebuilds(text, prose) and parse(text) == events
    tally.chars += len(text)
    for span in spans:
        tally.by_kind[span.kind] += span.end - span.start
        if span.kind in TOOL_KINDS and span.end - span.start > LIMITS.hard_max:
            tally.long_events.append(span.end - span.start)
    tally.outputs += [len(e.body) for e in events if e.kind == "tool_output"]
    tally.chunks += len(chunks)
    tally.chunks_as_prose += len(prose)
    tally.embedded += sum(map(len, views))
    tally.embedded_as_prose += sum(c.end - c.start for c in prose)
    tally.views += [
        len(v) for v, c in zip(views, chunks, strict=True) if c.end - c.start > LIMITS.hard_max
    ]


def rebuilds(text: str, chunks: Sequence[Chunk]) -> bool:
    """Whether spans and digests of the chunks give the text again."""
    at = 0
    for chunk in chunks:
        content = text[chunk.start : chunk.end]
        if not chunk.start <= at < chunk.end:
            return False
        if hashlib.sha256(encode(content)).digest() != chunk.content_digest:
            return False
        at = chunk.end
    return at == len(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tally = Tally()
    for key, events in conversations(options.folders, tally):
        measure(key, events, tally)
    if not tally.outputs:
        print("no transcript with a tool output under these folders", file=sys.stderr)
        return 3
    report = tally.report()
    if options.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name:30} {value}")
    return 0 if tally.rebuilt == tally.conversations else 1


if __name__ == "__main__":
    sys.exit(main())
