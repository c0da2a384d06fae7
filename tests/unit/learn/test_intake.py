"""Where reading continues when files grow, move, shrink, vanish or change their rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import zstandard
from daemon_support import Conversation

from imprintd.archive import base_of, open_store
from imprintd.clock import ManualClock
from imprintd.config import Config, ReadingConfig
from imprintd.learn.intake import Intake
from imprintd.learn.ports import Job, Outcome
from imprintd.redact import Redacted
from imprintd.store import Store


class Words:
    """Takes one word out; which one is its profile."""

    def __init__(self, *secrets: str) -> None:
        self.secrets = secrets
        self.profile = "-".join(("words", *secrets))

    def redact_many(self, texts: Sequence[str]) -> list[Redacted]:
        result = []
        for text in texts:
            for secret in self.secrets:
                text = text.replace(secret, "[REDACTED:word]")  # noqa: PLW2901
            result.append(Redacted(text, ()))
        return result


class Desk:
    """An intake over a real store, publishing what it learns."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self.store = store

    def learn(
        self,
        path: Path,
        redactor: Words | None = None,
        reading: ReadingConfig | None = None,
        *,
        final: bool = False,
        excluded: tuple[str, ...] = (),
    ) -> Outcome:
        config = Config()
        intake = Intake(
            self.store,
            partial(base_of, self.store),
            redactor or Words(),
            config.chunker,
            reading or config.reading,
            excluded=excluded,
        )
        outcome = intake.learn(Job(str(path), final=final))
        if outcome.update is not None:
            self.store.publish([outcome.update], None)
        return outcome

    def text(self, key: str) -> str:
        head = self.store.known("default", key)
        assert head is not None
        assert self.store.verify(head).sound
        return self.store.text(head)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_store(tmp_path / "data", ManualClock()) as store:
        yield Desk(tmp_path, store)


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    talk = Conversation(tmp_path / "claude", 1)
    talk.append(talk.turn("First?", "The first answer."))
    return talk


def test_an_unchanged_file_is_not_read(desk: Desk, talk: Conversation) -> None:
    desk.learn(talk.path)

    again = desk.learn(talk.path)

    assert (again.status, again.bytes_read) == ("unchanged", 0)


def test_a_half_line_waits_and_is_counted(desk: Desk, talk: Conversation) -> None:
    line = talk.record("user", "Second?")
    talk.append(line[:30])

    first = desk.learn(talk.path)
    before = desk.text(talk.key)
    talk.append(line[30:])
    desk.learn(talk.path)

    assert first.coverage.pending_tail_bytes == 30
    assert "Second?" not in before
    assert desk.text(talk.key).startswith(before)
    assert "Second?" in desk.text(talk.key)


def test_a_whole_last_record_without_newline_is_taken_when_quiet(
    desk: Desk, talk: Conversation
) -> None:
    talk.append(talk.record("user", "No newline?").rstrip(b"\n"))
    desk.learn(talk.path)
    waiting = "No newline?" in desk.text(talk.key)

    desk.learn(talk.path, final=True)
    talk.append(b"\n" + talk.record("user", "Next?"))
    desk.learn(talk.path)

    assert not waiting
    assert desk.text(talk.key).count("No newline?") == 1
    assert "Next?" in desk.text(talk.key)


@pytest.mark.parametrize("damage", ["emptied", "cut", "slimmed", "vanished"])
def test_what_a_file_loses_stays_in_memory(desk: Desk, talk: Conversation, damage: str) -> None:
    talk.append(talk.turn("Second?", "The second answer."))
    desk.learn(talk.path)
    before = desk.text(talk.key)
    lines = talk.path.read_bytes().splitlines(keepends=True)
    if damage == "vanished":
        talk.path.unlink()
    else:
        kept = {"emptied": [], "cut": lines[:2], "slimmed": lines[2:]}[damage]
        talk.path.write_bytes(b"".join(kept))

    outcome = desk.learn(talk.path)
    after_damage = desk.text(talk.key)
    with talk.path.open("ab") as file:
        file.write(talk.turn("Third?", "The third answer."))
    desk.learn(talk.path)

    expected = {
        "emptied": ("unchanged", ("file-emptied",)),
        "cut": ("learned", ("file-replaced",)),
        "slimmed": ("learned", ("file-replaced",)),
        "vanished": ("failed", ()),
    }[damage]
    assert (outcome.status, outcome.notes) == expected
    assert after_damage == before
    assert desk.text(talk.key).startswith(before)
    assert desk.text(talk.key).count("The third answer.") == 1


