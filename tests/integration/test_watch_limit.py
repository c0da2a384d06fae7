"""
The kernel's limit of watches, reached for real inside a user namespace.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import asyncio, json, random, sys
from pathlib import Path
from imprintd.clock import SystemClock
from imprintd.config import Watch
from imprintd.watch import room
from imprintd.watch.room import Watcher
from imprintd.watch.scan import Root

room.COUNT_DELAY_S = 0.05
base = Path(sys.argv[1])
sizes = {}

async def changed(files):
    for state in files:
        sizes[state.path] = state.size

async def until(is_so):
    for _ in range(1500):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise SystemExit(f"it never came to be: {watcher.status()} {sizes}")

settings = Watch(settle_ms=20, settle_ms_max=200, uncovered_interval_s=1)
watcher = Watcher([Root(str(base), "test")], settings, SystemClock(), random.Random(1), tick_s=0.2)

async def main():
    task = asyncio.create_task(watcher.run(changed))
    await until(lambda: len(sizes) == 60)
    await until(lambda: watcher.status().faults)
    for folder in base.iterdir():
        with (folder / "a").open("a") as stream:
            stream.write("more")
    await until(lambda: set(sizes.values()) == {5})
    status = watcher.status()
    task.cancel()
    print(json.dumps({
        "state": status.roots[0].state,
        "folders": status.folders,
        "covered": status.covered,
        "faults": [[f.code, f.text, f.remedy] for f in status.faults],
    }))

asyncio.run(main())
"""


def _run(base: Path, watches: int) -> dict[str, Any]:
    for number in range(60):
        (base / str(number)).mkdir(parents=True)
        (base / str(number) / "a").write_text("x")
    limit = f"echo {watches} > /proc/sys/user/max_inotify_watches"
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    allowed = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", limit], check=False, capture_output=True
    )
    if allowed.returncode:
        pytest.skip("no user namespaces here")
    script = f'{limit} && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, sys.executable, PROGRAM, str(base)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def test_beyond_the_limit_folders_are_polled_and_the_remedy_is_named(tmp_path: Path) -> None:
    shown = _run(tmp_path, 40)
    assert (shown["state"], shown["folders"], shown["covered"]) == ("watching", 61, 40)
    text = (
        "21 of 61 folders have no watch of their own and are polled;"
        " the limit is 40 watches for all programs of this user"
    )
    remedy = (
        "echo user.max_inotify_watches=8192"
        " | sudo tee /etc/sysctl.d/90-imprintd.conf && sudo sysctl --system"
    )
    assert shown["faults"] == [["inotify-limit", text, remedy]]


def test_without_any_watch_the_whole_root_is_polled(tmp_path: Path) -> None:
    shown = _run(tmp_path, 0)
    assert (shown["state"], shown["folders"], shown["covered"]) == ("polling", 61, 0)
    text = "the limit of 0 inotify watches is reached"
    assert [fault[:2] for fault in shown["faults"]] == [["inotify-limit", text]]
