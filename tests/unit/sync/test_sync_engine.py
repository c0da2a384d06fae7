"""The engine step by step: two ends and a wire that a test can hold in its hand."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "simulation"))

from sync_journal import Journal, root_of
from sync_world import World

from imprintd.errors import LocalProtocolError
from imprintd.model.source import SourceId
from imprintd.sync import effects, events
from imprintd.sync.replica import Replica
from imprintd.sync.tables import TRANSITIONS, after
from imprintd.transport.memory import Faults
from imprintd.wire import limits, messages

SOURCE = SourceId("default", "/p", "claude:1")
CALM = Faults(delay_s_min=0.01, delay_s_max=0.01)
Filter = Callable[[messages.Message], bool]


class Cable(World):
    """A calm network between A and B that drops what a test says."""

    def __init__(self, **options: object) -> None:
        super().__init__(1, ("A", "B"), faults=CALM, skew_ms=0, **options)  # type: ignore[arg-type]
        self.drop: Filter = lambda _: False
        self.log: list[messages.Message] = []
        self.in_flight_max = 0

    def _send(self, node: object, effect: effects.Send) -> None:
        self.log.append(effect.message)
        if not self.drop(effect.message):
            super()._send(node, effect)  # type: ignore[arg-type]

    def kinds(self) -> Counter[str]:
        return Counter(type(message).__name__ for message in self.log)


def text(blocks: int, mark: str = "x") -> str:
    return "".join(f"{mark}{n:062d}\n" for n in range(blocks))


def test_a_lost_frame_comes_again_after_one_stall() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(10), "1")
    lost: list[int] = []

    def third(message: messages.Message) -> bool:
        if isinstance(message, messages.Data) and message.item == 3 and not lost:
            lost.append(3)
            return True
        return False

    cable.drop = third
    cable.connect_all()

    assert cable.run(5, until=cable.converged)
    assert lost == [3]
    items = [m.item for m in cable.log if isinstance(m, messages.Data)]
    assert Counter(items) == {n: 2 if n == 3 else 1 for n in range(10)}


def test_the_window_is_kept() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(100), "1")
    cable.drop = lambda message: isinstance(message, messages.Credit)
    cable.connect_all()
    cable.run(1)

    assert cable.kinds()["Data"] == limits.WINDOW_FRAMES
    assert cable.nodes["B"].journal.heads == {}


def test_a_disconnection_costs_at_most_one_window() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(200), "1")
    cable.connect_all()
    cuts = 0
    while not cable.converged():
        cable.run(0.08)
        if cuts < 3 and cable.kinds()["Data"] > 50 * (cuts + 1):
            cuts += 1
            cable.disconnect("A", "B")
            cable.run(0.5)
            cable.connect("A", "B")

    assert cuts == 3
    assert 200 < cable.kinds()["Data"] <= 200 + 3 * limits.WINDOW_FRAMES


def test_committed_comes_after_the_publication() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(3), "1")
    seen: list[bool] = []

    def look(message: messages.Message) -> bool:
        if isinstance(message, messages.Committed):
            seen.append(SOURCE in cable.nodes["B"].journal.heads)
        return False

    cable.drop = look
    cable.connect_all()
    cable.run(5)

    assert seen == [True]


def test_a_wrong_transcript_publishes_nothing() -> None:
    journal = Journal("B")
    replica = Replica(journal, rules="r1")
    far = Journal("A")
    far.learn(SOURCE, text(2), 5)
    now = events.Instant(1_700_000_000_000, 0.0)
    replica.handle(events.LinkUp("A", bytes(32)), now)

    def tell(message: messages.Message) -> list[effects.Effect]:
        out = list(replica.handle(events.FrameReceived("A", message), now))
        for effect in list(out):
            result = journal.run(effect)
            while result is not None:
                more = replica.handle(result, now)
                out += more
                result = next((r for r in map(journal.run, more) if r is not None), None)
        return out

    other = Replica(far, rules="r1")
    sent: list[messages.Message] = [
        effect.message
        for effect in other.handle(events.LinkUp("B", bytes(32)), now)
        if isinstance(effect, effects.Send)
    ]
    rejected: list[messages.Message] = []
    while sent:
        message = sent.pop(0)
        if isinstance(message, messages.Done):
            message = replace(message, transcript=bytes(32))
        for effect in tell(message):
            if isinstance(effect, effects.Send):
                rejected += [effect.message] if isinstance(effect.message, messages.Reject) else []
                answers = other.handle(events.FrameReceived("B", effect.message), now)
                sent += [a.message for a in answers if isinstance(a, effects.Send)]

    assert journal.heads == {}
    assert [m.reason for m in rejected if isinstance(m, messages.Reject)] == ["not-verified"]


def test_a_sender_that_lies_about_its_root_publishes_nothing() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(3), "1")
    head = cable.nodes["A"].journal.heads[SOURCE]
    head.offer = replace(head.offer, root=root_of([b"other"]))
    cable.connect_all()
    cable.run(100)

    assert cable.nodes["B"].journal.heads == {}
    assert cable.nodes["B"].reports["not-verified"] >= 1
    assert cable.kinds()["Data"] <= 6


def test_what_is_excluded_is_rejected_once_and_settled() -> None:
    cable = Cable()
    cable.nodes["B"].journal.excluded.add(SOURCE)
    cable.learn("A", SOURCE, text(3), "1")
    cable.connect_all()
    cable.run(200)

    assert cable.nodes["B"].journal.heads == {}
    assert [m.reason for m in cable.log if isinstance(m, messages.Reject)] == ["excluded"]
    assert cable.kinds()["Data"] == 0


def test_one_source_from_the_future_does_not_stop_the_others() -> None:
    cable = Cable()
    for number in range(20):
        source = SourceId("default", "/p", f"claude:{number}")
        cable.nodes["A"].skew_ms = 10**9 if number == 7 else 0
        cable.learn("A", source, text(2, chr(97 + number)), str(number))
    cable.nodes["A"].skew_ms = 0
    cable.connect_all()
    cable.run(30)

    held = {source.key for source in cable.nodes["B"].journal.heads}
    assert held == {f"claude:{number}" for number in range(20)} - {"claude:7"}
    assert cable.nodes["B"].reports["clock-ahead"] >= 1
    assert cable.nodes["B"].journal.acks["A"][1] == 20
    cable.nodes["B"].skew_ms = 10**9
    cable.run(700)
    assert cable.converged()


def test_a_full_disk_is_tried_again() -> None:
    cable = Cable()
    cable.learn("A", SOURCE, text(3), "1")
    cable.nodes["B"].journal.full_disk = 1
    cable.connect_all()
    cable.run(10)
    assert cable.nodes["B"].journal.heads == {}
    assert cable.nodes["B"].reports["disk-full"] == 1

    cable.run(60)
    assert cable.converged()


def test_a_restored_log_is_compared_by_ranges() -> None:
    cable = Cable()
    for number in range(40):
        source = SourceId("default", "/p", f"claude:{number}")
        cable.learn("AB"[number % 2], source, text(1, f"{number:02d}"), str(number))
    cable.connect_all()
    assert cable.run(20, until=cable.converged)
    cable.crash("A")
    cable.nodes["A"].journal.index_id = b"restored"
    lost = cable.nodes["A"].journal.heads.pop(SOURCE)
    cable.start("A")
    cable.log.clear()
    cable.connect_all()
    # what a restored device forgot has no new number anywhere: ranges find it
    cable.run(30)

    assert cable.converged()
    assert cable.nodes["A"].journal.heads[SOURCE].text == lost.text
    assert cable.kinds()["Ask"] >= 2
    assert cable.kinds()["Offer"] == 1


def test_types_of_a_newer_protocol() -> None:
    replica = Replica(Journal("B"))
    now = events.Instant(0, 0.0)
    replica.handle(events.LinkUp("A", bytes(32)), now)

    def answers(message: messages.Message) -> list[messages.Message]:
        found = replica.handle(events.FrameReceived("A", message), now)
        return [effect.message for effect in found if isinstance(effect, effects.Send)]

    assert answers(messages.Unknown(99, must_understand=False)) == []
    assert answers(messages.Unknown(99, must_understand=True)) == [messages.Unsupported(99)]
    assert answers(messages.Ping(5)) == [messages.Pong(5, 0)]
    assert answers(messages.Credit(bytes(16), 1, (), 1, 1)) == [messages.Nack(bytes(16), "unknown")]


def test_a_peer_without_a_common_protocol_is_named_and_left_alone() -> None:
    replica = Replica(Journal("B"))
    now = events.Instant(0, 0.0)
    replica.handle(events.LinkUp("A", bytes(32)), now)

    def said(event: events.SyncEvent) -> list[effects.Effect]:
        found = replica.handle(event, now)
        return [effect for effect in found if not isinstance(effect, effects.SetTimer)]

    newer = messages.Hello(limits.PROTOCOL_MAX + 1, 9, (), "imprintd 9.0", 0)
    assert said(events.FrameReceived("A", newer)) == [
        effects.Report("A", "no-common-protocol", "error", detail="imprintd 9.0 speaks 2 to 9")
    ]
    assert said(events.FrameReceived("A", messages.Ping(1))) == []
    assert said(events.TimerFired("A")) == []
    wider = messages.Hello(1, 9, ("new",), "imprintd 9.0", 0)
    assert said(events.FrameReceived("A", wider)) == []
    assert said(events.FrameReceived("A", messages.Ping(1))) == [
        effects.Send("A", messages.Pong(1, 0))
    ]


@pytest.mark.parametrize(
    "message",
    [
        messages.Data(bytes(16), 0, 0, 3, bytes(32), b"abc"),
        messages.Points(bytes(16), ((0, 2**50),), "r1", 3, bytes(32), b"abc"),
        messages.Done(bytes(16), 1, bytes(32)),
        messages.Committed(bytes(16), bytes(16), bytes(16)),
        messages.Nack(bytes(16), "unknown"),
        messages.Reject(bytes(16), bytes(16), "gone"),
        messages.Reject(b"", bytes(16), "gone"),
        messages.Answer(1, b"", b"", b"i" * 8, 5, equal=False),
        messages.Changes(b"i" * 8, 3, 9, ()),
    ],
    ids=lambda m: type(m).__name__,
)
def test_answers_to_what_was_never_asked_change_nothing(message: messages.Message) -> None:
    journal = Journal("B")
    replica = Replica(journal)
    now = events.Instant(0, 0.0)
    replica.handle(events.LinkUp("A", bytes(32)), now)

    found = replica.handle(events.FrameReceived("A", message), now)

    assert [e for e in found if not isinstance(e, effects.SetTimer)] == []


def test_the_table_knows_no_other_steps() -> None:
    assert {step for row in TRANSITIONS.values() for step in row} == {
        "filled", "needs", "complete", "closed", "moved", "committed", "refused",
    }  # fmt: skip
    assert after("publishing", "moved") == "checking"
    with pytest.raises(LocalProtocolError):
        after("filling", "committed")
