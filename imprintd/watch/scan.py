"""
Walk the roots and say what lies there: the truth behind every hint.

Only names and `lstat` are looked at, never content. Symbolic links are not
followed below a root, ignored folders are left out before descending, depth
is bounded by nothing but the file system, and a folder that cannot be read is
named and skipped.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final, NamedTuple

IGNORED_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".cache", ".Trash"}
)
"""Folders in which no client keeps transcripts and which can be huge."""

FAULTS_MAX: Final = 100
"""Unreadable folders that one scan names; the rest are counted only."""


class FileState(NamedTuple):
    """
    A regular file as it was last looked at.

    A tuple, because a scan makes one for each of many thousand files.

    Attributes:
        path: Absolute path, as text (surrogateescape).
        device: st_dev.
        inode: st_ino.
        size: Bytes.
        mtime_ns: Modification time, ns since the epoch.
        root: Index of the root it lies under.
    """

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    root: int


def _any_name(_name: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Root:
    """
    A folder to watch.

    Attributes:
        path: Absolute path; a symbolic link here is followed.
        client: The client whose transcripts lie in it.
        accept: Tells by a file's name whether it can be a transcript.
        ignored: Names of folders that are not descended into.
        expected: Whether its absence is worth a warning; a client that is not
            installed is not.
    """

    path: str
    client: str
    accept: Callable[[str], bool] = _any_name
    ignored: Collection[str] = IGNORED_FOLDERS
    expected: bool = True


@dataclass(frozen=True, slots=True)
class FolderFault:
    """A folder or file that could not be looked at, and why (errno's name)."""

    path: str
    reason: str


@dataclass(slots=True)
class Scan:
    """
    What one walk found.

    Attributes:
        files: Accepted regular files.
        folders: Every folder walked, with its (st_dev, st_ino).
        faults: At most FAULTS_MAX of the places that could not be read.
        faults_total: All of them.
        complete: False when the walk was asked to stop.
    """

    files: list[FileState] = field(default_factory=list)
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: list[FolderFault] = field(default_factory=list)
    faults_total: int = 0
    complete: bool = True

    def fault(self, path: str, error: OSError) -> None:
        """Name a place that could not be read."""
        self.faults_total += 1
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(FolderFault(path, reason_of(error)))


def reason_of(error: OSError) -> str:
    """A stable word for a system error; ENOSPC here never means disk space."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def look(path: str, root: int) -> FileState | None:
    """State of one regular file; None for anything else or nothing at all."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileState(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, root)


def scan(
    root: Root,
    index: int,
    *,
    start: str | None = None,
    others: Collection[str] = (),
    deep: bool = True,
    should_stop: Callable[[], bool] = bool,
) -> Scan:
    """
    Walk a root, or one folder in it.

    Args:
        root: The rules: which names, which folders.
        index: The root's number, for the files' states.
        start: Folder to begin at; None: the root's own path.
        others: Paths of further roots: what lies there is theirs.
        deep: False looks at the folder's own entries only; sub-folders then
            appear among the folders but are not entered.
        should_stop: Asked once a folder.
    """
    found = Scan()
    top = root.path if start is None else start
    try:
        info = Path(top).stat() if start is None else os.lstat(top)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            found.fault(top, error)
        return found
    if not stat.S_ISDIR(info.st_mode):
        if start is None:
            found.fault(top, NotADirectoryError(errno.ENOTDIR, "not a folder"))
        return found
    found.folders[top] = (info.st_dev, info.st_ino)
    pending = [top]
    while pending:
        if should_stop():
            found.complete = False
            break
        below = _one_folder(root, index, pending.pop(), found=found, others=others)
        if not deep:
            break
        pending.extend(below)
    return found


def _one_folder(
    root: Root,
    index: int,
    folder: str,
    *,
    found: Scan,
    others: Collection[str],
) -> list[str]:
    below: list[str] = []
    accept, ignored, files = root.accept, root.ignored, found.files
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name in ignored or entry.path in others:
                            continue
                        info = entry.stat(follow_symlinks=False)
                        found.folders[entry.path] = (info.st_dev, info.st_ino)
                        below.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) and accept(entry.name):
                        info = entry.stat(follow_symlinks=False)
                        files.append(
                            FileState(
                                entry.path,
                                info.st_dev,
                                info.st_ino,
                                info.st_size,
                                info.st_mtime_ns,
                                index,
                            )
                        )
                except FileNotFoundError:
                    continue  # gone between listing and looking: not an error
                except OSError as error:
                    found.fault(entry.path, error)
    except FileNotFoundError:
        found.folders.pop(folder, None)
    except OSError as error:
        # what cannot be listed cannot be watched either: it is a fault, no folder
        found.folders.pop(folder, None)
        found.fault(folder, error)
    return below


def is_ignored(root: Root, path: str) -> bool:
    """Whether a path lies in a folder of this root that is not descended into."""
    within = path.removeprefix(root.path)
    return any(part in root.ignored for part in PurePath(within).parts[:-1])
