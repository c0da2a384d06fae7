"""
One daemon for each data directory: a lock of the kernel's, held for life.

`flock` on `<data_dir>/lock`. The kernel frees it however the process ends, so
there is no stale lock and no guessing by process number or age; the number in
the file is for people.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from imprintd.errors import ConfigError, Locked


class DataLock:
    """
    Ownership of a data directory until released or the process ends.

    Get one with `acquire`; also a context manager.
    """

    def __init__(self, data_dir: Path, descriptor: int) -> None:
        self.data_dir = data_dir
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, data_dir: Path) -> DataLock:
        """
        Take the lock without waiting; makes the folder (0700) when needed.

        Raises:
            Locked: Another process holds it; the message names it.
            ConfigError: The folder or the file cannot be made.
        """
        path = data_dir / "lock"
        try:
            private_folder(data_dir)
            while True:
                descriptor = _open(path)
                if not _locked(descriptor):
                    holder = _holder(descriptor)
                    os.close(descriptor)
                    raise Locked(
                        f"{data_dir} is in use by {holder}",
                        remedy="use the running daemon, or stop it first",
                    )
                if _is_still(path, descriptor):
                    break
                # somebody removed the file meanwhile: what we hold is nothing
                os.close(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be used: {error.strerror}",
                remedy="choose another --data-dir or mend its permissions",
            ) from error
        return cls(data_dir, descriptor)

    @property
    def held(self) -> bool:
        """Whether it has not been released yet."""
        return self._descriptor >= 0

    def release(self) -> None:
        """Give the lock up; the file stays (removing it would be a race)."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def private_folder(path: Path) -> None:
    """
    Make a folder that only its owner can enter, or make an own one so.

    Raises:
        ConfigError: It is a shared place such as /tmp, or another user's.
        OSError: It cannot be made or looked at.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_mode & stat.S_ISVTX or found.st_uid not in {os.geteuid(), 0}:
        raise ConfigError(
            f"{path} is shared with other users",
            remedy="choose a folder of your own for --data-dir",
        )
    if found.st_uid == os.geteuid() and found.st_mode & 0o077:
        path.chmod(0o700)


def holder_of(data_dir: Path) -> str | None:
    """Who holds the lock right now, in words; None: nobody. Never waits."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # shared, so that two who ask do not take each other for the holder
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _open(path: Path) -> int:
    # NOFOLLOW: a link here would let somebody truncate another file
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return f"process {text}" if text.isdigit() else "another process"
