"""
Devices, a network, two clocks each and crashes, all out of one seed.

Everything a replica asks for is carried out one effect at a time, later; a
crash drops what is queued and everything the replica remembers. Packets of
an ended session are refused, and so are damaged ones, as the session layer
does; nothing else is repaired for the replica.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from sync_journal import Journal

from imprintd.model.source import SourceId
from imprintd.sync import effects, events
from imprintd.sync.replica import Replica
from imprintd.transport.memory import Faults, Network
from imprintd.wire import frames, messages

EPOCH_MS = 1_700_000_000_000


@dataclass
class Node:
    name: str
    journal: Journal
    skew_ms: int
    replica: Replica | None = None
    queue: list[effects.Effect] = field(default_factory=list)
    busy: bool = False
    timers: dict[str, int] = field(default_factory=dict)
    reports: Counter[str] = field(default_factory=Counter)
    crashes: int = 0


class World:
    """
    Args:
        seed: Decides everything.
        names: Devices.
        faults: Of the network.
        skew_ms: Clocks are off by up to this.
        widths: Chunker rules by device; different ones need manifest pages.
    """

    def __init__(
        self,
        seed: int,
        names: tuple[str, ...] = ("A", "B", "C"),
        *,
        faults: Faults | None = None,
        skew_ms: int = 3_600_000,
        widths: tuple[int, ...] = (50,),
    ) -> None:
        self.random = Random(seed)
        self.network = Network(faults or Faults(), self.random)
        self.now_s = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timer_ids = itertools.count()
        self.nodes: dict[str, Node] = {}
        self.sessions: dict[frozenset[str], int] = {}
        self._session_ids = itertools.count(1)
        self.sent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self.history: dict[str, frozenset[str]] = {}
        self.steps = 0
        for number, name in enumerate(names):
            journal = Journal(name, width=widths[number % len(widths)])
            skew = self.random.randint(-skew_ms, skew_ms) if skew_ms else 0
            self.nodes[name] = Node(name, journal, skew)
            self.network.subscribe(name, name)
            self.start(name)

    # time

    def at(self, delay_s: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_s + delay_s, next(self._order), what))

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; True as soon as `until` holds between two happenings."""
        end = self.now_s + seconds
        while True:
            if until is not None and until():
                return True
            network_at = self.network.next_at_s()
            agenda_at = self._agenda[0][0] if self._agenda else None
            times = [t for t in (network_at, agenda_at) if t is not None and t <= end]
            if not times:
                self.now_s = end
                return until is None
            self.steps += 1
            self.now_s = max(self.now_s, min(times))
            if agenda_at is not None and agenda_at == min(times):
                heapq.heappop(self._agenda)[2]()
                continue
            arrived = self.network.arrive(self.now_s)
            if arrived is not None:
                self._receive(arrived[0], arrived[1].payload)

    def instant(self, node: Node) -> events.Instant:
        return events.Instant(EPOCH_MS + round(self.now_s * 1000) + node.skew_ms, self.now_s)

    # devices

    def start(self, name: str) -> None:
        node = self.nodes[name]
        node.replica = Replica(node.journal, rules=node.journal.rules)

    def crash(self, name: str) -> None:
        """Lose everything that is not in the journal; sessions end on both sides."""
        node = self.nodes[name]
        if node.replica is None:
            return
        node.replica = None
        node.queue.clear()
        node.timers.clear()
        node.crashes += 1
        for pair in [pair for pair in self.sessions if name in pair]:
            self.disconnect(*pair)

    def handle(self, name: str, event: events.SyncEvent) -> None:
        node = self.nodes[name]
        if node.replica is None:
            return
        node.queue += node.replica.handle(event, self.instant(node))
        self._work(node)

    def _work(self, node: Node) -> None:
        if node.queue and not node.busy:
            node.busy = True
            self.at(self.random.uniform(0, 0.002), lambda: self._one_effect(node))

    def _one_effect(self, node: Node) -> None:
        node.busy = False
        if not node.queue:
            return
        effect = node.queue.pop(0)
        if isinstance(effect, effects.Send):
            self._send(node, effect)
        elif isinstance(effect, effects.SetTimer):
            self._set_timer(node, effect)
        elif isinstance(effect, effects.Report):
            node.reports[effect.code] += 1
        else:
            result = node.journal.run(effect)
            if result is not None:
                crashes = node.crashes
                self.at(
                    self.random.uniform(0, 0.01),
                    lambda: self.handle(node.name, result) if node.crashes == crashes else None,
                )
        self._work(node)

    def _set_timer(self, node: Node, effect: effects.SetTimer) -> None:
        number = next(self._timer_ids)
        node.timers[effect.peer] = number

        def fire() -> None:
            if node.timers.get(effect.peer) == number:
                del node.timers[effect.peer]
                self.handle(node.name, events.TimerFired(effect.peer))

        self.at(max(0.0, effect.at_s - self.now_s), fire)

    # the network

    def connect(self, one: str, other: str) -> None:
        pair = frozenset((one, other))
        if pair in self.sessions or any(self.nodes[n].replica is None for n in pair):
            return
        self.sessions[pair] = next(self._session_ids)
        key = hashlib.sha256("".join(sorted(pair)).encode()).digest()
        self.handle(one, events.LinkUp(other, key))
        self.handle(other, events.LinkUp(one, key))

    def disconnect(self, one: str, other: str) -> None:
        if self.sessions.pop(frozenset((one, other)), None) is not None:
            self.handle(one, events.LinkDown(other))
            self.handle(other, events.LinkDown(one))

    def connect_all(self) -> None:
        for one, other in itertools.combinations(self.nodes, 2):
            self.network.join(one, other)
            self.connect(one, other)

    def _send(self, node: Node, effect: effects.Send) -> None:
        session = self.sessions.get(frozenset((node.name, effect.peer)))
        if session is None:
            return
        body = session.to_bytes(4, "big") + node.name.encode() + frames.encode(effect.message)
        kind = type(effect.message).__name__
        self.sent[kind] += 1
        self.sent_bytes[kind] += len(body)
        payload = hashlib.sha256(body).digest()[:16] + body
        self.network.publish(node.name, effect.peer, payload, self.now_s)

    def _receive(self, name: str, payload: bytes) -> None:
        body = payload[16:]
        if hashlib.sha256(body).digest()[:16] != payload[:16]:
            return
        sender = body[4:5].decode()
        if self.sessions.get(frozenset((name, sender))) != int.from_bytes(body[:4], "big"):
            return
        self.handle(name, events.FrameReceived(sender, frames.decode(body[5:])))

    # conversations

    def learn(self, name: str, source: SourceId, text: str, edit: str) -> None:
        """A device learns a text that it made from its own head."""
        node = self.nodes[name]
        if node.replica is None:
            return
        old = node.journal.heads.get(source)
        seen = frozenset() if old is None else self.history[old.text]
        self.history.setdefault(text, seen | {edit})
        node.journal.learn(source, text, self.instant(node).wall_ms)
        self.handle(name, events.LocalPublished(node.journal.last))

    # what has to hold

    def converged(self) -> bool:
        """All devices have the same heads, and nothing is being transferred."""
        states = [
            {source: head.offer.stamp for source, head in node.journal.heads.items()}
            for node in self.nodes.values()
        ]
        return all(state == states[0] for state in states)

    def check(self) -> None:
        """Invariants over everything that happened so far."""
        for node in self.nodes.values():
            for source, old, new in node.journal.moves:
                assert new in self.history, (node.name, source, "a text that nobody wrote")
                if old is not None:
                    assert not self.history[new] < self.history[old], (
                        node.name,
                        source,
                        "head moved to a causally older version",
                    )

    def data_bytes(self) -> int:
        return self.sent_bytes[messages.Data.__name__]
