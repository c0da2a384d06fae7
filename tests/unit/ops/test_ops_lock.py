"""
The data directory's lock, across processes.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from imprintd.errors import ConfigError, Locked
from imprintd.ops.lock import DataLock, holder_of

HOLD = """
import sys, time
from pathlib import Path
from imprintd.ops.lock import DataLock
lock = DataLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def _holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_holds_it(tmp_path: Path) -> None:
    holder = _holder(tmp_path)
    try:
        with pytest.raises(Locked, match=f"process {holder.pid}$"):
            DataLock.acquire(tmp_path)
        assert holder_of(tmp_path) == f"process {holder.pid}"
    finally:
        holder.kill()
        holder.wait()


def test_a_killed_holder_leaves_it_free(tmp_path: Path) -> None:
    holder = _holder(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert holder_of(tmp_path) is None
    with DataLock.acquire(tmp_path) as lock:
        assert lock.held
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_the_same_process_cannot_take_it_twice(tmp_path: Path) -> None:
    with DataLock.acquire(tmp_path), pytest.raises(Locked):
        DataLock.acquire(tmp_path)
    with DataLock.acquire(tmp_path) as again:
        assert again.held
    assert not again.held


def test_folder_and_file_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with DataLock.acquire(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "lock").stat().st_mode) == 0o600


def test_an_own_folder_that_is_open_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with DataLock.acquire(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_shared_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(ConfigError, match="shared"):
        DataLock.acquire(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("text")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(ConfigError):
        DataLock.acquire(folder)
    assert precious.read_text() == "text"


def test_a_removed_file_does_not_let_two_in(tmp_path: Path) -> None:
    first = DataLock.acquire(tmp_path)
    (tmp_path / "lock").unlink()
    with DataLock.acquire(tmp_path) as second:  # the new file is the one that counts
        assert second.held
        with pytest.raises(Locked):
            DataLock.acquire(tmp_path)
    first.release()


def test_a_file_in_the_way_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(ConfigError):
        DataLock.acquire(tmp_path / "data")
