"""
The status socket itself: where it may lie, who may bind it, who may connect.

Only the holder of the data directory's lock binds, and only it may remove what
a dead process left there; a file that is no socket, or a socket that answers,
is never removed.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Final

from imprintd.errors import ConfigError
from imprintd.ops.lock import DataLock

PATH_BYTES_MAX: Final = 107 if sys.platform == "linux" else 103
"""What fits into a socket address; longer paths fail in confusing ways."""

BACKLOG: Final = 64


def bind(path: Path, lock: DataLock) -> socket.socket:
    """
    A listening socket at a path, mode 0600, in a folder that is made 0700.

    Args:
        path: Where.
        lock: Proof that this process owns the data directory.

    Raises:
        ConfigError: The path is too long, taken by something else, or its
            folder is not safe.
    """
    check_length(path)
    if not lock.held:
        raise ConfigError("the status socket needs the data directory's lock")
    try:
        _check_folder(path.parent)
        _remove_stale(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(path))
            # nobody can connect before listen(), so this is early enough, and
            # unlike a umask it does not touch what other threads create
            path.chmod(0o600)
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"the status socket {path} cannot be made: {error.strerror}",
            remedy="set [ops] socket to a path in a folder of your own",
        ) from error
    return listening


def check_length(path: Path) -> None:
    """
    Refuse a path that no socket address can hold.

    Raises:
        ConfigError: It is longer than PATH_BYTES_MAX.
    """
    size = len(os.fsencode(path))
    if size > PATH_BYTES_MAX:
        raise ConfigError(
            f"the status socket's path has {size} bytes and {PATH_BYTES_MAX} are possible: {path}",
            remedy="set [ops] socket to a shorter path",
        )


def remove_own(path: Path, identity: tuple[int, int] | None) -> None:
    """Remove the socket if it is still the one that was bound here."""
    if identity is not None and socket_identity(path) == identity:
        path.unlink(missing_ok=True)


def socket_identity(path: Path) -> tuple[int, int] | None:
    """(st_dev, st_ino) of the socket at a path; None: there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


def peer_uid(connection: socket.socket) -> int | None:
    """User id of the process at the other end; None where it is not told."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            size = struct.calcsize("3i")
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            return int(struct.unpack("3i", raw)[1])
        # macOS: LOCAL_PEERCRED at level SOL_LOCAL, struct xucred
        raw = connection.getsockopt(0, 1, 76)
        return int(struct.unpack_from("=II", raw)[1])
    except (OSError, struct.error):
        return None


def is_allowed(uid: int | None, own_uid: int) -> bool:
    """Whether a peer may talk to us: the same user, or root. Unknown is refused."""
    return uid is not None and uid in {own_uid, 0}


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared and not found.st_mode & stat.S_ISVTX:
        raise ConfigError(
            f"others may write to {folder}, where the status socket would lie",
            remedy=f"chmod 700 {folder}",
        )


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(
            f"{path} exists and is not a socket; it is left alone",
            remedy="move it away or set [ops] socket to another path",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except FileNotFoundError:
            return
        except OSError:  # alive but overrun
            pass
    raise ConfigError(
        f"another process serves at {path}",
        remedy="give each data directory its own [ops] socket",
    )
