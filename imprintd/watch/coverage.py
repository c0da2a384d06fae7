"""
Are we deaf? What the system says about the watches we believe to have.

Native watching fails in silence: folders beyond the kernel's limit, a root
that was deleted and made again, a machine that slept, a network file system.
The functions here read the evidence; parsers are pure and take text.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from imprintd.clock import Clock

NETWORK_TYPES: Final = frozenset(
    {
        "9p", "afs", "ceph", "cifs", "drvfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
        "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "v9fs", "vboxsf", "virtiofs",
        "vmhgfs",
    }
)  # fmt: skip
"""File systems whose changes can be made elsewhere, where no watch sees them."""

SUSPEND_GAP_S: Final = 2.0
"""Boot time running ahead of monotonic time by this much: the machine slept."""

FaultCode = Literal["watch-degraded", "inotify-limit", "source-missing", "source-unreadable"]


@dataclass(frozen=True, slots=True)
class Fault:
    """
    Something that makes watching less than it should be.

    Attributes:
        code: The warning's code.
        root: Path of the root it concerns; empty: all of them.
        text: What is wrong, with numbers.
        remedy: What the user can do, a command where there is one.
    """

    code: FaultCode
    root: str
    text: str
    remedy: str = ""


_INOTIFY = re.compile(r"^inotify wd:[0-9a-f]+ ino:([0-9a-f]+) sdev:([0-9a-f]+) ", re.MULTILINE)


def parse_fdinfo(text: str) -> list[tuple[int, int]]:
    """
    (st_dev, st_ino) of every watch that one `/proc/self/fdinfo/N` lists.

    The kernel prints its own form of the device: 12 bits major, 20 minor.
    """
    return [
        (os.makedev(int(sdev, 16) >> 20, int(sdev, 16) & 0xFFFFF), int(ino, 16))
        for ino, sdev in _INOTIFY.findall(text)
    ]


def watched_folders(proc: str = "/proc/self") -> frozenset[tuple[int, int]] | None:
    """
    (st_dev, st_ino) of all that this process watches with inotify.

    None where the system does not tell (no /proc).
    """
    watched: set[tuple[int, int]] = set()
    try:
        links = list(Path(proc, "fd").iterdir())
    except OSError:
        return None
    for link in links:
        try:
            if "inotify" in str(link.readlink()):
                info = Path(proc, "fdinfo", link.name)
                watched.update(parse_fdinfo(info.read_text("ascii", "replace")))
        except OSError:
            continue
    return frozenset(watched)


def uncovered(
    folders: Mapping[str, tuple[int, int]], watched: Collection[tuple[int, int]]
) -> list[str]:
    """
    Folders that no watch belongs to, in the order given.

    Some file systems (btrfs, overlay) show programs another device number
    than the kernel uses; where a device has no watch at all, inodes decide.
    """
    known = watched if isinstance(watched, (set, frozenset)) else set(watched)
    devices = {device for device, _ in known}
    inodes = {inode for _, inode in known}
    return [
        path
        for path, (device, inode) in folders.items()
        if (device, inode) not in known and (device in devices or inode not in inodes)
    ]


def parse_mounts(text: str) -> list[tuple[str, str]]:
    """(mount point, type) for each line of /proc/mounts, octal escapes undone."""
    mounts = []
    for line in text.splitlines():
        parts = line.split(" ")
        if len(parts) >= 3:
            point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), parts[1])
            mounts.append((point, parts[2]))
    return mounts


def filesystem_of(path: str, mounts: Iterable[tuple[str, str]]) -> str:
    """Type of the file system a path lies on; the last of equal mounts wins."""
    best, kind = -1, ""
    for point, name in mounts:
        prefix = point.rstrip("/") + "/"
        if (path + "/").startswith(prefix) and len(prefix) >= best:
            best, kind = len(prefix), name
    return kind


def is_remote(kind: str) -> bool:
    """Whether changes on such a file system can escape native watching."""
    return kind in NETWORK_TYPES or kind.startswith("fuse")


def mounts_now(file: str = "/proc/mounts") -> list[tuple[str, str]]:
    """Mounts of this machine; empty where the system does not tell."""
    try:
        return parse_mounts(Path(file).read_text("utf-8", "surrogateescape"))
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the kernel's: its name for sysctl, and its value."""

    name: str
    value: int

    def remedy(self, needed: int) -> str:
        """
        The command that raises it, with a number that will do.

        The number is a power of two that leaves as much again for other
        programs, and at least twice what the limit is now.
        """
        wanted = 1 << max(13, (2 * max(needed, self.value) - 1).bit_length())
        return (
            f"echo {self.name}={wanted}"
            " | sudo tee /etc/sysctl.d/90-imprintd.conf && sudo sysctl --system"
        )


def watch_limit() -> Limit | None:
    """How many inotify watches this user may have; None where it is not told."""
    # containers can be held to less by the second one
    return _least("fs.inotify.max_user_watches", "user.max_inotify_watches")


def instance_limit() -> Limit | None:
    """How many inotify instances this user may have; None where it is not told."""
    return _least("fs.inotify.max_user_instances", "user.max_inotify_instances")


def _least(*names: str) -> Limit | None:
    found = []
    for name in names:
        try:
            text = Path("/proc/sys", name.replace(".", "/")).read_text("ascii")
            found.append(Limit(name, int(text)))
        except (OSError, ValueError):
            continue
    return min(found, key=lambda limit: limit.value, default=None)


def limit_fault(folders: int, covered: int, limit: Limit | None) -> Fault:
    """Say that some folders have no watch, and why if it can be told."""
    bare = folders - covered
    text = f"{bare} of {folders} folders have no watch of their own and are polled"
    if limit is None:
        return Fault("watch-degraded", "", text)
    return Fault(
        "inotify-limit",
        "",
        f"{text}; the limit is {limit.value} watches for all programs of this user",
        limit.remedy(folders),
    )


def explain(error: BaseException) -> tuple[str, str]:
    """Message and remedy for a watch that could not be made; errnos translated."""
    number = getattr(error, "errno", None)
    for code, limit, what in (
        (errno.ENOSPC, watch_limit(), "watches"),  # the kernel's word for it
        (errno.EMFILE, instance_limit(), "instances (or of open files)"),
    ):
        if number == code and limit is not None:
            message = f"the limit of {limit.value} inotify {what} is reached"
            return message, limit.remedy(limit.value)
        if number == code:
            return f"the system's limit of inotify {what} is reached", ""
    if isinstance(number, int):
        return f"it cannot be watched: {os.strerror(number)}", ""
    return f"it cannot be watched: {type(error).__name__}", ""


def identity(path: str) -> tuple[int, int] | None:
    """(st_dev, st_ino) of a root as it is now; None: there is no such folder."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


class SuspendGap:
    """Notices that the machine slept: boot time runs on, monotonic time does not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.boottime() - clock.monotonic()

    def slept_s(self) -> float:
        """Seconds slept since the last call; 0 when it was not noticeable."""
        offset = self._clock.boottime() - self._clock.monotonic()
        gap, self._offset = offset - self._offset, offset
        return gap if gap >= SUSPEND_GAP_S else 0.0
