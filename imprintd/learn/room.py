"""
The learn room of the daemon: feeds the worker, publishes what it makes, and
gives vectors to what lacks them when nothing else is to do.

One file is in the worker while the one before it is being published. A source
that kills the worker twice is set aside and named; a stale result is refused
by the store and read again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from imprintd.clock import Clock
from imprintd.errors import ImprintdError, VersionReplaced
from imprintd.learn.crew import Worker, WorkerDied
from imprintd.learn.messages import EmbedBatch, Embedded
from imprintd.learn.ports import Outcome
from imprintd.learn.queue import LearnQueue, Waiting
from imprintd.model.snapshot import Head, Point, SnapshotUpdate

PUBLISH_BATCH: Final = 32
"""Outcomes per transaction at the most: a durable commit costs milliseconds."""
WORKER_DEATHS_MAX: Final = 2
EMBED_CONTENTS: Final = 4
"""Contents per request: a new turn waits for no more than one request."""


class Shelf(Protocol):
    """Where results go; the store provides it through the composition root."""

    async def publish(self, updates: Sequence[SnapshotUpdate]) -> list[Head]:
        """Publish in one transaction or not at all."""
        ...

    async def note_error(self, outcome: Outcome) -> None:
        """Keep the error of a path until it is learned."""
        ...

    async def clear_error(self, path: str) -> None:
        """The path has been learned."""
        ...

    async def owed(self, limit: int) -> EmbedBatch | None:
        """What lacks vectors and comes first; None: nothing, or no model."""
        ...

    async def keep_points(self, points: Sequence[Point]) -> None:
        """Store vectors."""
        ...


@dataclass(slots=True)
class Totals:
    """What has been learned since the start."""

    results: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    windows: int = 0
    busy_s: float = 0.0
    learned_bytes: int = 0
    last_learned_ms: int | None = None


Watcher = Callable[[Waiting, Outcome, Head | None], None]


class LearnRoom:
    """
    Learning, as the daemon runs it.

    Args:
        worker: The worker process.
        shelf: Where results go.
        clock: For rates and the time of the last learning.
        embed_duty: Share of time that embedding may take, 0 to 1.
        idle_s: The worker is let go after this much quiet.
        on_published: Told after each transaction (search catches up then).
    """

    def __init__(
        self,
        worker: Worker,
        shelf: Shelf,
        clock: Clock,
        *,
        embed_duty: float,
        idle_s: float,
        on_published: Callable[[Sequence[Head]], None],
    ) -> None:
        self._worker = worker
        self._shelf = shelf
        self._clock = clock
        self._embed_duty = embed_duty
        self._idle_s = idle_s
        self._on_published = on_published
        self._queue = LearnQueue()
        self._wake = asyncio.Event()
        self._results: asyncio.Queue[tuple[Waiting, Outcome]] = asyncio.Queue(PUBLISH_BATCH)
        self._deaths: Counter[str] = Counter()
        self._watchers: list[Watcher] = []
        self._embeds = True
        self.embed_error = ""
        self.paused = False
        self.totals = Totals()
        self.beat = clock.monotonic()

    def add(self, items: Iterable[Waiting]) -> None:
        """Queue files."""
        for item in items:
            self._queue.add(item)
        self._wake.set()

    def expect(self) -> None:
        """Work is coming: have the worker ready when the files have settled."""
        self._wake.set()

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Be told of every outcome; call the result to stop that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    @property
    def queue(self) -> LearnQueue:
        """What waits."""
        return self._queue

    def eta_seconds(self) -> float | None:
        """Time left for the backlog at the rate so far; None while unknown."""
        if self._queue.is_idle:
            return 0.0
        if not self.totals.learned_bytes or not self.totals.busy_s:
            return None
        return self._queue.backlog_bytes * self.totals.busy_s / self.totals.learned_bytes

    def pause(self) -> None:
        """Take no new work until resumed."""
        self.paused = True

    def resume(self) -> None:
        """Go on, embedding included."""
        self.paused = False
        self._embeds = True
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._feed())
                tasks.create_task(self._publish())
        finally:
            await self._worker.stop()

    async def _feed(self) -> None:
        while True:
            self.beat = self._clock.monotonic()
            self._wake.clear()
            item = None if self.paused else self._queue.take()
            if item is not None:
                try:
                    outcome = await self._learn(item)
                except BaseException:
                    self._queue.put_back(item)
                    raise
                await self._results.put((item, outcome))
            elif self._queue.is_idle and not self.paused and await self._embed():
                continue
            else:
                await self._rest()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._idle_s):
                await self._wake.wait()
        except TimeoutError:
            await self._worker.stop()
            await self._wake.wait()
        await self._worker.start()

    async def _learn(self, item: Waiting) -> Outcome:
        path = item.job.path
        started = self._clock.monotonic()
        try:
            outcome = await self._worker.ask(item.job)
        except WorkerDied as error:
            self._deaths[path] += 1
            if self._deaths[path] < WORKER_DEATHS_MAX:
                return Outcome(item.job, "retry", reason=error.code, message=error.message)
            return Outcome(
                item.job,
                "failed",
                reason="quarantined",
                message=f"reading it ended the worker process {WORKER_DEATHS_MAX} times",
                remedy="`imprintd learn` the file by itself and report what it says",
            )
        assert isinstance(outcome, Outcome)
        self.totals.busy_s += self._clock.monotonic() - started
        self.totals.learned_bytes += item.size
        self.totals.bytes_read += outcome.bytes_read
        return outcome

    async def _publish(self) -> None:
        while True:
            batch = [await self._results.get()]
            while len(batch) < PUBLISH_BATCH and not self._results.empty():
                batch.append(self._results.get_nowait())
            for item, outcome, head in await self._published(batch):
                await self._settle(item, outcome, head)
            self._wake.set()

    async def _published(
        self, batch: list[tuple[Waiting, Outcome]]
    ) -> list[tuple[Waiting, Outcome, Head | None]]:
        updates = [outcome.update for _, outcome in batch if outcome.update is not None]
        if not updates:
            return [(item, outcome, None) for item, outcome in batch]
        try:
            heads = iter(await self._shelf.publish(updates))
        except ImprintdError as error:
            if len(batch) > 1:
                # one of them is in the way: each on its own
                singly = [await self._published([pair]) for pair in batch]
                return [settled for one in singly for settled in one]
            ((item, outcome),) = batch
            if isinstance(error, VersionReplaced):
                return [(item, Outcome(outcome.job, "retry", reason=error.code), None)]
            failed = Outcome(
                outcome.job,
                "failed",
                key=outcome.key,
                reason=error.code,
                message=error.message,
                remedy=error.remedy,
            )
            return [(item, failed, None)]
        settled = [(i, o, next(heads) if o.update is not None else None) for i, o in batch]
        self.totals.last_learned_ms = self._clock.wall_ms()
        self._embeds = True
        self._on_published([head for _, _, head in settled if head is not None])
        return settled

    async def _settle(self, item: Waiting, outcome: Outcome, head: Head | None) -> None:
        if outcome.status == "retry":
            self._queue.put_back(item)
            return
        self.totals.results[outcome.status] += 1
        if outcome.status == "failed":
            await self._shelf.note_error(outcome)
        elif outcome.status in {"learned", "unchanged"}:
            self._deaths.pop(item.job.path, None)
            await self._shelf.clear_error(item.job.path)
        self._queue.done(item)
        for watcher in tuple(self._watchers):
            watcher(item, outcome, head)

    async def _embed(self) -> bool:
        """Make some owed vectors; False when there is nothing to make."""
        if not self._embeds or self._embed_duty <= 0:
            return False
        batch = await self._shelf.owed(EMBED_CONTENTS)
        if batch is None:
            self._embeds = False
            return False
        try:
            made = await self._worker.ask(batch)
        except WorkerDied as error:
            made = Embedded(error=error.message)
        assert isinstance(made, Embedded)
        self.embed_error = made.error
        if made.error:
            self._embeds = False
            return False
        await self._shelf.keep_points(made.points)
        self.totals.windows += made.windows
        await self._cool(made.cpu_s)
        return True

    async def _cool(self, cpu_s: float) -> None:
        """Rest so that embedding keeps to its share; new files end the rest."""
        rest_s = cpu_s * (1 / self._embed_duty - 1)
        if rest_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._wake.wait()
