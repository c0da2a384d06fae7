"""However a conversation arrives, its snapshot is the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from test_text_cutting import SOURCE, limits_small
from test_text_events import events

from imprintd.learn.pipeline import Base, SnapshotBuilder
from imprintd.model.event import Event
from imprintd.model.snapshot import Block, Chunk, Limits, SnapshotUpdate, Tail
from imprintd.model.source import Coverage, SourceMeta
from imprintd.text.blocks import decode, unpack
from imprintd.text.canonical import parse

META = SourceMeta("claude", "A title")


@dataclass
class Result:
    text: str


class Masking:
    """Masks every run of x: a stand-in with the properties of redaction."""

    profile = "masking 1"

    def redact_many(self, texts: Sequence[str], /) -> list[Result]:
        return [Result(t.replace("xx", "[masked]")) for t in texts]


class Shelf:
    """What a store keeps of a source, applied update by update."""

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self.blocks: list[Block] = []
        self.chunks: list[Chunk] = []
        self.tail = Tail()
        self.version = ""

    @property
    def plain(self) -> bytes:
        return b"".join(unpack(b.packed, b.digest) for b in self.blocks)

    def apply(self, update: SnapshotUpdate) -> None:
        assert update.base_version == (self.version or None)
        assert update.keep_blocks == self.tail.closed_blocks
        assert update.keep_chunks == self.tail.closed_chunks
        assert len(self.blocks) - update.keep_blocks <= 1
        assert len(self.chunks) - update.keep_chunks <= 1
        self.blocks[update.keep_blocks :] = update.blocks
        self.chunks[update.keep_chunks :] = update.chunks
        self.tail, self.version = update.tail, update.version

    def base(self) -> Base | None:
        if not self.version:
            return None
        opened = self.blocks[self.tail.closed_blocks :]
        return Base(
            self.version,
            META,
            Masking.profile,
            self.tail,
            Coverage(),
            unpack(opened[0].packed, None) if opened else b"",
            decode(self.plain)[self.tail.open_start :],
        )


def learn(shelf: Shelf, calls: Sequence[Sequence[Event]], limits: Limits) -> SnapshotUpdate:
    builder = SnapshotBuilder(
        SOURCE, shelf.base(), redactor=Masking(), limits=limits, block_bytes_max=shelf.size_max
    )
    for given_events in calls:
        builder.add(given_events)
    update = builder.finish(meta=META, coverage=Coverage())
    shelf.apply(update)
    return update


def totals(update: SnapshotUpdate) -> SnapshotUpdate:
    return replace(update, base_version=None, keep_blocks=0, keep_chunks=0, blocks=(), chunks=())


@settings(deadline=None)
@given(events, limits_small, st.integers(4, 400), st.data())
def test_any_division_gives_the_same_snapshot(
    conversation: list[Event], limits: Limits, size_max: int, data: st.DataObject
) -> None:
    whole = Shelf(size_max)
    at_once = learn(whole, [conversation], limits)
    parts = Shelf(size_max)
    rest = conversation
    update = None
    while rest or update is None:
        calls = []
        for _ in range(data.draw(st.integers(1, 3))):
            count = data.draw(st.integers(0, len(rest)))
            calls.append(rest[:count])
            rest = rest[count:]
        update = learn(parts, calls, limits)
    assert totals(update) == totals(at_once)
    assert parts.chunks == whole.chunks
    assert [b.digest for b in parts.blocks] == [b.digest for b in whole.blocks]
    assert parts.plain == whole.plain
    text = decode(whole.plain)
    assert (len(text), len(whole.plain)) == (at_once.total_chars, at_once.total_bytes)
    assert parse(text) == [
        replace(
            e,
            body=e.body.replace("xx", "[masked]"),
            timestamp=e.timestamp and e.timestamp.replace("xx", "[masked]"),
            call_id=e.call_id and e.call_id.replace("xx", "[masked]"),
            language=e.language and e.language.replace("xx", "[masked]"),
        )
        for e in conversation
    ]


@settings(deadline=None)
@given(events, events, limits_small)
def test_different_texts_never_share_a_version(
    one: list[Event], two: list[Event], limits: Limits
) -> None:
    first, second = Shelf(64), Shelf(64)
    learn(first, [one], limits)
    learn(second, [two], limits)
    assert (first.version == second.version) == (first.plain == second.plain)
