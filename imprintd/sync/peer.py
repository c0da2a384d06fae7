"""
What a replica remembers of one peer while the link is up, and one turn's tools.

All of it may be lost at any moment: what must not be lost is in the store.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from imprintd.model.source import SourceId
from imprintd.sync import effects
from imprintd.sync.events import Instant
from imprintd.sync.inventory import Inventory
from imprintd.sync.ports import Journal
from imprintd.sync.ranges import Items
from imprintd.sync.tables import State, Step, after
from imprintd.wire import limits
from imprintd.wire.messages import Hello, Message, Offer, Ranges

KNOWN_MAX = 4096
"""Versions remembered as held by the peer, to spare announcing them back."""

OFFERED_MAX = 32
"""Offers remembered until they are accepted."""


@dataclass(slots=True)
class Want:
    """
    A head that the peer has and we may lack.

    Attributes:
        version: Version hash the peer announced.
        change: Number in the peer's log; 0 does not hold back its settling.
        ask_at_s: Not asked for before.
        tries: How often it was asked for.
        asked: A WANT is on its way.
    """

    version: bytes
    change: int
    ask_at_s: float = 0.0
    tries: int = 0
    asked: bool = False


@dataclass(slots=True)
class Inbound:
    """
    A transfer to us.

    Attributes:
        need: Items not yet durably staged.
        staging: Items handed to the stage, not yet answered.
        prefixes: Own bytes that an offered block may start with.
        frames: DATA frames staged since the last of them.
        credit_at_s: When the next is due, None while nothing came.
        stalled_at_s: When silence counts as loss.
        stalls: How often it did, in a row.
        checks: How often the version was put together.
        strikes: Bad frames.
        done: The right transcript came.
    """

    transfer: bytes
    offer: Offer
    state: State
    need: Items
    prefixes: dict[int, bytes]
    stalled_at_s: float
    staging: Items = field(default_factory=Items)
    frames: int = 0
    credit_at_s: float | None = None
    stalls: int = 0
    checks: int = 0
    strikes: int = 0
    done: bool = False

    def step(self, step: Step) -> None:
        """Move as the table says."""
        self.state = after(self.state, step)


@dataclass(slots=True)
class Outbound:
    """
    A transfer from us.

    Attributes:
        unsent: Items asked for and not in flight.
        flight: Frames in flight by their first item: items and encoded size.
        turn: Of the newest ACCEPT or CREDIT seen.
        frames: Window, in frames.
        size: Window, in bytes.
        prefixes: What the receiver says it holds: size and digest by item.
        expires_s: Forgotten then unless the peer is heard.
    """

    offer: Offer
    expires_s: float
    unsent: Items = field(default_factory=Items)
    flight: dict[int, tuple[Ranges, int]] = field(default_factory=dict)
    turn: int = -1
    frames: int = 0
    size: int = 0
    prefixes: dict[int, tuple[int, bytes]] = field(default_factory=dict)


@dataclass(slots=True)
class Reconciliation:
    """
    A comparison of ranges on its way.

    Attributes:
        round: Distinguishes it from earlier ones.
        pending: Ranges not answered yet, and when they were last asked.
        change: The lowest change number that any answer stood at.
        answers: How many came, bounded.
        ask_at_s: When unanswered ranges are asked again.
    """

    round: int
    pending: dict[tuple[bytes, bytes], bool]
    change: int | None = None
    answers: int = 0
    ask_at_s: float = 0.0


@dataclass(slots=True)
class Peer:
    """
    One link.

    Attributes:
        name: The peer's device id.
        inventory: Our heads under this link's keys.
        index: Its change log's id, as far as we follow it.
        seen: Last number of that log that was looked at.
        settled: Last number that was acknowledged, durably.
        change: Last number it said it has.
        refused: Versions that are not to be asked for again on this link.
        turns: ACCEPTs and CREDITs so far; one that comes late is known by it,
            also where a transfer was given up and begun again.
    """

    name: str
    link_key: bytes
    inventory: Inventory
    index: bytes = b""
    seen: int = 0
    settled: int = 0
    change: int = 0
    hello: Hello | None = None
    wants: OrderedDict[bytes, Want] = field(default_factory=OrderedDict)
    waiting: OrderedDict[bytes, Offer] = field(default_factory=OrderedDict)
    inbound: dict[bytes, Inbound] = field(default_factory=dict)
    offered: OrderedDict[bytes, Offer] = field(default_factory=OrderedDict)
    outbound: OrderedDict[bytes, Outbound] = field(default_factory=OrderedDict)
    known: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)
    refused: dict[bytes, bytes] = field(default_factory=dict)
    reconciliation: Reconciliation | None = None
    rounds: int = 0
    turns: int = 0
    reconcile_at_s: float = 0.0
    summary_at_s: float = 0.0
    pull_at_s: float = 0.0
    timer_s: float | None = None
    ignored: int = 0

    @property
    def understood(self) -> bool:
        """Whether there is a protocol that both speak, as far as the peer has said."""
        hello = self.hello
        return hello is None or (
            hello.proto_min <= limits.PROTOCOL_MAX and hello.proto_max >= limits.PROTOCOL_MIN
        )

    def knows(self, key: bytes, version: bytes) -> None:
        """Remember that the peer holds a version."""
        self.known[key] = version
        self.known.move_to_end(key)
        if len(self.known) > KNOWN_MAX:
            self.known.popitem(last=False)


@dataclass(slots=True)
class Turn:
    """
    One call of `handle`: what it may look at, and the effects it collects.

    Attributes:
        rules: Fingerprint of this device's point rules, None without a model.
    """

    journal: Journal
    rules: str | None
    build: str
    peers: dict[str, Peer]
    now: Instant
    out: list[effects.Effect] = field(default_factory=list)

    def send(self, peer: Peer, message: Message) -> None:
        self.out.append(effects.Send(peer.name, message))

    def report(
        self,
        peer: Peer,
        code: str,
        severity: Literal["note", "warning", "error"],
        source: SourceId | None = None,
        detail: str = "",
    ) -> None:
        self.out.append(effects.Report(peer.name, code, severity, source, detail))

    def log_moved(self) -> None:
        """Our change log went on: bring inventories up to it, tell everyone soon."""
        for peer in self.peers.values():
            catch_up(self.journal, peer)
            peer.summary_at_s = min(peer.summary_at_s, self.now.elapsed_s + 0.2)


def catch_up(journal: Journal, peer: Peer) -> None:
    """Bring the inventory of a link up to the change log."""
    change = journal.change()
    inventory = peer.inventory
    while inventory.change < change:
        lines = journal.heads_after(inventory.change, 1024)
        for line in lines:
            inventory.put(line.source, line.stamp)
        inventory.change = lines[-1].change if len(lines) == 1024 else change
