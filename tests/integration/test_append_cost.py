"""One more 2 KB turn costs the same in a short conversation and in a very long one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from daemon_support import Conversation

from imprintd.archive import base_of, open_store
from imprintd.clock import ManualClock
from imprintd.config import Config
from imprintd.learn.intake import Intake
from imprintd.learn.ports import Job
from imprintd.redact import Redacted
from imprintd.text.view import embedding_text


@dataclass
class Cost:
    """Bytes and characters that one append moved, counted."""

    read: int
    redacted: int
    blocks_packed: int
    chunks_chars: int
    embedded_chars: int
    rows: int


class CountingRedactor:
    """Redacts nothing and counts what it was given."""

    profile = "counting"

    def __init__(self) -> None:
        self.chars = 0

    def redact_many(self, texts: Sequence[str]) -> list[Redacted]:
        self.chars += sum(map(len, texts))
        return [Redacted(text, ()) for text in texts]


def cost_of_an_append(folder: Path, size: int) -> Cost:
    """Learn a conversation of about `size` bytes, append 2 KB, count the second learning."""
    talk = Conversation(folder / "claude", 1)
    line = "the quick brown fox jumps over lazy dogs near river banks, number {}. "
    with talk.path.open("ab") as file:
        written = 0
        while written < size:
            said = "".join(line.format(written + i) for i in range(120))
            written += file.write(talk.turn("again?", said))
    redactor = CountingRedactor()
    config = Config()
    with open_store(folder / "data", ManualClock()) as store:
        intake = Intake(store, partial(base_of, store), redactor, config.chunker, config.reading)
        first = intake.learn(Job(str(talk.path)))
        assert first.update is not None
        store.publish([first.update], None)
        talk.append(talk.turn("one more?", (line * 28)[:1800]))
        redactor.chars = 0
        second = intake.learn(Job(str(talk.path)))
        update = second.update
        assert update is not None
        assert update.keep_chunks >= len(first.update.chunks) - 1
        head = store.publish([update], None)[0]
        text = store.text_of(head.source, update.tail.open_start - 20_000 if size > 50_000 else 0)
        start = head.total_chars - len(text)
        return Cost(
            read=second.bytes_read,
            redacted=redactor.chars,
            blocks_packed=sum(len(block.packed) for block in update.blocks),
            chunks_chars=sum(chunk.end - chunk.start for chunk in update.chunks),
            embedded_chars=sum(
                len(embedding_text(text[chunk.start - start : chunk.end - start], config.chunker))
                for chunk in update.chunks
            ),
            rows=len(update.blocks) + len(update.chunks),
        )


@pytest.mark.parametrize("size", [100_000, 1_000_000, 10_000_000, 60_000_000])
def test_an_append_costs_what_is_appended(tmp_path: Path, size: int) -> None:
    cost = cost_of_an_append(tmp_path, size)

    # the head and the anchor of the file, and the new lines
    assert cost.read < 64 * 1024 + 4096
    assert cost.redacted < 2500
    # the open block, at most one full one
    assert cost.blocks_packed < 256 * 1024
    # the open chunk, and what does not fit into it
    assert cost.chunks_chars < 2 * 8000
    assert cost.embedded_chars < 2 * 8000
    assert cost.rows <= 4
