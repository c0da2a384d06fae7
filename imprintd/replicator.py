"""
The sync engine inside the event loop: links in, frames out, timers, one thread.

The engine and everything it does to the store run one event at a time on one
worker thread; the loop only carries bytes. What comes in while the thread is
behind waits in a bounded queue, and what finds it full is dropped: to the
protocol that is a lost frame.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from imprintd.clock import Clock
from imprintd.errors import ImprintdError, LocalProtocolError, RemoteProtocolError
from imprintd.replication import Receiver
from imprintd.sync import effects, events
from imprintd.sync.replica import Replica
from imprintd.wire import frames

QUEUE_MAX: Final = 256
"""Events that may wait; a full window of every link is less."""

Sender = Callable[[bytes], Awaitable[None]]
"""Hands one encoded message to a link; returning promises nothing."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """
    A link as the status shows it.

    Attributes:
        peer: Device id.
        behind: Heads and changes of the peer that are not here yet.
        reports: What was reported about it, by code.
    """

    peer: str
    behind: int
    reports: dict[str, int]


class Replicator:
    """
    Drives one replica.

    Args:
        replica: The engine.
        receiver: Carries out what concerns the store.
        clock: Wall and elapsed time.
        on_report: Told of every report, on the loop; for warnings and logs.
    """

    def __init__(
        self,
        replica: Replica,
        receiver: Receiver,
        clock: Clock,
        *,
        on_report: Callable[[effects.Report], None] = lambda _: None,
    ) -> None:
        self._replica = replica
        self._receiver = receiver
        self._clock = clock
        self._on_report = on_report
        self._senders: dict[str, Sender] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._events: asyncio.Queue[events.SyncEvent] = asyncio.Queue(QUEUE_MAX)
        self._urgent: deque[events.SyncEvent] = deque()
        self._wake = asyncio.Event()
        self._reports: dict[str, Counter[str]] = {}
        self.dropped: Counter[str] = Counter()
        """Frames that were not looked at: `queue-full`, `not-a-message`, `no-link`."""

    def link_up(self, peer: str, link_key: bytes, sender: Sender) -> None:
        """A session with a peer began; an earlier one with it is over."""
        if peer in self._senders:
            self.link_down(peer)
        self._senders[peer] = sender
        self._put(events.LinkUp(peer, link_key))

    def link_down(self, peer: str) -> None:
        """It ended; harmless when it had already."""
        if self._senders.pop(peer, None) is not None:
            self._put(events.LinkDown(peer))
        timer = self._timers.pop(peer, None)
        if timer is not None:
            timer.cancel()

    def received(self, peer: str, data: bytes) -> None:
        """An opened box of a peer came in. Never raises: a bad one is counted."""
        if peer not in self._senders:
            self.dropped["no-link"] += 1
            return
        try:
            message = frames.decode(data)
        except RemoteProtocolError:
            self.dropped["not-a-message"] += 1
            return
        try:
            self._events.put_nowait(events.FrameReceived(peer, message))
        except asyncio.QueueFull:
            self.dropped["queue-full"] += 1
        self._wake.set()

    def published(self, change: int) -> None:
        """The store's change log moved by learning, deletion or anything else local."""
        self._put(events.LocalPublished(change))

    def states(self) -> list[LinkState]:
        """Every link that is up."""
        return [
            LinkState(peer, self._replica.behind(peer), dict(self._reports.get(peer, {})))
            for peer in self._replica.peer_names()
        ]

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="sync") as executor:
            try:
                await loop.run_in_executor(executor, self._receiver.expire)
                while True:
                    event = await self._next()
                    out = await loop.run_in_executor(executor, self._turn, event)
                    for effect in out:
                        await self._outside(effect)
            finally:
                for timer in self._timers.values():
                    timer.cancel()

    def _put(self, event: events.SyncEvent) -> None:
        # links, timers and publications are few and must not be lost
        self._urgent.append(event)
        self._wake.set()

    async def _next(self) -> events.SyncEvent:
        while True:
            if self._urgent:
                return self._urgent.popleft()
            if not self._events.empty():
                return self._events.get_nowait()
            self._wake.clear()
            await self._wake.wait()

    def _turn(self, event: events.SyncEvent) -> list[effects.Effect]:
        """One event and all that follows from it in the store, on the worker thread."""
        left: list[effects.Effect] = []
        pending: deque[events.SyncEvent] = deque([event])
        while pending:
            now = events.Instant(self._clock.wall_ms(), self._clock.boottime())
            for effect in self._replica.handle(pending.popleft(), now):
                if isinstance(effect, effects.Send | effects.SetTimer | effects.Report):
                    left.append(effect)
                    continue
                result = self._receiver.run(effect)
                if result is not None:
                    pending.append(result)
        return left

    async def _outside(self, effect: effects.Effect) -> None:
        if isinstance(effect, effects.Report):
            self._reports.setdefault(effect.peer, Counter())[effect.code] += 1
            self._on_report(effect)
        elif isinstance(effect, effects.SetTimer):
            self._set_timer(effect)
        elif isinstance(effect, effects.Send):
            sender = self._senders.get(effect.peer)
            if sender is None:
                return
            try:
                await sender(frames.encode(effect.message))
            except LocalProtocolError:
                self.dropped["not-encodable"] += 1
            except (ImprintdError, OSError):
                # a link that cannot send ends by itself; until then this is a lost frame
                self.dropped["not-sent"] += 1

    def _set_timer(self, effect: effects.SetTimer) -> None:
        earlier = self._timers.pop(effect.peer, None)
        if earlier is not None:
            earlier.cancel()
        if effect.peer in self._senders:
            delay_s = max(0.0, effect.at_s - self._clock.boottime())
            self._timers[effect.peer] = asyncio.get_running_loop().call_later(
                delay_s, self._put, events.TimerFired(effect.peer)
            )
