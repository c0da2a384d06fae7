"""
Random lives of a folder: whatever happened, in the end the caller knows it all.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
from pathlib import Path

import pytest

from imprintd.clock import SystemClock
from imprintd.config import Watch
from imprintd.watch import coverage
from imprintd.watch.changes import Signature, signature
from imprintd.watch.hint import Hint
from imprintd.watch.room import Watcher
from imprintd.watch.scan import FileState, Root, scan

pytestmark = pytest.mark.skipif(
    coverage.watched_folders() is None, reason="these need inotify and /proc"
)


class Life:
    """Does random things to a folder."""

    def __init__(self, base: Path, rng: random.Random) -> None:
        self.base = base
        self.root = base / "root"
        self.outside = base / "outside"
        self.rng = rng
        self.root.mkdir()
        self.outside.mkdir()
        self._serial = 0

    def step(self) -> None:
        acts = [
            *([self.append] * 8),
            *([self.create] * 4),
            self.replace,
            self.rename,
            self.remove,
            self.truncate,
            self.grow_tree,
            self.move_folder,
            self.move_out,
            self.move_in,
            self.drop_folder,
        ]
        self.rng.choice(acts)()

    def _name(self) -> str:
        self._serial += 1
        return f"n{self._serial}"

    def _folders(self, top: Path) -> list[Path]:
        return [Path(folder) for folder, _, _ in os.walk(top)]

    def _folder(self) -> Path:
        return self.rng.choice(self._folders(self.root))

    def _file(self) -> Path | None:
        files = sorted(self.root.rglob("*.jsonl"))
        return self.rng.choice(files) if files else None

    def create(self) -> None:
        (self._folder() / f"{self._name()}.jsonl").write_text("x" * self.rng.randrange(50))

    def append(self) -> None:
        if file := self._file():
            with file.open("a") as stream:
                stream.write("y" * self.rng.randrange(1, 50))

    def truncate(self) -> None:
        if file := self._file():
            file.write_text("")

    def replace(self) -> None:
        if file := self._file():
            fresh = self.rng.choice([file.parent, self.outside]) / "fresh.tmp"
            fresh.write_text("z" * self.rng.randrange(50))
            fresh.replace(file)

    def rename(self) -> None:
        if file := self._file():
            file.rename(self._folder() / f"{self._name()}.jsonl")

    def remove(self) -> None:
        if file := self._file():
            file.unlink()

    def grow_tree(self) -> None:
        deep = self._folder() / self._name() / self._name() / self._name()
        deep.mkdir(parents=True)
        (deep / "a.jsonl").write_text("deep")

    def move_folder(self) -> None:
        source, target = self._folder(), self._folder()
        if source != self.root and not target.is_relative_to(source):
            source.rename(target / self._name())

    def move_out(self) -> None:
        folder = self._folder()
        if folder != self.root:
            folder.rename(self.outside / self._name())

    def move_in(self) -> None:
        folder = self.rng.choice(self._folders(self.outside))
        if folder != self.outside:
            folder.rename(self._folder() / self._name())

    def drop_folder(self) -> None:
        folder = self._folder()
        if folder == self.root:
            if self.rng.random() < 0.3:
                shutil.rmtree(self.root)
                self.root.mkdir()
        else:
            shutil.rmtree(folder)


async def _live(base: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    life = Life(base, rng)
    told: dict[str, Signature] = {}

    async def changed(files: list[FileState]) -> None:
        await asyncio.sleep(rng.random() * 0.02)
        told.update({state.path: signature(state) for state in files})

    root = Root(str(life.root), "test", lambda name: name.endswith(".jsonl"))
    settings = Watch(settle_ms=20, settle_ms_max=100, uncovered_interval_s=1)
    watcher = Watcher([root], settings, SystemClock(), rng, tick_s=0.2)
    task = asyncio.create_task(watcher.run(changed))
    for _ in range(rng.randrange(100, 300)):
        life.step()
        if rng.random() < 0.1:
            await asyncio.sleep(rng.random() * 0.1)
        if rng.random() < 0.02:  # a while of deafness, and the one sign of it
            with monkeypatch.context() as patch:
                patch.setattr(Hint, "note", lambda *_, **__: None)
                for _ in range(10):
                    life.step()
                await asyncio.sleep(0.05)
            logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
    missing: dict[str, Signature] = {}
    for _ in range(1000):
        disk = {state.path: signature(state) for state in scan(root, 0).files}
        missing = {path: sign for path, sign in disk.items() if told.get(path) != sign}
        status = watcher.status()
        if not missing and status.roots[0].state == "watching":
            break
        assert not task.done()
        await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert missing == {}, f"seed {seed}: {status}"


@pytest.mark.parametrize("seed", range(4))
def test_in_the_end_everything_was_told(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_live(tmp_path, seed, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_in_the_end_everything_was_told_many_times(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_live(tmp_path, seed, monkeypatch))
