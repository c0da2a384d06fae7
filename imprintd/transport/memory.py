"""
A bus in memory that misbehaves on purpose, from a seed.

It loses, doubles, reorders, delays and damages packets and keeps devices
apart, so that tests and the simulation meet on purpose what a network does
by chance. `Network` is the deterministic core that knows no event loop;
`MemoryBus` puts the `Bus` protocol in front of it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random

from imprintd.transport.bus import BusLost, BusRefused, Packet


@dataclass(frozen=True, slots=True)
class Faults:
    """
    How a network misbehaves; rates are probabilities per delivery.

    Attributes:
        loss: A packet never arrives.
        doubling: It arrives twice, at different times.
        damage: One bit of it is flipped.
        delay_s_min: Every packet takes at least this long.
        delay_s_max: And at most this long; packets overtake each other.
        payload_bytes_max: Larger payloads are refused.
    """

    loss: float = 0.0
    doubling: float = 0.0
    damage: float = 0.0
    delay_s_min: float = 0.001
    delay_s_max: float = 0.05
    payload_bytes_max: int = 320 * 1024


@dataclass(slots=True)
class Tally:
    """What went over a network: packets handed in, delivered, lost, doubled, damaged."""

    sent: int = 0
    sent_bytes: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0
    damaged: int = 0


@dataclass(order=True, slots=True)
class _Flying:
    at_s: float
    number: int
    receiver: str = field(compare=False)
    topic: str = field(compare=False)
    payload: bytes = field(compare=False)


class Network:
    """
    Topics, subscribers and packets on their way, under a clock that is told.

    Args:
        faults: How it misbehaves; may be replaced at any time.
        random: The only source of chance.
    """

    def __init__(self, faults: Faults, random: Random) -> None:
        self.faults = faults
        self.tally = Tally()
        self._random = random
        self._subscribers: dict[str, list[str]] = {}
        self._apart: set[frozenset[str]] = set()
        self._flying: list[_Flying] = []
        self._number = 0

    def subscribe(self, name: str, topic: str) -> None:
        """Deliver a topic to a named connection from now on."""
        names = self._subscribers.setdefault(topic, [])
        if name not in names:
            names.append(name)

    def unsubscribe(self, name: str, topic: str) -> None:
        """Deliver it no more."""
        names = self._subscribers.get(topic, [])
        if name in names:
            names.remove(name)

    def forget(self, name: str) -> None:
        """A connection is gone: its subscriptions and what was on its way to it are lost."""
        for names in self._subscribers.values():
            if name in names:
                names.remove(name)
        self._flying = [packet for packet in self._flying if packet.receiver != name]
        heapq.heapify(self._flying)

    def part(self, one: str, other: str) -> None:
        """Keep two connections from hearing each other."""
        self._apart.add(frozenset((one, other)))

    def join(self, one: str, other: str) -> None:
        """Let them hear each other again."""
        self._apart.discard(frozenset((one, other)))

    def parted(self, one: str, other: str) -> bool:
        """Whether they are kept apart."""
        return frozenset((one, other)) in self._apart

    def publish(self, sender: str, topic: str, payload: bytes, now_s: float) -> None:
        """Put a packet on its way to every subscriber of a topic."""
        self.tally.sent += 1
        self.tally.sent_bytes += len(payload)
        for receiver in self._subscribers.get(topic, ()):
            if self.parted(sender, receiver) or self._random.random() < self.faults.loss:
                self.tally.lost += 1
                continue
            copies = 1
            if self._random.random() < self.faults.doubling:
                self.tally.doubled += 1
                copies = 2
            for _ in range(copies):
                self._fly(receiver, topic, payload, now_s)

    def _fly(self, receiver: str, topic: str, payload: bytes, now_s: float) -> None:
        if payload and self._random.random() < self.faults.damage:
            self.tally.damaged += 1
            bit = self._random.randrange(len(payload) * 8)
            damaged = bytearray(payload)
            damaged[bit // 8] ^= 1 << bit % 8
            payload = bytes(damaged)
        delay_s = self._random.uniform(self.faults.delay_s_min, self.faults.delay_s_max)
        self._number += 1
        heapq.heappush(
            self._flying, _Flying(now_s + delay_s, self._number, receiver, topic, payload)
        )

    def next_at_s(self) -> float | None:
        """When the next packet arrives; None when nothing is on its way."""
        return self._flying[0].at_s if self._flying else None

    def arrive(self, now_s: float) -> tuple[str, Packet] | None:
        """The next packet that has arrived by now and who gets it, or None."""
        if not self._flying or self._flying[0].at_s > now_s:
            return None
        packet = heapq.heappop(self._flying)
        self.tally.delivered += 1
        return packet.receiver, Packet(packet.topic, packet.payload)


class Exchange:
    """
    A network in front of an event loop: one for all buses of a test.

    Args:
        network: The network underneath.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._buses: dict[str, MemoryBus] = {}

    def connect(self, name: str) -> MemoryBus:
        """A new connection; one of the same name is lost by it."""
        if name in self._buses:
            self._buses[name].lose()
        bus = MemoryBus(self, name)
        self._buses[name] = bus
        return bus

    def drop(self, name: str) -> None:
        """Forget a connection that ended."""
        self.network.forget(name)
        self._buses.pop(name, None)

    def publish(self, sender: str, topic: str, payload: bytes) -> None:
        """Put a packet on its way and arrange for its arrival."""
        loop = asyncio.get_running_loop()
        self.network.publish(sender, topic, payload, loop.time())
        at_s = self.network.next_at_s()
        if at_s is not None:
            loop.call_at(at_s, self._deliver)

    def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while (found := self.network.arrive(loop.time())) is not None:
            name, packet = found
            if name in self._buses:
                self._buses[name].put(packet)
        at_s = self.network.next_at_s()
        if at_s is not None:
            loop.call_at(at_s, self._deliver)


