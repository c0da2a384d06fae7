"""Two replicators on one event loop, real stores, and a bus in memory between them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from imprintd.archive import open_store
from imprintd.clock import SystemClock
from imprintd.journal import StoreJournal
from imprintd.replication import Receiver
from imprintd.replicator import Replicator
from imprintd.staging import Staging
from imprintd.store import Store
from imprintd.sync.replica import Replica
from imprintd.transport.bus import BusLost, BusRefused, Packet
from imprintd.transport.memory import Exchange, Faults, MemoryBus, Network

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_sync_real_stores import KEY, Device, Redactor, source, talk


class Side:
    """A device whose link is a topic of the bus in each direction."""

    def __init__(self, device: Device, clock: SystemClock) -> None:
        self.device = device
        staging = Staging(device.folder)
        journal = StoreJournal(device.store, staging, rules=None)
        receiver = Receiver(
            device.store,
            journal,
            staging,
            redactor=Redactor(),
            limits=device.limits,
            rules=None,
            vector_bytes=0,
            clock=clock,
        )
        self.replicator = Replicator(Replica(journal), receiver, clock)

    async def serve(self, bus: MemoryBus, peer: str) -> None:
        await bus.subscribe(f"to-{self.device.name}")
        self.replicator.link_up(peer, KEY, lambda data: bus.publish(f"to-{peer}", data))
        with suppress(BusLost):
            async for packet in bus.packets():
                self.replicator.received(peer, packet.payload)
        self.replicator.link_down(peer)


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    clock = SystemClock()
    stores: list[Store] = []
    made = []
    for name in ("a", "b"):
        stores.append(open_store(tmp_path / name, clock))
        made.append(Side(Device(name, stores[-1], tmp_path / name, clock), clock))  # type: ignore[arg-type]
    yield made[0], made[1]
    for store in stores:
        store.close()


def versions(side: Side) -> dict[str, str]:
    return {head.source.key: head.version for head in side.device.store.heads()}


async def until_equal(a: Side, b: Side) -> None:
    async with asyncio.timeout(60):
        while not versions(a) or versions(a) != versions(b):  # noqa: ASYNC110 - a database sets no event
            await asyncio.sleep(0.02)


def test_devices_converge_across_a_lost_connection(sides: tuple[Side, Side]) -> None:
    a, b = sides
    for number in range(5):
        a.device.learn(source(f"a{number}"), talk(number, 20))
        b.device.learn(source(f"b{number}"), talk(50 + number, 20))

    async def live() -> None:
        network = Network(Faults(doubling=0.2, delay_s_max=0.01), Random(3))
        exchange = Exchange(network)
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(side.replicator.run()) for side in sides]
            links = []
            for side, peer in ((a, "b"), (b, "a")):
                bus = exchange.connect(side.device.name)
                links.append(group.create_task(side.serve(bus, peer)))
            await until_equal(a, b)
            assert len(versions(a)) == 10

            # both connections break; what is learned meanwhile comes over the next ones
            for name in ("a", "b"):
                exchange.connect(name).lose()
            await asyncio.gather(*links)
            a.device.learn(source("a0"), talk(99, 4))
            a.replicator.published(a.device.store.change())
            for side, peer in ((a, "b"), (b, "a")):
                bus = exchange.connect(side.device.name)
                links.append(group.create_task(side.serve(bus, peer)))
            await until_equal(a, b)

            b.device.learn(source("b0"), talk(98, 4))
            b.replicator.published(b.device.store.change())
            await until_equal(a, b)
            assert [state.peer for state in a.replicator.states()] == ["b"]
            for task in (*running, *links):
                task.cancel()
        assert network.tally.doubled > 0

    asyncio.run(live())
    assert a.replicator.dropped == b.replicator.dropped == {}
    assert a.device.store.text_of(source("b0")) == b.device.store.text_of(source("b0"))


def test_bytes_that_are_no_message_are_counted(sides: tuple[Side, Side]) -> None:
    async def live() -> None:
        a, _ = sides
        a.replicator.received("b", b"\x93\x10\x00\x81\xa5token\x05")

        async def nowhere(data: bytes) -> None:
            raise BusLost("gone")

        a.replicator.link_up("b", KEY, nowhere)
        a.replicator.received("b", b"not a message")
        task = asyncio.create_task(a.replicator.run())
        for _ in range(100):
            if a.replicator.dropped["not-sent"]:
                break
            await asyncio.sleep(0.02)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert a.replicator.dropped["no-link"] == 1
        assert a.replicator.dropped["not-a-message"] == 1
        assert a.replicator.dropped["not-sent"] >= 1

    asyncio.run(live())


def test_memory_bus_keeps_the_promises_of_a_bus() -> None:
    async def live() -> None:
        network = Network(Faults(payload_bytes_max=10), Random(1))
        exchange = Exchange(network)
        one, other = exchange.connect("one"), exchange.connect("other")
        await other.subscribe("t")
        await one.publish("t", b"first")
        await one.publish("elsewhere", b"nobody")
        packets = other.packets()
        assert await anext(packets) == Packet("t", b"first")
        with pytest.raises(BusRefused):
            await one.publish("t", b"eleven byte")
        await other.unsubscribe("t")
        await one.publish("t", b"second")
        again = exchange.connect("other")
        with pytest.raises(BusLost):
            await anext(packets)
        with pytest.raises(BusLost):
            await other.publish("t", b"x")
        await again.subscribe("t")
        network.part("one", "other")
        await one.publish("t", b"kept apart")
        network.join("one", "other")
        await one.publish("t", b"third")
        assert await anext(again.packets()) == Packet("t", b"third")
        assert network.tally.lost == 1

    asyncio.run(live())
