"""
The whole watch room with real folders and the real watchdog.

Waiting is for something to come true, with a generous end; nothing is judged
by how long it took.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from imprintd.clock import SystemClock
from imprintd.config import Watch
from imprintd.watch import coverage
from imprintd.watch import place as places
from imprintd.watch import room as room_module
from imprintd.watch.changes import Signature, signature
from imprintd.watch.hint import PATHS_MAX, Hint
from imprintd.watch.room import Watcher
from imprintd.watch.scan import FileState, Root

pytestmark = pytest.mark.skipif(
    coverage.watched_folders() is None, reason="these need inotify and /proc"
)


class Bench:
    """A running watcher and what it told."""

    def __init__(
        self,
        *folders: Path,
        known: dict[str, Signature] | None = None,
        settings: Watch | None = None,
        clock: SystemClock | None = None,
        quiet_s: float = 60.0,
    ) -> None:
        self.base = folders[0]
        self.told: list[FileState] = []
        self.batches: list[list[str]] = []
        self.quiet: list[FileState] = []
        self.faults: list[tuple[coverage.Fault, ...]] = []
        self.before: Callable[[list[FileState]], Awaitable[None]] | None = None
        self.watcher = Watcher(
            [Root(str(folder), "test", lambda name: name.endswith(".jsonl")) for folder in folders],
            settings or Watch(settle_ms=20, settle_ms_max=200, uncovered_interval_s=1),
            clock or SystemClock(),
            random.Random(7),
            known=known,
            on_faults=self.faults.append,
            tick_s=0.1,
            quiet_s=quiet_s,
        )

    async def _changed(self, files: list[FileState]) -> None:
        if self.before is not None:
            await self.before(files)
        self.told += files
        self.batches.append([self.name(state) for state in files])

    async def _quiet(self, files: list[FileState]) -> None:
        self.quiet += files

    def name(self, state: FileState) -> str:
        return os.path.relpath(state.path, self.base)

    def latest(self) -> dict[str, int]:
        """Size last told of each file."""
        return {self.name(state): state.size for state in self.told}

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            task = asyncio.create_task(self.watcher.run(self._changed, self._quiet))
            steps = asyncio.ensure_future(scenario())
            await asyncio.wait({task, steps}, return_when=asyncio.FIRST_COMPLETED)
            ended_early = task.done()
            task.cancel()
            steps.cancel() if ended_early else None
            results = await asyncio.gather(task, steps, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception):
                    raise result
            assert not ended_early

        asyncio.run(main())

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(1500):
            if is_so():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(
            f"it never came to be: {self.latest()} {self.watcher.status()} {self.faults}"
        )

    async def watching(self) -> None:
        def is_at_rest() -> bool:
            status = self.watcher.status()
            return status.scans >= 1 and status.pending + status.settling == 0

        await self.until(is_at_rest)


def _write(path: Path, text: str = "x", mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as stream:
        stream.write(text)


def test_what_is_there_and_what_is_appended_is_told(tmp_path: Path) -> None:
    _write(tmp_path / "p" / "a.jsonl", "12")
    _write(tmp_path / "p" / "a.txt", "12")
    bench = Bench(tmp_path)

    async def scenario() -> None:
        await bench.until(lambda: bench.latest() == {"p/a.jsonl": 2})
        await bench.watching()
        _write(tmp_path / "p" / "a.jsonl", "345", "a")
        await bench.until(lambda: bench.latest() == {"p/a.jsonl": 5})
        status = bench.watcher.status()
        assert (status.folders, status.roots[0].state, status.faults) == (2, "watching", ())

    bench.run(scenario)


def test_replacing_a_file_is_a_change_with_a_new_identity(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    _write(root / "a.jsonl", "12")
    _write(root / "b.jsonl", "12")
    bench = Bench(root)

    async def scenario() -> None:
        await bench.watching()
        before = {bench.name(s): s.inode for s in bench.told}
        _write(root / "a.tmp", "34")
        (root / "a.tmp").replace(root / "a.jsonl")
        _write(elsewhere / "b", "56")
        (elsewhere / "b").replace(root / "b.jsonl")
        await bench.until(lambda: len(bench.told) == 4)
        after = {bench.name(s): s.inode for s in bench.told[2:]}
        assert set(after) == set(before)
        assert all(after[name] != before[name] for name in before)

    bench.run(scenario)


def test_files_in_folders_made_a_moment_ago_are_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    expected = {f"d{n}/e/f/a.jsonl": 1 for n in range(300)}

    async def scenario() -> None:
        await bench.watching()
        for name in expected:
            _write(tmp_path / name)
        await bench.until(lambda: bench.latest() == expected)
        _write(tmp_path / "d7" / "e" / "f" / "a.jsonl", "more", "a")
        await bench.until(lambda: bench.latest() == {**expected, "d7/e/f/a.jsonl": 5})
        await bench.until(lambda: bench.watcher.status().folders == 901)

    bench.run(scenario)


def test_a_tree_that_is_moved_in_is_watched(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    _write(elsewhere / "p" / "q" / "a.jsonl", "1")
    bench = Bench(root)

    async def scenario() -> None:
        await bench.watching()
        (elsewhere / "p").rename(root / "moved")
        await bench.until(lambda: bench.latest() == {"moved/q/a.jsonl": 1})
        _write(root / "moved" / "q" / "a.jsonl", "2", "a")
        await bench.until(lambda: bench.latest() == {"moved/q/a.jsonl": 2})
        (root / "moved").rename(root / "again")
        await bench.until(lambda: bench.latest().get("again/q/a.jsonl") == 2)
        _write(root / "again" / "q" / "a.jsonl", "3", "a")
        await bench.until(lambda: bench.latest().get("again/q/a.jsonl") == 3)

    bench.run(scenario)


def test_a_root_that_goes_and_comes_back_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    _write(root / "a.jsonl", "1")
    bench = Bench(root)

    async def scenario() -> None:
        await bench.watching()
        shutil.rmtree(root)
        await bench.until(lambda: bench.watcher.status().roots[0].state == "missing")
        assert [fault.code for fault in bench.faults[-1]] == ["source-missing"]
        _write(root / "b.jsonl", "12")
        await bench.until(lambda: bench.latest().get("b.jsonl") == 2)
        assert bench.faults[-1] == ()
        _write(root / "b.jsonl", "3", "a")
        await bench.until(lambda: bench.latest().get("b.jsonl") == 3)
        assert bench.latest()["a.jsonl"] == 1  # nobody was told that it went

    bench.run(scenario)


def test_a_root_that_is_swapped_between_two_looks_is_noticed(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    _write(root / "a.jsonl", "1")
    _write(other / "b.jsonl", "12")
    bench = Bench(root)

    async def scenario() -> None:
        await bench.watching()
        root.rename(tmp_path / "old")
        other.rename(root)
        await bench.until(lambda: bench.latest() == {"a.jsonl": 1, "b.jsonl": 2})
        await bench.until(lambda: bench.watcher.status().roots[0].state == "watching")
        _write(root / "b.jsonl", "3", "a")
        await bench.until(lambda: bench.latest()["b.jsonl"] == 3)

    bench.run(scenario)


def test_a_root_may_appear_late(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "late" / "root")

    async def scenario() -> None:
        await bench.until(lambda: bench.watcher.status().roots[0].state == "missing")
        _write(tmp_path / "late" / "root" / "a.jsonl")
        await bench.until(lambda: bench.latest() == {"a.jsonl": 1})

    bench.run(scenario)


def _deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """watchdog goes on, but nothing it says about paths arrives."""
    monkeypatch.setattr(Hint, "note", lambda *_, **__: None)


def test_an_overflow_that_is_only_logged_leads_to_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a.jsonl", "1")
    bench = Bench(tmp_path)

    async def scenario() -> None:
        await bench.watching()
        _deaf(monkeypatch)
        _write(tmp_path / "a.jsonl", "2", "a")
        _write(tmp_path / "new" / "b.jsonl", "1")
        await asyncio.sleep(0.3)
        assert bench.latest() == {"a.jsonl": 1}
        logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
        await bench.until(lambda: bench.latest() == {"a.jsonl": 2, "new/b.jsonl": 1})
        assert bench.watcher.status().losses >= 1

    bench.run(scenario)


def test_a_burst_is_told_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    expected = {f"p{n % 20}/{n}.jsonl": 1 for n in range(2000)}

    async def scenario() -> None:
        await bench.watching()
        for name in expected:
            _write(tmp_path / name)
        await bench.until(lambda: bench.latest() == expected)
        assert max(len(batch) for batch in bench.batches) <= room_module.BATCH_FILES_MAX

    bench.run(scenario)


def test_more_paths_than_are_kept_make_the_root_dirty() -> None:
    wakes: list[None] = []
    hint = Hint(lambda: wakes.append(None))
    try:
        for number in range(PATHS_MAX + 100):
            hint.note(0, f"/r/{number}", folder=False)
        hint.note(1, "/other/a", folder=True)
        taken = hint.take()
        assert (taken[0].files, taken[0].losses) == (set(), {"burst"})
        assert (taken[1].folders, taken[1].losses) == ({"/other/a"}, set())
        assert len(wakes) == 1
        assert hint.take() == {}
    finally:
        hint.close()


def test_a_handler_that_fails_does_not_make_the_room_deaf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a.jsonl", "1")
    bench = Bench(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    async def scenario() -> None:
        await bench.watching()
        with monkeypatch.context() as patch:
            patch.setattr(Hint, "note", broken)
            _write(tmp_path / "a.jsonl", "2", "a")
            await bench.until(lambda: bench.latest() == {"a.jsonl": 2})
            assert bench.watcher.status().losses >= 1
        _write(tmp_path / "a.jsonl", "3", "a")
        await bench.until(lambda: bench.latest() == {"a.jsonl": 3})

    bench.run(scenario)


@pytest.mark.parametrize("victim", ["observer", "emitter", "reader"])
def test_dead_threads_are_replaced(tmp_path: Path, victim: str) -> None:
    _write(tmp_path / "a.jsonl", "1")
    bench = Bench(tmp_path)

    async def scenario() -> None:
        await bench.watching()
        hint = bench.watcher._hint
        assert hint is not None
        observer = hint._observer
        assert observer is not None
        if victim == "observer":
            observer.stop()
        elif victim == "emitter":
            next(iter(observer.emitters)).stop()
        else:
            observer._inotify_fd.stop()  # type: ignore[attr-defined]
        _write(tmp_path / "a.jsonl", "2", "a")
        await bench.until(lambda: bench.latest() == {"a.jsonl": 2})
        await bench.until(lambda: hint.armed() == {0: True})
        await bench.until(lambda: bench.watcher.status().losses >= 1)
        losses = bench.watcher.status().losses
        await asyncio.sleep(0.5)
        _write(tmp_path / "a.jsonl", "3", "a")
        await bench.until(lambda: bench.latest() == {"a.jsonl": 3})
        assert bench.watcher.status().losses == losses

    bench.run(scenario)


def test_folders_without_a_watch_are_polled_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "seen" / "a.jsonl", "1")
    _write(tmp_path / "bare" / "b.jsonl", "1")
    bench = Bench(tmp_path)
    bare = str(tmp_path / "bare")
    real_note, real_watched = Hint.note, coverage.watched_folders
    identity = coverage.identity(bare)

    def note(self: Hint, index: int, path: str, *, folder: bool) -> None:
        if not path.startswith(bare):
            real_note(self, index, path, folder=folder)

    def watched() -> frozenset[tuple[int, int]] | None:
        return frozenset(w for w in real_watched() or () if w != identity)

    monkeypatch.setattr(Hint, "note", note)
    monkeypatch.setattr(coverage, "watched_folders", watched)
    monkeypatch.setattr(room_module, "COUNT_DELAY_S", 0.05)

    async def scenario() -> None:
        await bench.until(lambda: bench.watcher.status().covered == 2)
        status = bench.watcher.status()
        assert status.folders == 3
        await bench.until(lambda: bool(bench.faults and bench.faults[-1]))
        (fault,) = bench.faults[-1]
        assert fault.code in {"inotify-limit", "watch-degraded"}
        assert fault.text.startswith("1 of 3 folders")
        _write(tmp_path / "bare" / "b.jsonl", "2", "a")
        _write(tmp_path / "bare" / "deep" / "er" / "c.jsonl", "1")
        await bench.until(
            lambda: (
                bench.latest() == {"seen/a.jsonl": 1, "bare/b.jsonl": 2, "bare/deep/er/c.jsonl": 1}
            )
        )
        # once more to watch them anew, then they are polled one by one
        assert bench.watcher.status().scans == 2

    bench.run(scenario)


def test_a_watch_that_got_lost_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "p" / "a.jsonl", "1")
    bench = Bench(tmp_path)
    monkeypatch.setattr(room_module, "COUNT_DELAY_S", 0.05)

    async def scenario() -> None:
        await bench.watching()
        hint = bench.watcher._hint
        assert hint is not None
        assert hint._observer is not None
        (emitter,) = hint._observer.emitters
        group = emitter._inotify  # type: ignore[attr-defined]
        lost = group._active_callbacks_by_path[os.fsencode(tmp_path / "p")]
        group._remove_callbacks([lost])
        assert coverage.identity(str(tmp_path / "p")) not in (coverage.watched_folders() or ())
        (tmp_path / "q").mkdir()  # folders appearing are what makes the room count
        await bench.until(lambda: bench.watcher.status().scans == 2)
        await bench.until(lambda: bench.watcher._places[0].count_at is None)
        assert coverage.identity(str(tmp_path / "p")) in (coverage.watched_folders() or ())
        assert bench.watcher.status().covered == 3
        assert bench.faults == []

    bench.run(scenario)


def test_a_restart_tells_only_what_changed_meanwhile(tmp_path: Path) -> None:
    for name in "abc":
        _write(tmp_path / f"{name}.jsonl", "1")
    first = Bench(tmp_path)
    first.run(first.watching)
    assert set(first.latest()) == {"a.jsonl", "b.jsonl", "c.jsonl"}
    _write(tmp_path / "b.jsonl", "2", "a")
    _write(tmp_path / "d.jsonl", "1")
    second = Bench(tmp_path, known={s.path: signature(s) for s in first.told})

    async def scenario() -> None:
        await second.until(lambda: second.latest() == {"b.jsonl": 2, "d.jsonl": 1})
        await second.watching()
        assert len(second.told) == 2

    second.run(scenario)


def test_a_newer_change_overtakes_what_still_waits(tmp_path: Path) -> None:
    for number in range(200):
        _write(tmp_path / f"old{number}.jsonl")
        os.utime(tmp_path / f"old{number}.jsonl", (number, number))
    bench = Bench(tmp_path)

    async def scenario() -> None:
        first, go = asyncio.Event(), asyncio.Event()

        async def hold(_: list[FileState]) -> None:
            first.set()
            await go.wait()

        bench.before = hold
        await first.wait()
        _write(tmp_path / "new.jsonl")
        await bench.until(lambda: bench.watcher.status().pending == 201)
        go.set()
        await bench.until(lambda: len(bench.told) == 201)
        assert bench.batches[1][0] == "new.jsonl"
        assert bench.batches[0] == [f"old{n}.jsonl" for n in range(199, 135, -1)]

    bench.run(scenario)


def test_a_caller_that_fails_is_told_again_by_the_next_run(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl")
    bench = Bench(tmp_path)

    async def refuse(_: list[FileState]) -> None:
        raise KeyError("the caller's own")

    async def forever() -> None:
        await asyncio.Event().wait()

    bench.before = refuse
    with pytest.raises(KeyError):
        bench.run(forever)
    assert bench.told == []
    bench.before = None
    bench.run(lambda: bench.until(lambda: bench.latest() == {"a.jsonl": 1}))


def test_a_file_at_rest_is_quiet_once_and_again_after_a_change(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl", "1")
    bench = Bench(tmp_path, quiet_s=0.3)

    async def scenario() -> None:
        await bench.until(lambda: [s.size for s in bench.quiet] == [1])
        await asyncio.sleep(0.5)
        _write(tmp_path / "a.jsonl", "2", "a")
        await bench.until(lambda: [s.size for s in bench.quiet] == [1, 2])

    bench.run(scenario)


def test_while_paused_nothing_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl", "1")
    bench = Bench(tmp_path)

    async def scenario() -> None:
        await bench.watching()
        bench.watcher.pause()
        _write(tmp_path / "a.jsonl", "2", "a")
        await bench.until(lambda: bench.watcher.status().pending == 1)
        await asyncio.sleep(0.2)
        assert (bench.latest(), bench.watcher.status().paused) == ({"a.jsonl": 1}, True)
        bench.watcher.resume()
        await bench.until(lambda: bench.latest() == {"a.jsonl": 2})

    bench.run(scenario)


class SleepyClock(SystemClock):
    """Can pretend that the machine slept."""

    slept = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.slept


def test_waking_up_and_asking_both_lead_to_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a.jsonl", "1")
    clock = SleepyClock()
    bench = Bench(tmp_path, clock=clock)

    async def scenario() -> None:
        await bench.watching()
        _deaf(monkeypatch)
        _write(tmp_path / "a.jsonl", "2", "a")
        clock.slept = 600.0
        await bench.until(lambda: bench.latest() == {"a.jsonl": 2})
        _write(tmp_path / "a.jsonl", "3", "a")
        bench.watcher.rescan()
        await bench.until(lambda: bench.latest() == {"a.jsonl": 3})
        assert bench.watcher.status().scans == 3

    bench.run(scenario)


def test_scan_mode_and_network_file_systems_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "filesystem_of", lambda *_: "nfs4")
    for mode in ("scan", "auto"):
        folder = tmp_path / mode
        _write(folder / "a.jsonl", "1")
        settings = Watch(mode=mode, settle_ms=20, settle_ms_max=200, uncovered_interval_s=1)
        bench = Bench(folder, settings=settings)

        async def scenario(bench: Bench = bench, folder: Path = folder) -> None:
            await bench.watching()
            root = bench.watcher.status().roots[0]
            assert (root.state, root.filesystem, root.covered) == ("polling", "nfs4", 0)
            _write(folder / "a.jsonl", "2", "a")
            await bench.until(lambda: bench.latest() == {"a.jsonl": 2})

        bench.run(scenario)


def test_while_nothing_happens_nothing_is_scanned_or_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        _write(tmp_path / f"p{number}" / "a.jsonl")
    bench = Bench(tmp_path)
    monkeypatch.setattr(room_module, "COUNT_DELAY_S", 0.05)

    async def scenario() -> None:
        await bench.watching()
        await bench.until(lambda: all(spot.count_at is None for spot in bench.watcher._places))
        calls: list[str] = []
        real_do = bench.watcher._do

        async def counted(work: Callable[..., object], *args: object) -> object:
            calls.append(work.__name__)
            return await real_do(work, *args)

        monkeypatch.setattr(bench.watcher, "_do", counted)
        before = len(bench.told)
        await asyncio.sleep(1.0)
        assert set(calls) <= {"moved"}
        assert len(calls) <= 12  # one a tick, and ticks are 0.1 s here
        assert len(bench.told) == before

    bench.run(scenario)


def test_nested_roots_tell_each_file_once(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl")
    _write(tmp_path / "inner" / "b.jsonl")
    bench = Bench(tmp_path, tmp_path / "inner")

    async def scenario() -> None:
        await bench.until(lambda: bench.watcher.status().scans == 2)
        await bench.until(lambda: len(bench.told) == 2)
        _write(tmp_path / "inner" / "b.jsonl", "2", "a")
        await bench.until(lambda: len(bench.told) == 3)
        await asyncio.sleep(0.3)
        assert [(bench.name(s), s.root) for s in sorted(bench.told)] == [
            ("a.jsonl", 0),
            ("inner/b.jsonl", 1),
            ("inner/b.jsonl", 1),
        ]

    bench.run(scenario)


def test_a_tree_deeper_than_watchdog_can_walk_is_polled(tmp_path: Path) -> None:
    _write(tmp_path / "flat" / "a.jsonl", "1")
    deep = tmp_path / "deep"
    deep.mkdir()
    for _ in range(1200):  # its walk recurses, once a level
        deep /= "d"
        deep.mkdir()
    bench = Bench(tmp_path / "deep", tmp_path / "flat")

    async def scenario() -> None:
        await bench.watching()
        (deep / "b.jsonl").write_text("12")
        bench.watcher.rescan()  # its turn would come: a scan this deep is rare on purpose
        await bench.until(lambda: 2 in bench.latest().values())
        states = [root.state for root in bench.watcher.status().roots]
        _write(tmp_path / "flat" / "a.jsonl", "23", "a")
        await bench.until(lambda: 3 in bench.latest().values())
        assert states == ["polling", "watching"]
        assert [fault.code for fault in bench.faults[-1]] == ["watch-degraded"]

    try:
        bench.run(scenario)
    finally:  # what tidies up after tests recurses, too
        subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)


def test_losses_do_not_make_the_room_scan_all_the_time(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl")
    bench = Bench(tmp_path)

    async def scenario() -> None:
        await bench.watching()
        hint = bench.watcher._hint
        assert hint is not None
        for _ in range(30):
            hint.lost_everywhere("overflow")
            await asyncio.sleep(0.05)
        # 1.5 s of losses without end; the least pause between two scans is 1 s
        assert bench.watcher.status().losses > 5
        assert bench.watcher.status().scans <= 4

    bench.run(scenario)


def test_a_scan_of_a_missing_root_is_not_expensive(tmp_path: Path) -> None:
    (spot,) = places.places_for([Root(str(tmp_path / "no"), "test", expected=False)])
    assert places.survey(spot, None, 0.0, bool) is None
    assert (spot.state, spot.faults) == ("missing", {})


def test_a_cancellation_that_meets_a_hint_is_not_swallowed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def nothing(_: list[FileState]) -> None:
        return

    async def main() -> None:
        task = asyncio.create_task(bench.watcher.run(nothing))
        await bench.watching()
        bench.watcher._wake.set()  # both in one turn of the loop
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)

    for _ in range(3):
        asyncio.run(main())