def test_a_moved_file_goes_on_where_it_was(desk: Desk, talk: Conversation) -> None:
    desk.learn(talk.path)
    elsewhere = talk.path.parent / "archive" / talk.path.name
    elsewhere.parent.mkdir()
    talk.path.rename(elsewhere)
    with elsewhere.open("ab") as file:
        file.write(talk.turn("Moved?", "Yes."))

    outcome = desk.learn(elsewhere)

    assert outcome.notes == ("file-moved",)
    assert desk.text(talk.key).count("First?") == 1
    assert "Moved?" in desk.text(talk.key)


def test_a_compressed_rollout_is_the_same_source(desk: Desk, tmp_path: Path) -> None:
    session = "019f0000-0000-7000-8000-000000000001"
    name = f"rollout-2026-11-01T10-00-00-{session}.jsonl"
    records = [
        {"type": "session_meta", "payload": {"id": session, "cwd": "/home/ada/x"}},
        {
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Compressed?"}],
            },
        },
    ]
    data = b"".join(
        json.dumps({"timestamp": "2026-11-01T10:00:00.000Z", **record}).encode() + b"\n"
        for record in records
    )
    plain = tmp_path / "sessions" / name
    plain.parent.mkdir()
    plain.write_bytes(data)
    desk.learn(plain)
    before = desk.text(f"codex:{session}")
    plain.unlink()
    packed = plain.with_name(name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor(level=3).compress(data))

    outcome = desk.learn(packed)

    assert (outcome.key, outcome.notes) == (f"codex:{session}", ("file-moved",))
    assert desk.text(f"codex:{session}") == before


def test_newer_redaction_reaches_what_was_learned_before(desk: Desk, talk: Conversation) -> None:
    talk.append(talk.turn("The word is abracadabra.", "I keep abracadabra to myself."))
    desk.learn(talk.path, Words("sesame"))
    talk.append(talk.turn("And sesame?", "No abracadabra, no sesame."))

    outcome = desk.learn(talk.path, Words("abracadabra"))

    text = desk.text(talk.key)
    head = desk.store.known("default", talk.key)
    assert outcome.notes == ("redacted-again",)
    assert head is not None
    assert head.profile == "words-abracadabra"
    assert "abracadabra" not in text
    assert text.count("[REDACTED:word]") == 3
    assert text.count("First?") == 1


def test_limits_refuse_by_name_and_keep_what_was_there(desk: Desk, talk: Conversation) -> None:
    desk.learn(talk.path)
    before = desk.text(talk.key)
    talk.append(talk.turn("Long?", "x" * 9_000_000))

    line = desk.learn(talk.path, reading=ReadingConfig(line_bytes_max=5_000_000))
    file = desk.learn(talk.path, reading=ReadingConfig(file_bytes_max=1000))

    assert [(o.status, o.reason) for o in (line, file)] == [
        ("failed", "line-too-long"),
        ("failed", "file-too-large"),
    ]
    assert desk.text(talk.key) == before


def test_excluded_projects_are_never_read(desk: Desk, talk: Conversation) -> None:
    outcome = desk.learn(talk.path, excluded=("/home/ada",))

    assert (outcome.status, outcome.reason) == ("skipped", "excluded")
    assert desk.store.known("default", talk.key) is None


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"not json at all\n", b'{"a": 1}\n'])
def test_what_is_no_transcript_is_left_alone(desk: Desk, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)

    assert desk.learn(path).status == "skipped"


def test_two_files_with_one_session_id_under_unusual_names_are_two_sources(
    desk: Desk, talk: Conversation, tmp_path: Path
) -> None:
    one, two = tmp_path / "full.jsonl", tmp_path / "other.jsonl"
    one.write_bytes(talk.path.read_bytes())
    two.write_bytes(talk.turn("Another?", "Another beginning."))

    keys = [desk.learn(path).key for path in (one, two)]
    with two.open("ab") as file:
        file.write(talk.turn("More?", "More of the other."))
    again = desk.learn(two)

    assert keys[0] == talk.key
    assert keys[1] is not None
    assert keys[1].startswith(talk.key)
    assert keys[1] != talk.key
    assert (again.key, again.notes) == (keys[1], ())
    assert "Another" not in desk.text(talk.key)


def test_a_fifo_does_not_hang(desk: Desk, tmp_path: Path) -> None:
    import os

    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)

    outcome = desk.learn(path)

    assert (outcome.status, outcome.reason) == ("failed", "not-a-file")
