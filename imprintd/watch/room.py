"""
The watch room: hints wake it, scans are the truth, changes are told in order.

One task looks (hints, settled files, scans, coverage), another tells the
caller; a slow caller never makes the room deaf. All blocking work runs in one
thread of the room's own. While nothing changes, the room wakes every few
seconds to compare the roots' identities and does nothing else.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from imprintd.clock import Clock
from imprintd.config import Watch as WatchConfig
from imprintd.watch import place as places
from imprintd.watch.changes import Changes, Signature, WallNs
from imprintd.watch.coverage import Fault, SuspendGap
from imprintd.watch.hint import Hint
from imprintd.watch.place import Place
from imprintd.watch.scan import FileState, Root, look
from imprintd.watch.status import WatchStatus, faults_of, roots_of

BATCH_FILES_MAX: Final = 64
"""Files told at once: between two batches a newer change can overtake."""

QUIET_S: Final = 30.0
"""A file unchanged this long after it was told is quiet."""

COALESCE_S: Final = 0.1
"""A file written all the time wakes the room ten times a second at most."""

COUNT_DELAY_S: Final = 2.0
"""Watches are counted this long after folders appeared: watchdog needs a moment."""

OnFiles = Callable[[list[FileState]], Awaitable[None]]
T = TypeVar("T")


class Watcher:
    """
    Watches roots and tells which files changed.

    Args:
        roots: What to watch; of nested roots the inner one owns its files.
        settings: The `[watch]` table (its `roots` are not looked at).
        clock: The time.
        rng: Jitter between full scans.
        known: What the caller has read, by path. Leave out files with an
            undecided tail: they are told again and then become quiet.
        on_faults: Called on the loop when the set of faults changes.
        tick_s: How often the roots' identities and the threads are checked.
        quiet_s: See QUIET_S.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        settings: WatchConfig,
        clock: Clock,
        rng: random.Random,
        *,
        known: Mapping[str, Signature] | None = None,
        on_faults: Callable[[tuple[Fault, ...]], None] | None = None,
        tick_s: float = 5.0,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._tick_s = tick_s
        self._on_faults = on_faults
        self._changes = Changes(
            known or {},
            settle_ms=settings.settle_ms,
            settle_ms_max=settings.settle_ms_max,
            quiet_s=quiet_s,
        )
        self._places = places.places_for(roots)
        self._new_folders: dict[str, Place] = {}
        self._still: list[FileState] = []
        self._losses = 0
        self._scans = 0
        self._told_faults: tuple[Fault, ...] = ()
        self._paused = False
        self._stopping = threading.Event()
        self._wake = asyncio.Event()
        self._tell = asyncio.Event()
        self._gap = SuspendGap(clock)
        self._tick_at = 0.0
        self._beat = clock.monotonic()
        self._hint: Hint | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, on_changed: OnFiles, on_quiet: OnFiles | None = None) -> None:
        """
        Watch until cancelled; may be run again afterwards.

        Args:
            on_changed: Is given files that differ from what was known, newest
                first, at most BATCH_FILES_MAX; the next batch comes when it
                returns. When it raises, so does `run`, and the files count
                as not told.
            on_quiet: Is given files that stayed the same for `quiet_s` after
                they were told, once each time: what is whole there is final.
        """
        loop = asyncio.get_running_loop()
        self._wake, self._tell = asyncio.Event(), asyncio.Event()  # of this loop
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="watch")
        if self._settings.mode != "scan":
            self._hint = Hint(partial(_wake_from_thread, loop, self._wake))
        for spot in self._places:  # whatever was missed between two runs
            spot.scan_at, spot.identity = 0.0, None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look(), name="watch-look")
                group.create_task(self._report(on_changed, on_quiet), name="watch-tell")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self._stopping.set()
            if self._hint is not None:
                self._thread.submit(self._hint.close)
            # a dead network mount may hold the thread: do not wait for it
            self._thread.shutdown(wait=False)
            self._hint = self._thread = None

    @property
    def beat(self) -> float:
        """Monotonic time of the last look around: a tick old at most, or a scan runs."""
        return self._beat

    def rescan(self) -> None:
        """Scan all roots now; what differs is told."""
        for spot in self._places:
            spot.scan_at = 0.0
        self._wake.set()

    def pause(self) -> None:
        """Tell nothing until resumed; watching goes on."""
        self._paused = True

    def resume(self) -> None:
        """Tell what gathered meanwhile."""
        self._paused = False
        self._tell.set()

    def status(self) -> WatchStatus:
        """What is watched and how well, right now."""
        return WatchStatus(
            roots=roots_of(self._places),
            folders=sum(len(spot.folders) for spot in self._places),
            covered=sum(spot.covered for spot in self._places),
            pending=self._changes.pending,
            settling=self._changes.settling,
            scans=self._scans,
            losses=self._losses,
            last_scan=max((spot.scanned_ms for spot in self._places), default=0),
            paused=self._paused,
            faults=faults_of(self._places),
        )

    async def _report(self, on_changed: OnFiles, on_quiet: OnFiles | None) -> None:
        while True:
            await self._tell.wait()
            self._tell.clear()
            while not self._paused:
                batch = self._changes.take(BATCH_FILES_MAX)
                if batch:
                    try:
                        await on_changed(batch)
                    except BaseException:
                        self._changes.undone(batch)
                        raise
                    self._changes.done(batch, self._clock.monotonic())
                    self._wake.set()  # there is something to wait for now
                    continue
                still, self._still = self._still, []
                # what changed since it was found still will be told as changed
                still = [state for state in still if self._changes.is_known(state)]
                if not still:
                    break
                if on_quiet is not None:
                    await on_quiet(still)

    async def _look(self) -> None:
        while True:
            self._beat = self._clock.monotonic()
            self._gather()
            await self._check()
            for spot in self._places:
                await self._attend(spot)
            await self._enter_new_folders()
            await self._look_at_settled()
            self._say_faults()
            if self._changes.pending or self._still:
                self._tell.set()
            if await self._woken():
                await asyncio.sleep(COALESCE_S)

    def _gather(self) -> None:
        self._wake.clear()
        now = self._clock.monotonic()
        for index, dirty in (self._hint.take() if self._hint else {}).items():
            spot = self._places[index]
            if dirty.losses:
                self._losses += 1
                self._scan_soon(spot, now)
            if "root" in dirty.losses:
                self._tick_at = now
            for path in dirty.files:
                if places.owns(spot, path, folder=False):
                    self._changes.hinted(path, index, now)
            for path in dirty.folders:
                if places.owns(spot, path, folder=True):
                    self._new_folders[path] = spot

    async def _check(self) -> None:
        """The few questions that are asked even when nothing happens."""
        now = self._clock.monotonic()
        if now < self._tick_at:
            return
        self._tick_at = now + self._tick_s
        slept = self._gap.slept_s() > 0
        armed = self._hint.armed() if self._hint else {}
        for spot in self._places:
            if slept or await self._do(places.moved, spot):
                spot.scan_at = min(spot.scan_at, now)
            elif spot.state == "watching" and not armed.get(spot.index, False):
                self._losses += 1
                spot.identity = None  # the next scan watches it anew
                self._scan_soon(spot, now)

    async def _attend(self, spot: Place) -> None:
        now = self._clock.monotonic()
        if now >= spot.scan_at:
            await self._scan(spot)
        elif spot.count_at is not None and now >= spot.count_at:
            spot.count_at = None
            if await self._do(places.count, spot):
                spot.poll_at = now
                if now >= spot.arm_at:  # watching anew may cover them
                    self._scan_soon(spot, now)
        if spot.bare and now >= spot.poll_at:
            self._found(await self._do(places.poll, spot))
            spot.poll_at = self._clock.monotonic() + self._settings.uncovered_interval_s

    async def _scan(self, spot: Place) -> None:
        started = self._clock.monotonic()
        # a request that comes while the scan runs must not get lost
        spot.scan_at = started + self._pause_s(spot)
        found = await self._do(places.survey, spot, self._hint, started, self._stopping.is_set)
        now = spot.scanned_at = self._clock.monotonic()
        spot.scan_at = min(spot.scan_at, now + self._pause_s(spot))
        if found is None:
            return
        self._found(found.files)
        if found.complete:
            self._scans += 1
            spot.scanned_ms = self._clock.wall_ms()
            if not found.faults_total:
                self._changes.prune(spot.root.path, {state.path for state in found.files})
        spot.count_at = now + COUNT_DELAY_S

    def _pause_s(self, spot: Place) -> float:
        """Until the next full scan: long and uneven, or short where nothing else tells."""
        if spot.state == "polling":
            # at most 1 % of a core, and a slow network sees us a fifth of the time
            interval_s = float(self._settings.uncovered_interval_s)
            return max(interval_s, 100 * spot.scan_cpu_s, 4 * spot.scan_s)
        return self._settings.scan_interval_s * self._rng.uniform(0.75, 1.25)

    def _scan_soon(self, spot: Place, now: float) -> None:
        """Scan soon, but never so often that scanning is all that is done."""
        earliest = max(now, spot.scanned_at + max(1.0, 20 * spot.scan_cpu_s))
        spot.scan_at = min(spot.scan_at, earliest)

    async def _enter_new_folders(self) -> None:
        fresh, self._new_folders = self._new_folders, {}
        entered = ""
        for path in sorted(fresh):  # parents come before what lies in them
            if entered and path.startswith(entered):
                continue
            entered = path + "/"
            spot = fresh[path]
            self._found(await self._do(places.branch, spot, path))
            spot.count_at = self._clock.monotonic() + COUNT_DELAY_S

    async def _look_at_settled(self) -> None:
        now = self._clock.monotonic()
        due, still = self._changes.due(now), self._changes.still(now)
        if not due and not still:
            return
        for state in await self._do(_look_at, due):
            self._changes.looked(state)
        self._changes.all_looked()
        for state in await self._do(_look_at, still):
            if self._changes.is_known(state):
                self._still.append(state)
            else:
                self._changes.hinted(state.path, state.root, now)

    def _found(self, files: Iterable[FileState]) -> None:
        now, wall_ns = self._clock.monotonic(), WallNs(self._clock.wall_ms() * 1_000_000)
        for state in files:
            self._changes.found(state, now, wall_ns)

    def _say_faults(self) -> None:
        faults = faults_of(self._places)
        if faults != self._told_faults:
            self._told_faults = faults
            if self._on_faults is not None:
                self._on_faults(faults)

    async def _woken(self) -> bool:
        """Sleep until something is due (False) or a hint comes (True)."""
        times = [self._tick_at]
        for spot in self._places:
            times.append(spot.scan_at)
            if spot.count_at is not None:
                times.append(spot.count_at)
            if spot.bare:
                times.append(spot.poll_at)
        due = self._changes.next_due()
        if due is not None:
            times.append(due)
        # a little late rather than early: an early one would wake twice
        delay_s = max(0.0, min(times) - self._clock.monotonic()) + 0.005
        # not wait_for: until Python 3.12 it can swallow a cancellation
        try:
            async with asyncio.timeout(delay_s):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    async def _do(self, work: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(work, *args))


def _wake_from_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


def _look_at(paths: list[tuple[str, int]]) -> list[FileState]:
    states = (look(path, root) for path, root in paths)
    return [state for state in states if state is not None]
