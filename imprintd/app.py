"""
The daemon: builds the rooms, joins them, runs them, stops them in order.

Lock, store and socket come first; then watching, learning and housekeeping
run under supervision until a signal asks to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from imprintd import __version__
from imprintd.api import Api
from imprintd.archive import open_store
from imprintd.clock import SystemClock
from imprintd.config import Config, socket_path
from imprintd.errors import NotKnown
from imprintd.finding import files_at, roots
from imprintd.learn.crew import Worker
from imprintd.learn.messages import Setup
from imprintd.learn.ports import Job, Outcome
from imprintd.learn.queue import Waiting
from imprintd.learn.report import LearnReport
from imprintd.learn.room import LearnRoom
from imprintd.local import verify
from imprintd.model.snapshot import Head
from imprintd.ops.events import EventRing
from imprintd.ops.lock import DataLock
from imprintd.ops.log import Log, configure
from imprintd.ops.notify import Notifier, feed_watchdog
from imprintd.ops.power import on_battery
from imprintd.ops.server import OpsServer
from imprintd.ops.supervise import Supervisor
from imprintd.ops.trim import trim_memory
from imprintd.ops.warnings import Warnings
from imprintd.recall.memory import Memory
from imprintd.searching import open_search
from imprintd.shelf import StoreShelf
from imprintd.store import Store
from imprintd.store.schema import SCHEMA
from imprintd.watch.coverage import Fault
from imprintd.watch.room import Watcher
from imprintd.watch.scan import FileState

Document = dict[str, Any]

HOUSEKEEPING_S: Final = 30.0
BULK_FILES: Final = 16
BULK_REFRESH_S: Final = 2.0
"""With more files than that waiting, each commit of the index of words takes in
what this long has brought: a commit costs 50 ms however little it holds."""
WAL_BYTES_KEPT: Final = 16 * 1024**2
"""A log longer than this is truncated when nothing is to do."""
ANSWER_THREADS: Final = 4
"""Questions answered at once; more wait their turn."""
WORKER_ENVIRON: Final = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
}


def run(config: Config, data_dir: Path, workspace: str) -> int:
    """
    Run the daemon until it is asked to stop.

    Returns:
        0: asked to stop.

    Raises:
        Locked: Another daemon holds the data directory.
        ConfigError: The configuration cannot be used.
        SchemaTooNew: A newer imprintd wrote the database.
    """
    os.umask(0o077)
    clock = SystemClock()
    configure(clock, os.environ)
    with DataLock.acquire(data_dir) as lock, open_store(data_dir, clock) as store:
        asyncio.run(App(config, data_dir, workspace, store, lock, clock).run())
    return 0


class App:
    """One running daemon."""

    def __init__(
        self,
        config: Config,
        data_dir: Path,
        workspace: str,
        store: Store,
        lock: DataLock,
        clock: SystemClock,
    ) -> None:
        self._config = config
        self._data_dir = data_dir
        self._workspace = workspace
        self._store = store
        self._lock = lock
        self._clock = clock
        self._log = Log("app")
        self._state = "starting"
        self._started_ms = clock.wall_ms()
        self._warnings = Warnings(clock)
        self._events = EventRing(clock, life=store.index_id)
        self._search = open_search(store, data_dir, config)
        self._memory = Memory(store, self._search)
        self._threads = ThreadPoolExecutor(ANSWER_THREADS, thread_name_prefix="answer")
        self._refreshing = ThreadPoolExecutor(1, thread_name_prefix="refresh")
        rng = random.Random()  # noqa: S311 - jitter, not secrets
        self._supervisor = Supervisor(clock, rng, on_change=self._room_changed)
        setup = Setup(str(data_dir), workspace, config)
        self._learning = LearnRoom(
            Worker(
                (sys.executable, "-m", "imprintd.worker"), setup, {**os.environ, **WORKER_ENVIRON}
            ),
            StoreShelf(store, config, data_dir),
            clock,
            embed_duty=config.embed.duty / 100,
            idle_s=config.embed.idle_unload_s,
            on_published=self._published,
        )
        known = {
            stored.cursor.path: (
                stored.cursor.device,
                stored.cursor.inode,
                stored.cursor.size,
                stored.cursor.mtime_ns,
            )
            for stored in store.cursors()
            if stored.cursor.offset == stored.cursor.size or stored.cursor.compressed
        }
        self._watcher = Watcher(
            roots(config, os.environ),
            config.watch,
            clock,
            rng,
            known=known,
            on_faults=self._watch_faults,
        )
        self._stop = asyncio.Event()
        self._behind = asyncio.Event()

    async def run(self) -> None:
        """Serve, watch and learn until a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop)
        path = socket_path(self._config, self._data_dir, os.environ)
        api = Api(self, self._memory, self._events, self._threads, self._workspace)
        server = OpsServer(path, api.routes(), lock=self._lock)
        await server.start()
        notifier = Notifier(os.environ, self._clock)
        notifier.ready(f"imprintd {__version__}")
        self._state = "running"
        self._log.info("started", version=__version__, sources=self._store.statistics().sources)
        try:
            await self._work(notifier)
        finally:
            self._state = "stopping"
            notifier.stopping()
            await server.close()
            self._threads.shutdown(wait=True)
            self._refreshing.shutdown(wait=True)
            self._search.close()
            self._log.info("stopped")

    async def _work(self, notifier: Notifier) -> None:
        supervise = self._supervisor.supervise
        jobs = [
            supervise("check", self._check_store),
            supervise("search", self._refresh),
            supervise("learn", self._learning.run),
            supervise("watch", self._watch),
            supervise("housekeeping", self._keep_house),
            supervise("watchdog", lambda: feed_watchdog(notifier, self._is_healthy)),
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
            await self._stop.wait()
            for task in tasks:
                task.cancel()

    def _asked_to_stop(self) -> None:
        if self._stop.is_set():
            # asked twice: leave now; what is committed is safe
            os._exit(0)
        self._stop.set()

    async def _watch(self) -> None:
        await self._watcher.run(self._files_changed, self._files_quiet)

    async def _files_changed(self, files: list[FileState]) -> None:
        self._learning.add(Waiting(Job(file.path), file.mtime_ns, file.size) for file in files)

    async def _files_quiet(self, files: list[FileState]) -> None:
        """A last record without its newline may be final now."""
        unfinished = []
        for file in files:
            stored = self._store.cursor(self._workspace, file.path)
            if stored is not None and stored[1].offset < file.size:
                unfinished.append(Waiting(Job(file.path, final=True), file.mtime_ns, file.size))
        self._learning.add(unfinished)

    async def _refresh(self) -> None:
        """Keep the search caches up to date; in bulk not after every publication."""
        loop = asyncio.get_running_loop()
        while True:
            self._behind.clear()
            await loop.run_in_executor(self._refreshing, self._search.refresh)
            if len(self._learning.queue) > BULK_FILES:
                await asyncio.sleep(BULK_REFRESH_S)
            await self._behind.wait()

    def _published(self, heads: Sequence[Head]) -> None:
        for head in heads:
            self._events.publish(
                "source-learned", source=head.source.key, version=head.version, change=head.change
            )
        self._behind.set()

    def _room_changed(self, name: str, room: Any) -> None:
        if room.state == "degraded":
            self._warnings.set(
                "room-degraded",
                f"{name} stopped: {room.failure.get('message') or room.failure.get('type')}",
                key=name,
                remedy="see the log; `imprintd run` again may help",
            )
        elif room.state == "running":
            self._warnings.clear("room-degraded", name)

    def _watch_faults(self, faults: tuple[Fault, ...]) -> None:
        for code in ("watch-degraded", "inotify-limit", "source-missing", "source-unreadable"):
            self._warnings.replace(
                code, [(f.root, f.text, f.remedy) for f in faults if f.code == code]
            )

    async def _keep_house(self) -> None:
        """Beats, warnings, memory: a little now and then."""
        tidied_ms: int | None = None
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            for room in ("watch", "housekeeping"):
                self._supervisor.beat(room)
            if self._clock.monotonic() - self._learning.beat < 3600:
                self._supervisor.beat("learn")
            learned_ms = self._learning.totals.last_learned_ms
            unloaded = self._search.tick()
            if self._learning.queue.is_idle and (unloaded or learned_ms != tidied_ms):
                tidied_ms = learned_ms
                trim_memory()
                await self._tidy_store()
            self._warn()

    async def _tidy_store(self) -> None:
        """Finish what an erasure left to do, and give a long log's space back."""
        log = self._store.file.with_name(self._store.file.name + "-wal")
        with contextlib.suppress(OSError):
            if not self._store.erasure_pending and log.stat().st_size <= WAL_BYTES_KEPT:
                return
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._refreshing, partial(self._store.checkpoint, truncate=True))

    async def _check_store(self) -> None:
        """After an unclean end: SQLite's own check; damage is named, nothing is deleted."""
        if not self._store.was_unclean:
            return
        loop = asyncio.get_running_loop()
        wrong = await loop.run_in_executor(self._refreshing, self._store.quick_check)
        if wrong:
            self._warnings.set(
                "store-corrupt",
                f"the database is damaged: {wrong[0][:200]}",
                remedy="imprintd verify --all --repair; keep a copy of the data directory",
            )

    def _warn(self) -> None:
        if self._learning.embed_error:
            self._warnings.set("model-missing", self._learning.embed_error)
        else:
            self._warnings.clear("model-missing")
        if self._learning.paused:
            self._warnings.set("paused", "learning is paused", remedy="imprintd resume")
        else:
            self._warnings.clear("paused")

    def _is_healthy(self) -> bool:
        return self._supervisor.is_fresh({"housekeeping": 2 * HOUSEKEEPING_S})

    # -- what the routes ask ------------------------------------------------

    def health(self) -> Document:
        """Alive: the loop turns."""
        return {"status": "ok", "state": self._state, "version": __version__}

    def ready(self) -> Document:
        """Ready: a real question is answered."""
        self._store.change()
        return {"ready": self._state == "running", "state": self._state}

    def status(self) -> Document:
        """Everything about the daemon's state, with the interface's keys."""
        statistics = self._store.statistics()
        watch = self._watcher.status()
        queue = self._learning.queue
        usage = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        totals = self._learning.totals
        return {
            "schema": SCHEMA,
            "state": "paused" if self._learning.paused else self._state,
            "version": __version__,
            "device": self._store.device,
            "workspace": self._workspace,
            "started_ms": self._started_ms,
            "rooms": self._supervisor.as_json(),
            "backlog": {
                "sources": len(queue) + watch.pending + watch.settling,
                "bytes": queue.backlog_bytes,
                "eta_seconds": self._learning.eta_seconds(),
            },
            "sources": statistics.sources,
            "chunks": statistics.chunks,
            "points": statistics.points,
            "owed": statistics.owed,
            "last_learned_ms": totals.last_learned_ms,
            "learning": {"results": dict(totals.results), "bytes_read": totals.bytes_read},
            "embedding": {
                "windows": totals.windows,
                "error": self._learning.embed_error,
                "owed": statistics.owed,
                "on_battery": bool(on_battery()),
            },
            "errors": [
                {
                    "path": error.path,
                    "line": error.line,
                    "reason": error.reason,
                    "message": error.message,
                    "remedy": error.remedy,
                    "attempts": error.attempts,
                }
                for error in self._store.errors()
            ],
            "warnings": [warning.as_json() for warning in self._warnings.visible()],
            "watch": {
                "roots": [
                    {"path": r.path, "client": r.client, "state": r.state, "files": r.files}
                    for r in watch.roots
                ],
                "folders": watch.folders,
                "covered": watch.covered,
                "scans": watch.scans,
                "losses": watch.losses,
                "last_scan": watch.last_scan,
            },
            "peers": [],
            "sizes": {
                "db_bytes": statistics.db_bytes,
                "wal_bytes": statistics.wal_bytes,
                "text_chars": statistics.text_chars,
                "text_bytes": statistics.text_bytes,
                "packed_bytes": statistics.packed_bytes,
                "vector_bytes": statistics.vector_bytes,
            },
            "search": self._search.status(),
            "process": {
                "pid": os.getpid(),
                "rss_bytes": _rss_bytes(),
                "cpu_seconds": usage.ru_utime
                + usage.ru_stime
                + children.ru_utime
                + children.ru_stime,
            },
        }

    def rescan(self) -> None:
        """Look at every watched file now."""
        self._watcher.rescan()

    def pause(self) -> None:
        """Learn nothing until resumed; searching goes on."""
        self._learning.pause()
        self._watcher.pause()
        self._warn()

    def resume(self) -> None:
        """Go on."""
        self._watcher.resume()
        self._learning.resume()
        self._warn()

    async def learn(self, wish: Mapping[str, Any]) -> AsyncIterator[Document]:
        """Learn named paths now; progress, then the report."""
        if wish["workspace"] != self._workspace:
            raise NotKnown(
                f"this daemon learns for workspace {self._workspace}",
                remedy=f"imprintd --workspace {self._workspace} learn …",
            )
        loop = asyncio.get_running_loop()
        started = self._clock.monotonic()
        files = await loop.run_in_executor(self._threads, files_at, wish["paths"])
        report = LearnReport(files=len(files), bytes=sum(file.size for file in files))
        left = {file.path: file.size for file in files}
        told: asyncio.Queue[None] = asyncio.Queue()

        def hear(item: Waiting, outcome: Outcome, head: Head | None) -> None:
            size = left.pop(item.job.path, None)
            if size is not None:
                report.take(outcome, head, size)
                told.put_nowait(None)

        forget = self._learning.watch(hear)
        try:
            self._learning.add(
                Waiting(
                    Job(f.path, final=True, salvage=wish["salvage"], force=wish["force"]),
                    f.mtime_ns,
                    f.size,
                    asked=True,
                )
                for f in files
            )
            while left:
                await told.get()
                yield {"progress": report.progress()}
        finally:
            forget()
        await loop.run_in_executor(self._refreshing, self._search.refresh)
        document = report.document(self._clock.monotonic() - started)
        document["pending"] = self._store.owed_count()
        yield {"result": document}

    async def verify(self, wish: Mapping[str, Any]) -> AsyncIterator[Document]:
        """Verify, and mend where asked; progress, then the verdict."""
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Document] = asyncio.Queue()

        def tell(progress: Mapping[str, Any]) -> None:
            loop.call_soon_threadsafe(told.put_nowait, {"progress": dict(progress)})

        await loop.run_in_executor(self._refreshing, self._search.refresh)
        work = loop.run_in_executor(
            self._threads, verify, self._store, self._memory, self._search, wish, tell
        )
        while not work.done() or not told.empty():
            progress = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    progress = await told.get()
            if progress is not None:
                yield progress
        yield {"result": await work}


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
