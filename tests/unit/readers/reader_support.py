"""
What the readers' tests share: a driver in miniature, samples, record makers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from imprintd.model.event import Event
from imprintd.model.reading import Reading
from imprintd.model.source import Coverage
from imprintd.readers import READERS
from imprintd.readers.base import Reader

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
CLAUDE = READERS["claude"]
CODEX = READERS["codex"]


def sample(pattern: str) -> bytes:
    """The one sample whose path matches."""
    (found,) = SAMPLES.glob(pattern)
    return found.read_bytes()


@dataclass
class MemoryLedger:
    """A ledger as the store keeps it."""

    taken: Counter[bytes] = field(default_factory=Counter)

    def counts(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        return {key: self.taken[key] for key in keys if key in self.taken}


@dataclass
class Side:
    """Side files by name; remembers what was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def read(self, name: str, call_id: str | None) -> bytes | None:
        self.asked.append((name, call_id))
        return self.files.get(name)


@dataclass
class Driver:
    """Feeds a reader as a growing file would and adds up what it gives."""

    reader: Reader
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    side: Side = field(default_factory=Side)
    fresh: bool = False
    salvage: bool = False
    state: bytes = b""
    offset: int = 0
    total: Reading = field(default_factory=Reading)

    def feed(self, data: bytes, upto: int | None = None, *, final: bool = False) -> Reading:
        """Show the file's first `upto` bytes."""
        given = data[self.offset : len(data) if upto is None else upto]
        got = self.reader.read(
            given,
            state=self.state,
            fresh=self.fresh,
            final=final,
            salvage=self.salvage,
            ledger=self.ledger,
            side=self.side,
        )
        assert 0 <= got.consumed <= len(given)
        assert got.coverage.pending_tail_bytes == len(given) - got.consumed
        assert got.lines == given.count(b"\n", 0, got.consumed)
        assert all(len(key) == 8 for key in got.record_keys)
        self.offset += got.consumed
        self.state = got.state
        self.ledger.taken.update(got.record_keys)
        self.total = joined(self.total, got)
        return got


def joined(first: Reading, second: Reading) -> Reading:
    """Two readings one after the other, as one."""
    stamps = [stamp for stamp in (first.updated, second.updated) if stamp]
    return Reading(
        events=first.events + second.events,
        consumed=first.consumed + second.consumed,
        lines=first.lines + second.lines,
        state=second.state,
        record_keys=first.record_keys + second.record_keys,
        coverage=first.coverage.plus(second.coverage),
        project=first.project if first.project is not None else second.project,
        title=second.title if second.title is not None else first.title,
        first_question=(
            first.first_question if first.first_question is not None else second.first_question
        ),
        updated=max(stamps, default=None),
    )


def read(
    reader: Reader,
    data: bytes,
    cuts: Iterable[int] = (),
    *,
    final: bool = True,
    salvage: bool = False,
    side: Side | None = None,
) -> Reading:
    """Read a whole file that grew by the given cuts."""
    driver = Driver(reader, salvage=salvage, side=side or Side())
    for cut in sorted(cuts):
        driver.feed(data, cut)
    driver.feed(data, final=final)
    return driver.total


def jsonl(*records: Any) -> bytes:
    """Records as a client writes them."""
    return b"".join(
        json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
        + b"\n"
        for record in records
    )


def claude_user(number: int, content: Any, **more: Any) -> dict[str, Any]:
    """A line of the user."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/home/ada/loom",
        "sessionId": "s-1",
        "type": "user",
        "message": {"role": "user", "content": content},
        "uuid": f"u-{number}",
        "timestamp": f"2026-03-04T09:00:{number % 60:02d}.000Z",
    } | more


def claude_said(
    number: int, *blocks: Any, message: str | None = None, **more: Any
) -> dict[str, Any]:
    """A line of the assistant."""
    return (
        claude_user(number, None)
        | {
            "type": "assistant",
            "message": {
                "id": message or f"m-{number}",
                "role": "assistant",
                "content": list(blocks),
            },
        }
        | more
    )


def claude_attachment(number: int, **attachment: Any) -> dict[str, Any]:
    """An attachment line."""
    record = claude_user(number, None) | {"type": "attachment", "attachment": attachment}
    del record["message"]
    return record


def queued(text: str, second: int = 0) -> dict[str, Any]:
    """Text typed while the assistant works."""
    return {
        "type": "queue-operation",
        "operation": "enqueue",
        "timestamp": f"2026-03-04T09:01:{second:02d}.000Z",
        "sessionId": "s-1",
        "content": text,
    }


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def result(call: str, content: Any) -> dict[str, Any]:
    """A tool result block."""
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def use(call: str, name: str, **given: Any) -> dict[str, Any]:
    """A tool use block."""
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def codex(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    """An envelope line; `second` may run over a minute."""
    stamp = f"2026-03-05T10:{second // 60:02d}:{second % 60:02d}.000Z"
    return {"timestamp": stamp, "type": kind, "payload": payload}


def item(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    """A response item."""
    return codex("response_item", second, type=kind, **payload)


def message(role: str, *texts: str, second: int = 0) -> dict[str, Any]:
    """A message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words} for words in texts]
    return item("message", second, role=role, content=content)


def event(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    """An event message."""
    return codex("event_msg", second, type=kind, **payload)


def bodies(reading: Reading | Driver, *roles: str) -> list[str]:
    """The bodies, of some roles if any are named."""
    got = reading.total if isinstance(reading, Driver) else reading
    return [one.body for one in got.events if not roles or one.role in roles]


def brief(reading: Reading) -> list[tuple[str, str, str]]:
    """Role, kind and body of every event."""
    return [(one.role, one.kind, one.body) for one in reading.events]


def plain(events: Iterable[Event]) -> list[Event]:
    """Events without their turn numbers."""
    return [replace(one, turn=0) for one in events]


def without_pending(coverage: Coverage) -> Coverage:
    """Coverage apart from the unfinished line."""
    return replace(coverage, pending_tail_bytes=0)


Maker = Callable[[int, str], dict[str, Any]]
"""Makes an assistant's message line from a number and its words."""


def claude_line(number: int, words: str) -> dict[str, Any]:
    return claude_said(number, text(words))


def codex_line(number: int, words: str) -> dict[str, Any]:
    return message("assistant", words, second=number)


MAKERS: dict[str, Maker] = {"claude": claude_line, "codex": codex_line}
