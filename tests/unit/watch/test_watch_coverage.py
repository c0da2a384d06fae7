"""
Reading the system's evidence: watches, mounts, limits, sleep.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.clock import ManualClock
from imprintd.watch import coverage

FDINFO = """pos:\t0
flags:\t00
mnt_id:\t15
ino:\t1057
inotify wd:3 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1
inotify wd:2 ino:a111 sdev:fe00001 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1
"""

MOUNTS = """/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /home/me/far\\040away nfs4 rw 0 0
/dev/sdb /home ext4 rw 0 0
C: /mnt/c 9p rw 0 0
tmpfs /mnt tmpfs rw 0 0
host /srv/x fuse.sshfs rw 0 0
broken
/dev/vdb / xfs rw 0 0
"""


def test_watches_are_read_with_their_devices() -> None:
    assert coverage.parse_fdinfo(FDINFO) == [
        (os.makedev(8, 0x13), 0x9E7E),
        (os.makedev(0xFE, 1), 0xA111),
    ]


@given(st.text(max_size=300))
def test_any_fdinfo_can_be_read(text: str) -> None:
    assert isinstance(coverage.parse_fdinfo(text), list)


def test_folders_without_a_watch_are_found() -> None:
    folders = {"/a": (1, 10), "/a/b": (1, 11), "/a/c": (1, 12)}
    assert coverage.uncovered(folders, {(1, 10), (1, 12)}) == ["/a/b"]
    assert coverage.uncovered(folders, frozenset()) == ["/a", "/a/b", "/a/c"]
    assert coverage.uncovered(folders, list(folders.values())) == []


def test_the_same_inode_on_another_device_does_not_count() -> None:
    assert coverage.uncovered({"/a": (1, 10), "/b": (2, 11)}, {(1, 11), (2, 10)}) == ["/a", "/b"]


def test_inodes_decide_where_the_kernel_names_another_device() -> None:
    # as on btrfs: stat says 7, the kernel says 3
    assert coverage.uncovered({"/a": (7, 10), "/b": (7, 11)}, {(3, 10)}) == ["/b"]


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/etc", "xfs", False),
        ("/home/me/x", "ext4", False),
        ("/home/me/far away/x", "nfs4", True),
        ("/home/me/far awayx", "ext4", False),
        ("/mnt/c/Users", "9p", True),
        ("/mnt/d", "tmpfs", False),
        ("/srv/x", "fuse.sshfs", True),
        ("/proc/1", "proc", False),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str, remote: bool) -> None:
    assert coverage.filesystem_of(path, coverage.parse_mounts(MOUNTS)) == kind
    assert coverage.is_remote(kind) is remote


def test_no_mounts_means_no_answer() -> None:
    assert coverage.filesystem_of("/x", []) == ""
    assert coverage.mounts_now("/nowhere") == []
    assert not coverage.is_remote("")


@pytest.mark.parametrize(
    ("needed", "value", "number"),
    [(100, 8192, 16_384), (9000, 8192, 32_768), (9000, 5, 32_768), (1, 0, 8192)],
)
def test_the_remedy_holds_a_number_that_will_do(needed: int, value: int, number: int) -> None:
    limit = coverage.Limit("fs.inotify.max_user_watches", value)
    assert limit.remedy(needed) == (
        f"echo fs.inotify.max_user_watches={number}"
        " | sudo tee /etc/sysctl.d/90-imprintd.conf && sudo sysctl --system"
    )


@given(st.integers(1, 10**7), st.integers(0, 10**7))
def test_the_number_always_leaves_room(needed: int, value: int) -> None:
    number = int(coverage.Limit("x", value).remedy(needed).split("=")[1].split()[0])
    assert number >= 2 * max(needed, value)


def test_a_limit_fault_has_the_numbers() -> None:
    fault = coverage.limit_fault(61, 40, coverage.Limit("user.max_inotify_watches", 40))
    assert fault.code == "inotify-limit"
    assert fault.text == (
        "21 of 61 folders have no watch of their own and are polled;"
        " the limit is 40 watches for all programs of this user"
    )
    assert "user.max_inotify_watches=8192" in fault.remedy
    assert coverage.limit_fault(61, 40, None) == coverage.Fault(
        "watch-degraded", "", "21 of 61 folders have no watch of their own and are polled"
    )


def test_errors_are_put_in_words_that_help() -> None:
    message, remedy = coverage.explain(OSError(errno.ENOSPC, "No space left on device"))
    assert "inotify watches" in message
    assert "space" not in message
    assert "inotify_watches=" in remedy or "max_user_watches=" in remedy
    message, remedy = coverage.explain(OSError(errno.EMFILE, "Too many open files"))
    assert "instances=" in remedy
    assert coverage.explain(PermissionError(errno.EACCES, "x"))[0].endswith("Permission denied")
    assert coverage.explain(RecursionError())[0].endswith("RecursionError")


def test_identity_is_of_folders_only(tmp_path: Path) -> None:
    found = tmp_path.stat()
    assert coverage.identity(str(tmp_path)) == (found.st_dev, found.st_ino)
    (tmp_path / "file").write_text("")
    assert coverage.identity(str(tmp_path / "file")) is None
    assert coverage.identity(str(tmp_path / "absent")) is None
    assert coverage.identity("nul\0byte") is None


def test_this_system_tells_its_own_watches() -> None:
    watched = coverage.watched_folders()
    assert watched is None or isinstance(watched, frozenset)
    assert coverage.watched_folders("/nowhere") is None


class SleepyClock(ManualClock):
    """Boot time runs on while monotonic time stands still."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    def boottime(self) -> float:
        return super().boottime() + self.slept


def test_sleep_is_noticed_once() -> None:
    clock = SleepyClock()
    gap = coverage.SuspendGap(clock)
    clock.advance(3600)
    assert gap.slept_s() == 0
    clock.slept += 1800
    assert gap.slept_s() == 1800
    assert gap.slept_s() == 0
    clock.slept += 0.5  # rounding of two clocks is not sleep
    assert gap.slept_s() == 0
