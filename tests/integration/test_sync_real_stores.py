"""
Two devices with real stores: what one learned, the other has, exactly.

The network is a queue that counts bytes; everything else is what the daemon
runs, except that redaction knows one kind of secret only.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from imprintd.archive import TextCodec, base_of, open_store
from imprintd.clock import ManualClock
from imprintd.journal import StoreJournal
from imprintd.learn.pipeline import extend
from imprintd.model.event import Event
from imprintd.model.snapshot import Chunk, Head, Limits, Point, Stamp
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.replication import Receiver
from imprintd.staging import Staging
from imprintd.store import Store
from imprintd.store.exchange import Exchange
from imprintd.sync import effects, events
from imprintd.sync.replica import Replica
from imprintd.text import blocks
from imprintd.text.canonical import render_all
from imprintd.wire import frames, messages
from imprintd.wire.codec import digest
from imprintd.wire.messages import BlockRef

RULES = "test-rules"
KEY = bytes(32)


@dataclass(frozen=True)
class Result:
    text: str


@dataclass(frozen=True)
class Redactor:
    """Takes away what looks like `key-1234`; a stricter one takes `pin-1234`, too."""

    strict: bool = False

    @property
    def profile(self) -> str:
        return "strict-1" if self.strict else "plain-1"

    def redact_many(self, texts: Sequence[str], /) -> Sequence[Result]:
        pattern = r"(?:key|pin)-\d+" if self.strict else r"key-\d+"
        return [Result(re.sub(pattern, "[gone]", text)) for text in texts]


@dataclass
class Device:
    name: str
    store: Store
    folder: Path
    clock: ManualClock
    redactor: Redactor = field(default_factory=Redactor)
    limits: Limits = field(default_factory=Limits)
    rules: str | None = None
    reports: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As after a crash: only the database and the staging area are left."""
        self.staging = Staging(self.folder)
        self.journal = StoreJournal(self.store, self.staging, rules=self.rules)
        self.receiver = Receiver(
            self.store,
            self.journal,
            self.staging,
            redactor=self.redactor,
            limits=self.limits,
            rules=self.rules,
            vector_bytes=768,
            clock=self.clock,
        )
        self.replica = Replica(self.journal, rules=self.rules)
        self.timer_s: float | None = None

    def learn(self, source: SourceId, said: Sequence[Event], *, fresh: bool = False) -> Head:
        base = None if fresh else base_of(self.store, source)
        update = extend(
            source,
            base,
            said,
            meta=SourceMeta("claude", "A title", None, self.clock.wall_ms()),
            coverage=Coverage({"image": 1}),
            state=b"reader",
            cursor=None,
            record_keys=(),
            redactor=self.redactor,
            limits=self.limits,
        )
        if fresh and (head := self.store.head(source)):
            update = replace(update, base_version=head.version)
        return self.store.publish([update], self.rules)[0]


class Pair:
    """Two devices and the cable between them."""

    def __init__(self, one: Device, other: Device) -> None:
        self.devices = {one.name: one, other.name: other}
        self.peer_of = {one.name: other.name, other.name: one.name}
        self.cable: deque[tuple[str, bytes]] = deque()
        self.sent: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self.spoil: Callable[[messages.Message], messages.Message | None] = lambda m: m
        self.elapsed_s = 0.0

    def connect(self) -> None:
        for name, device in self.devices.items():
            self.tell(device, events.LinkUp(self.peer_of[name], KEY))

    def tell(self, device: Device, event: events.SyncEvent) -> None:
        pending: deque[events.SyncEvent] = deque([event])
        while pending:
            now = events.Instant(device.clock.wall_ms(), self.elapsed_s)
            for effect in device.replica.handle(pending.popleft(), now):
                if isinstance(effect, effects.Send):
                    self._send(device, effect)
                elif isinstance(effect, effects.SetTimer):
                    device.timer_s = effect.at_s
                elif isinstance(effect, effects.Report):
                    device.reports[effect.code] += 1
                else:
                    result = device.receiver.run(effect)
                    if result is not None:
                        pending.append(result)

    def _send(self, device: Device, effect: effects.Send) -> None:
        message = self.spoil(effect.message)
        if message is not None:
            data = frames.encode(message)
            kind = type(message).__name__
            self.sent[kind] += len(data)
            self.count[kind] += 1
            self.cable.append((self.peer_of[device.name], data))

    def run(self, seconds: float = 60.0) -> None:
        """Deliver everything and let timers fire."""
        end = self.elapsed_s + seconds
        while True:
            while self.cable:
                name, data = self.cable.popleft()
                message = frames.decode(data)
                self.tell(self.devices[name], events.FrameReceived(self.peer_of[name], message))
            due = [d for d in self.devices.values() if d.timer_s is not None and d.timer_s <= end]
            if not due:
                break
            device = min(due, key=lambda d: d.timer_s or 0.0)
            assert device.timer_s is not None
            self.elapsed_s = max(self.elapsed_s, device.timer_s)
            device.timer_s = None
            self.tell(device, events.TimerFired(self.peer_of[device.name]))
        self.elapsed_s = end

    def published(self, device: Device) -> None:
        self.tell(device, events.LocalPublished(device.store.change()))

    def wire_bytes(self) -> int:
        return sum(self.sent.values())


