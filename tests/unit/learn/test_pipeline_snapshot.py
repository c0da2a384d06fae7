"""The pure pipeline: what it redacts, refuses and names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from imprintd.errors import ConfigError, IntegrityError, Refused
from imprintd.learn import pipeline
from imprintd.learn.pipeline import Base, SnapshotBuilder, extend
from imprintd.model.event import Event, EventSpan
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import (
    BLOCK_BYTES_MAX,
    LEARNER_VERSION,
    Limits,
    SnapshotUpdate,
    Tail,
)
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.text.blocks import (
    CHAIN_START,
    chain,
    chain_chunk,
    close_chain,
    decode,
    unpack,
    version_of,
)
from imprintd.text.canonical import parse, render_all
from imprintd.text.chunking import chunk_events

SOURCE = SourceId("default", "/home/me/project", "claude:7")
META = SourceMeta("claude", "A title", None, 1_700_000_000_000)
CURSOR = Cursor("/t.jsonl", 1, 2, 3, b"f" * 32, b"a" * 32, 3, 4, 5)


@dataclass
class Result:
    text: str


class Redactor:
    """Masks one word, and keeps what it was asked."""

    profile = "masks 1"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def redact_many(self, texts: Sequence[str], /) -> list[Result]:
        self.asked.append(list(texts))
        return [Result(t.replace("hunter2", "[secret]")) for t in texts]


def learn(
    base: Base | None, events: Sequence[Event], limits: Limits | None = None
) -> SnapshotUpdate:
    return extend(
        SOURCE,
        base,
        events,
        meta=META,
        coverage=Coverage({"image": 1}),
        state=b"state",
        cursor=CURSOR,
        record_keys=[b"8 bytes."],
        redactor=Redactor(),
        limits=limits or Limits(),
    )


def base_after(update: SnapshotUpdate) -> Base:
    """The base that a store would hand over after a first update."""
    text = decode(b"".join(unpack(b.packed, b.digest) for b in update.blocks))
    opened = update.blocks[update.tail.closed_blocks :]
    return Base(
        update.version,
        update.meta,
        update.profile,
        update.tail,
        update.coverage,
        unpack(opened[0].packed, None) if opened else b"",
        text[update.tail.open_start :],
    )


def message(body: str, turn: int = 1) -> Event:
    return Event("assistant", "message", body, turn)


def test_an_update_holds_the_text_and_all_that_names_it() -> None:
    events = [Event("user", "message", "why?", 1, "2026-01-02T03:04:05Z"), message("because")]
    text, spans = render_all(events)
    update = learn(None, events)
    (block,) = update.blocks
    assert unpack(block.packed, block.digest) == text.encode()
    chunks = chunk_events(text, 0, spans, SOURCE, Limits())
    size = len(text.encode())
    root = close_chain(chain(CHAIN_START, block.digest, block.size), 1, len(text), size)
    manifest_root = close_chain(chain_chunk(CHAIN_START, chunks[0]), 1, len(text), size)
    assert update == SnapshotUpdate(
        source=SOURCE,
        meta=META,
        base_version=None,
        version=version_of(root, manifest_root, "masks 1"),
        profile="masks 1",
        learner=LEARNER_VERSION,
        keep_blocks=0,
        blocks=(block,),
        keep_chunks=0,
        chunks=tuple(chunks),
        total_chars=len(text),
        total_bytes=size,
        events=2,
        root=root,
        manifest_root=manifest_root,
        coverage=Coverage({"image": 1}),
        tail=Tail(
            total_chars=len(text), events=2, last_event_start=spans[1].start, open_events=spans
        ),
        state=b"state",
        cursor=CURSOR,
        record_keys=(b"8 bytes.",),
    )


def test_every_part_that_reaches_the_text_is_redacted_in_one_batch() -> None:
    event = Event(
        "tool", "tool_output", "pw hunter2", 1, "hunter2 o'clock", "call-hunter2", "x-hunter2"
    )
    redactor = Redactor()
    builder = SnapshotBuilder(SOURCE, None, redactor=redactor, limits=Limits())
    plain = Event("user", "message", "fine", 2, "2026-01-02T03:04:05.678Z", "call-hunter2")
    builder.add([event, plain])
    update = builder.finish(meta=META, coverage=Coverage())
    assert parse(unpack(update.blocks[0].packed, None).decode()) == [
        Event(
            "tool",
            "tool_output",
            "pw [secret]",
            1,
            "[secret] o'clock",
            "call-[secret]",
            "x-[secret]",
        ),
        replace(plain, call_id="call-[secret]"),
    ]
    assert redactor.asked == [
        ["pw hunter2", "fine", "hunter2 o'clock", "call-hunter2", "x-hunter2"]
    ]


def test_spans_and_metadata_are_of_the_redacted_text() -> None:
    update = learn(None, [message("hunter2"), message("two")])
    text = unpack(update.blocks[0].packed, None).decode()
    header = "«assistant message · turn 1 · 8 chars»\n"
    first = len(header) + len("[secret]\n")
    assert text.startswith(header + "[secret]\n")
    assert update.chunks[0].events == (
        EventSpan(0, first, "assistant", "message", 1, None),
        EventSpan(first, len(text), "assistant", "message", 1, None),
    )


def test_nothing_new_changes_neither_version_nor_text() -> None:
    first = learn(None, [message("a" * 300_000), message("b")])
    again = learn(base_after(first), [])
    assert again.base_version == first.version
    assert again.version == first.version
    assert again.blocks == first.blocks[first.tail.closed_blocks :]
    assert again.chunks == first.chunks[first.tail.closed_chunks :]
    assert again.tail == first.tail


def test_a_source_without_events_is_an_empty_snapshot() -> None:
    update = learn(None, [])
    assert (update.blocks, update.chunks, update.total_chars, update.tail) == ((), (), 0, Tail())


def test_the_cost_of_an_append_does_not_grow_with_the_conversation() -> None:
    events = [message("a line of text\n" * (i % 40), i) for i in range(3000)]
    late = [message("one more", 9)]
    small, large = learn(None, events[:60]), learn(None, events)
    assert len(large.blocks) > 3
    for first in (small, large):
        base = base_after(first)
        assert len(base.open_text) <= Limits().hard_max
        assert len(base.open_block) < BLOCK_BYTES_MAX
        assert len(base.tail.open_events) < 300
        more = learn(base, late)
        assert (len(more.blocks), len(more.chunks)) in {(1, 1), (1, 2)}
        assert more.keep_blocks == len(first.blocks) - 1
        assert more.keep_chunks >= len(first.chunks) - 1


def test_a_long_tool_event_leaves_nothing_open() -> None:
    update = learn(None, [message("x"), Event("tool", "tool_output", "log\n" * 100_000, 1)])
    assert [c.long_event for c in update.chunks] == [False, True, True]
    assert update.tail.open_events == ()
    assert update.tail.open_start == update.total_chars
    assert update.tail.closed_chunks == 3
    assert base_after(update).open_text == ""


def test_a_text_over_the_limit_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "TEXT_BYTES_MAX", 1000)
    learn(None, [message("a" * 900), message("")])
    with pytest.raises(Refused) as caught:
        learn(None, [message("a" * 900), message("b" * 100)])
    assert caught.value.reason == "text-too-large"
    redactor = Redactor()
    with pytest.raises(Refused):
        SnapshotBuilder(SOURCE, None, redactor=redactor, limits=Limits()).add([message("a" * 1001)])
    assert redactor.asked == []
    base = base_after(learn(None, [message("a" * 900)]))
    with pytest.raises(Refused):
        learn(base, [message("b" * 100)])


def test_a_manifest_over_the_limit_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MANIFEST_ENTRIES_MAX", 3)
    learn(None, [message("a" * 5000)] * 3)
    with pytest.raises(Refused) as caught:
        learn(None, [message("a" * 5000)] * 4)
    assert caught.value.reason == "too-many-chunks"


def test_a_base_that_contradicts_itself_is_refused() -> None:
    base = base_after(learn(None, [message("one"), message("two")]))
    for wrong in (
        replace(base, open_text=base.open_text + "x"),
        replace(base, open_text=""),
        replace(base, tail=replace(base.tail, open_events=())),
        replace(base, tail=replace(base.tail, open_events=base.tail.open_events[:1])),
        replace(base, open_block=base.open_block + b"x"),
    ):
        with pytest.raises(IntegrityError):
            learn(wrong, [message("three")])


def test_limits_that_contradict_each_other_are_refused() -> None:
    for limits in (
        Limits(overlap=3000),
        Limits(hard_max=100),
        Limits(piece=100),
        Limits(size_code=1),
    ):
        with pytest.raises(ConfigError):
            learn(None, [message("x")], limits)


def test_a_continued_text_keeps_the_profile_of_its_oldest_part() -> None:
    base = replace(base_after(learn(None, [message("one")])), profile="masks 0")
    update = learn(base, [message("two")])
    assert update.profile == "masks 0"
    assert update.version == version_of(update.root, update.manifest_root, "masks 0")


def test_a_rewritten_text_names_the_head_it_replaces() -> None:
    events = [message("one"), message("two")]
    builder = SnapshotBuilder(SOURCE, None, redactor=Redactor(), limits=Limits(), replaces="0" * 32)
    builder.add(events)
    update = builder.finish(meta=META, coverage=Coverage())
    assert (update.base_version, update.keep_blocks, update.keep_chunks) == ("0" * 32, 0, 0)
    assert update.version == learn(None, events).version


def test_memory_ids_are_as_written_down() -> None:
    update = learn(None, [message("one")])
    (chunk,) = update.chunks
    parts = [
        b"imprintd chunk 1",
        b"/home/me/project",
        b"claude:7",
        chunk.start.to_bytes(8, "big"),
        chunk.end.to_bytes(8, "big"),
        chunk.content_digest,
    ]
    mixed = hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in parts)).digest()
    number = int.from_bytes(mixed[:16], "big") >> 3
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    expected = "".join(letters[number >> 5 * (24 - i) & 31] for i in range(25))
    assert chunk.memory_id == "m" + expected


def test_a_redactor_that_loses_a_text_is_noticed() -> None:
    class Losing(Redactor):
        def redact_many(self, texts: Sequence[str], /) -> list[Result]:
            return super().redact_many(texts)[1:]

    builder = SnapshotBuilder(SOURCE, None, redactor=Losing(), limits=Limits())
    with pytest.raises(IntegrityError):
        builder.add([message("one")])