class MemoryBus:
    """
    One connection to an `Exchange`; follows the `Bus` protocol.

    Args:
        exchange: Where it connects.
        name: Its own, for partitions.
    """

    QUEUE_PACKETS_MAX = 1000
    """What a broker keeps for a slow client; later packets are lost."""

    def __init__(self, exchange: Exchange, name: str) -> None:
        self._exchange = exchange
        self._name = name
        self._queue: asyncio.Queue[Packet | None] = asyncio.Queue()
        self._lost = False

    @property
    def payload_bytes_max(self) -> int:
        return self._exchange.network.faults.payload_bytes_max

    async def subscribe(self, topic: str) -> None:
        self._alive()
        self._exchange.network.subscribe(self._name, topic)

    async def unsubscribe(self, topic: str) -> None:
        self._alive()
        self._exchange.network.unsubscribe(self._name, topic)

    async def publish(self, topic: str, payload: bytes) -> None:
        self._alive()
        if len(payload) > self.payload_bytes_max:
            raise BusRefused(f"payload of {len(payload)} bytes")
        self._exchange.publish(self._name, topic, payload)

    async def packets(self) -> AsyncIterator[Packet]:
        while True:
            packet = await self._queue.get()
            if packet is None:
                raise BusLost("connection ended")
            yield packet

    async def close(self) -> None:
        self.lose()

    def put(self, packet: Packet) -> None:
        """A packet arrived."""
        if self._queue.qsize() < self.QUEUE_PACKETS_MAX:
            self._queue.put_nowait(packet)
        else:
            self._exchange.network.tally.lost += 1

    def lose(self) -> None:
        """The connection ends here and now."""
        if not self._lost:
            self._lost = True
            self._queue.put_nowait(None)
            self._exchange.drop(self._name)

    def _alive(self) -> None:
        if self._lost:
            raise BusLost("connection ended")