Maker = Callable[..., Device]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Maker]:
    stores: list[Store] = []

    def device(name: str, **options: object) -> Device:
        clock = ManualClock()
        folder = tmp_path / name
        stores.append(open_store(folder, clock))
        return Device(name, stores[-1], folder, clock, **options)  # type: ignore[arg-type]

    yield device
    for store in stores:
        store.close()


def talk(seed: int, count: int, chars: int = 400) -> list[Event]:
    random = Random(seed)
    said = []
    for number in range(count):
        words = " ".join(f"w{random.randrange(10**6)}" for _ in range(chars // 8))
        role = "user" if number % 3 == 0 else "assistant"
        if number % 3 == 2:
            body = "\n".join(f"{n}: {words[:60]}" for n in range(random.choice((3, 300))))
            said.append(Event("tool", "tool_output", body, number // 3 + 1, call_id=f"c{number}"))
        else:
            said.append(Event(role, "message", f"{words}\n", number // 3 + 1))  # type: ignore[arg-type]
    return said


def source(name: str) -> SourceId:
    return SourceId("default", "/home/ada/engine", f"claude:{name}")


def state(device: Device) -> dict[str, tuple[object, ...]]:
    """Everything of a device's heads that has to be the same everywhere."""
    found: dict[str, tuple[object, ...]] = {}
    for head in device.store.heads():
        rows = device.store.chunk_rows(head)
        verdict = device.store.verify(head)
        assert verdict.sound, verdict
        found[head.source.key] = (
            head.source,
            head.meta,
            head.version,
            head.stamp,
            head.origin,
            head.coverage,
            head.events,
            device.store.text(head),
            [row.chunk for row in rows],
        )
    return found


def test_what_each_learned_both_have(make: Maker) -> None:
    a, b = make("a"), make("b")
    for number in range(3):
        a.learn(source(f"a{number}"), talk(number, 30))
        b.learn(source(f"b{number}"), talk(100 + number, 10))
    a.learn(source("empty"), [])
    pair = Pair(a, b)

    pair.connect()
    pair.run()

    assert state(a) == state(b)
    assert len(state(a)) == 7
    assert a.reports + b.reports == Counter()
    assert a.staging.size == b.staging.size == 0


def test_devices_that_agree_exchange_a_constant_number_of_bytes(make: Maker) -> None:
    costs = []
    for count in (2, 12):
        a, b = make(f"a{count}"), make(f"b{count}")
        for number in range(count):
            a.learn(source(f"s{number}"), talk(number, 6))
        pair = Pair(a, b)
        pair.connect()
        pair.run()
        assert state(a) == state(b)
        for device in (a, b):
            device.restart()
        pair.sent.clear()

        pair.connect()
        pair.run(25)

        costs.append(pair.wire_bytes())
    assert costs[1] <= costs[0] + 20
    assert costs[1] < 1500


def test_append_sends_the_new_part_only(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(source("long"), talk(1, 11_000, 1200))
    size = a.store.head(source("long")).total_bytes  # type: ignore[union-attr]
    assert size > 20_000_000
    pair = Pair(a, b)
    pair.connect()
    pair.run()
    assert b.store.head(source("long")).root == a.store.head(source("long")).root  # type: ignore[union-attr]
    pair.sent.clear()
    pair.count.clear()

    a.clock.advance(60)
    b.clock.advance(60)
    a.learn(source("long"), [Event("user", "message", talk(5, 1, 2000)[0].body, 4000)])
    pair.published(a)
    pair.run(5)

    assert state(a) == state(b)
    assert pair.count["Data"] == 1
    assert pair.sent["Data"] < 4_000
    assert pair.wire_bytes() <= 16 * 1024


def test_other_chunk_rules_keep_the_chunks_of_the_origin(make: Maker) -> None:
    a = make("a", limits=Limits(size_prose=1000, hard_max=2000, overlap=100))
    b = make("b")
    a.learn(source("s"), talk(1, 300))
    pair = Pair(a, b)
    pair.connect()
    pair.run()
    first = state(a)
    assert state(b) == first
    assert len(first["claude:s"][8]) > 100  # type: ignore[arg-type]
    a.clock.advance(1)
    b.clock.advance(1)

    a.learn(source("s"), talk(2, 2))
    pair.published(a)
    pair.run()
    b.clock.advance(1)
    b.learn(source("s"), talk(3, 2))
    pair.published(b)
    pair.run()

    assert [state(a)["claude:s"][n] for n in (2, 3, 7, 8)] == [
        state(b)["claude:s"][n] for n in (2, 3, 7, 8)
    ]


def test_stricter_redaction_here_is_not_a_new_version(make: Maker) -> None:
    a, b = make("a"), make("b", redactor=Redactor(strict=True))
    said = [*talk(1, 9), Event("user", "message", "my pin-4711 and key-12\n", 4), *talk(2, 3)]
    a.learn(source("s"), said)
    pair = Pair(a, b)
    pair.connect()
    pair.run()

    theirs, ours = (d.store.head(source("s")) for d in (a, b))
    assert theirs is not None
    assert ours is not None
    assert ours.stamp == theirs.stamp
    assert "pin-4711" in a.store.text(theirs)
    assert a.store.text(theirs).replace("pin-4711", "[gone]").count("[gone]") == 2
    assert "pin-4711" not in b.store.text(ours)
    assert b.store.text(ours).count("[gone]") == 2
    assert b.store.verify(ours).sound
    pair.sent.clear()
    pair.run(25)
    quiet = pair.wire_bytes()
    assert quiet < 1500

    a.clock.advance(1)
    b.clock.advance(1)
    a.learn(source("s"), talk(3, 2))
    pair.published(a)
    pair.run()

    theirs, ours = (d.store.head(source("s")) for d in (a, b))
    assert theirs is not None
    assert ours is not None
    assert ours.stamp == theirs.stamp
    assert b.store.text(ours).endswith(talk(3, 2)[1].body + "\n")
    assert Exchange(b.store).alternates(source("s")) == []


def test_concurrent_loser_is_kept_as_an_alternate(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(source("s"), talk(1, 5))
    pair = Pair(a, b)
    pair.connect()
    pair.run()
    for device in (a, b):
        device.clock.advance(10)
        device.restart()
    b.learn(source("s"), talk(3, 4), fresh=True)
    b_text = b.store.text_of(source("s"))
    for device in (a, b):
        device.clock.advance(10)
    a.learn(source("s"), talk(2, 4), fresh=True)

    pair.connect()
    pair.run()

    assert state(a) == state(b)
    assert b.store.text_of(source("s")) == a.store.text_of(source("s"))
    (kept,) = Exchange(b.store).alternates(source("s"))
    codec = TextCodec()
    found = b"".join(
        codec.unpack(packed, None)  # type: ignore[arg-type]
        for packed in kept.packed
    )
    assert found.decode() == b_text
    assert Exchange(a.store).alternates(source("s")) == []


def test_the_longer_text_wins_whatever_the_clocks_say(make: Maker) -> None:
    a, b = make("a"), make("b")
    said = talk(1, 8)
    b.clock.step_wall(-7_200_000)
    a.learn(source("s"), said[:5])
    b.learn(source("s"), said)
    pair = Pair(a, b)

    pair.connect()
    pair.run()

    assert [state(a)["claude:s"][n] for n in (2, 3, 7, 8)] == [
        state(b)["claude:s"][n] for n in (2, 3, 7, 8)
    ]
    assert a.store.head(source("s")).events == 8  # type: ignore[union-attr]
    assert Exchange(a.store).alternates(source("s")) == []


def test_a_broken_transfer_goes_on_where_it_stopped(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(source("s"), talk(1, 3000, 1200))
    pair = Pair(a, b)
    left = {"data": 9}

    def cut(message: messages.Message) -> messages.Message | None:
        if isinstance(message, messages.Data):
            left["data"] -= 1
        return message if left["data"] > 0 else None

    pair.spoil = cut
    pair.connect()
    pair.run(1)
    assert list(b.store.heads()) == []
    count = len(a.store.blocks_of(a.store.head(source("s"))))  # type: ignore[arg-type]
    staged = 8
    assert count > 16
    pair.cable.clear()
    pair.count.clear()

    pair.spoil = lambda message: message
    for device in (a, b):
        device.restart()
    pair.connect()
    pair.run()

    assert state(a) == state(b)
    assert pair.count["Data"] == count - staged


class Liar(StoreJournal):
    """A peer whose offers and parts agree with each other and not with the truth."""

    def __init__(self, device: Device, what: str) -> None:
        super().__init__(device.store, device.staging, rules=None)
        self.what = what

    def describe(self, source: SourceId, key: bytes) -> messages.Offer | None:
        offer = super().describe(source, key)
        if offer is None:
            return None
        if self.what in {"root", "manifest_root"}:
            return replace(offer, **{self.what: bytes(32)})  # type: ignore[arg-type]
        if self.what in {"text", "key-42"}:
            plain = self._told()
            block = BlockRef(digest(plain), len(plain), len(plain))
            link = blocks.chain(blocks.CHAIN_START, block.digest, block.size)
            root = blocks.close_chain(link, 1, len(plain), len(plain))
            return replace(
                offer,
                blocks=(block,),
                root=root,
                total_chars=len(plain),
                total_bytes=len(plain),
            )
        if self.what == "source":
            return replace(offer, source=SourceId("default", "/home/other", source.key))
        if self.what in {"content_digest", "memory_id", "start"}:
            chunks = self.chunks(source, offer.stamp, 0, offer.chunks)
            assert chunks is not None
            root = TextCodec().manifest_root(chunks, offer.total_chars, offer.total_bytes)
            return replace(offer, manifest_root=root)
        return offer

    def _told(self) -> bytes:
        if self.what == "text":
            return b"this is no canonical text\n"
        return render_all([Event("user", "message", "my key-42", 1)])[0].encode()

    def block(self, source: SourceId, stamp: Stamp, position: int) -> bytes | None:
        if self.what in {"text", "key-42"}:
            return self._told()
        return super().block(source, stamp, position)

    def chunks(
        self, source: SourceId, stamp: Stamp, first: int, count: int
    ) -> Sequence[Chunk] | None:
        found = super().chunks(source, stamp, first, count)
        if not found or first:
            return found
        wrong = {"content_digest": bytes(32), "memory_id": "m" + "a" * 25, "start": found[0].end}
        if self.what not in wrong:
            return found
        return [replace(found[0], **{self.what: wrong[self.what]}), *found[1:]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "what",
    ["root", "manifest_root", "text", "source", "content_digest", "memory_id", "start"],
)
def test_a_lying_peer_publishes_nothing(make: Maker, what: str) -> None:
    # other chunk rules, so that the manifest has to travel
    a, b = make("a", limits=Limits(size_prose=1000, hard_max=2000, overlap=100)), make("b")
    a.learn(source("s"), talk(1, 30))
    a.replica = Replica(Liar(a, what))
    pair = Pair(a, b)
    pair.connect()
    pair.run()

    assert list(b.store.heads()) == []
    assert b.store.statistics().chunks == 0
    assert b.store.statistics().blocks == 0
    assert set(b.reports) & {"bad-key" if what == "source" else "not-verified"}


def test_a_name_that_holds_a_secret_is_refused(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(SourceId("default", "/home/key-42", "claude:x"), talk(1, 3))
    pair = Pair(a, b)
    pair.connect()
    pair.run()

    assert list(b.store.heads()) == []
    assert b.reports["bad-name"] == 1


def test_a_secret_of_a_peer_is_redacted_before_it_is_published(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(source("s"), talk(1, 3))
    a.replica = Replica(Liar(a, "key-42"))
    pair = Pair(a, b)
    pair.connect()
    pair.run()

    assert "my [gone]" in b.store.text_of(source("s"))
    b.store.checkpoint(truncate=True)
    assert b"key-42" not in b.store.file.read_bytes()
    assert b.staging.size == 0


def test_excluded_sources_stay_out(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.learn(source("s"), talk(1, 3))
    a.learn(SourceId("default", "/home/ada/other", "claude:t"), talk(2, 3))
    b.store.exclude("project", "/home/ada/engine")
    pair = Pair(a, b)

    pair.connect()
    pair.run()

    assert [head.source.key for head in b.store.heads()] == ["claude:t"]
    assert pair.count["Reject"] == 1


@pytest.mark.parametrize(("kind", "reason"), [("purge", "purged"), ("delete", "deleted")])
def test_what_was_taken_away_does_not_come_back(make: Maker, kind: str, reason: str) -> None:
    a, b = make("a"), make("b")
    a.learn(source("s"), talk(1, 3))
    pair = Pair(a, b)
    pair.connect()
    pair.run()
    assert b.store.delete_source(source("s"), kind=kind)
    for device in (a, b):
        device.restart()
    pair.sent.clear()
    pair.count.clear()
    rejected: list[str] = []

    def look(message: messages.Message) -> messages.Message:
        if isinstance(message, messages.Reject):
            rejected.append(message.reason)
        return message

    pair.spoil = look
    pair.connect()
    pair.run()

    assert list(b.store.heads()) == []
    assert rejected == [reason]
    assert pair.count["Data"] == 0

    a.clock.advance(9)
    b.clock.advance(9)
    a.learn(source("s"), talk(2, 1))
    pair.published(a)
    pair.run()
    assert [head.source.key for head in b.store.heads()] == (
        ["claude:s"] if kind == "delete" else []
    )


def test_what_was_redacted_further_is_not_passed_on_as_its_origins(make: Maker) -> None:
    a, b, c = make("a"), make("b", redactor=Redactor(strict=True)), make("c")
    a.learn(source("s"), [Event("user", "message", "my pin-4711", 1)])
    a.learn(source("t"), [Event("user", "message", "nothing to hide", 1)])
    first = Pair(a, b)
    first.connect()
    first.run()
    b.restart()
    second = Pair(b, c)

    second.connect()
    second.run(600)

    assert [head.source.key for head in c.store.heads()] == ["claude:t"]
    assert second.count["Want"] <= 4
    assert second.count["Nack"] == 0


def test_points_travel_and_are_owed_no_more(make: Maker) -> None:
    a, b = make("a", rules=RULES), make("b", rules=RULES)
    head = a.learn(source("s"), talk(1, 40))
    random = np.random.default_rng(1)
    for row in a.store.chunk_rows(head):
        vectors = random.normal(size=(2, 384)).astype("<f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        a.store.add_points(
            [
                Point(row.content_digest, n, 2, RULES, vectors[n].astype("<f2").tobytes())
                for n in range(2)
            ]
        )
    assert a.store.owed_count() == 0
    pair = Pair(a, b)

    pair.connect()
    pair.run()

    assert state(a) == state(b)
    assert b.store.owed_count() == 0
    assert sorted(
        (p.content_digest, p.window, p.windows, p.vector)
        for p in b.store.points_of(source("s"), RULES)
    ) == sorted(
        (p.content_digest, p.window, p.windows, p.vector)
        for p in a.store.points_of(source("s"), RULES)
    )


def test_bad_vectors_are_left_out_and_made_here_instead(make: Maker) -> None:
    a, b = make("a", rules=RULES), make("b", rules=RULES)
    head = a.learn(source("s"), talk(1, 40))
    rows = a.store.chunk_rows(head)
    a.store.add_points([Point(row.content_digest, 0, 1, RULES, b"\x00\x7e" * 384) for row in rows])
    pair = Pair(a, b)

    pair.connect()
    pair.run()

    assert state(a) == state(b)
    assert b.store.points_of(source("s"), RULES) == []
    assert b.store.owed_count() == len({row.content_digest for row in rows})
