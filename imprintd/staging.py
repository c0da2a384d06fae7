"""
Frames of transfers under way, as files, until their version is published.

A folder for each transfer, a file for each item, 0600 in 0700, written beside
and renamed. Nothing here is believed when it is read again: whoever puts a
version together checks digests and roots. So nothing needs to be synced to
the disk either; what a power cut takes is asked for once more.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from imprintd.errors import ResourceError

FOLDER: Final = "staging"
KEEP_S: Final = 24 * 3600.0
BYTES_MAX: Final = 1024 * 1024 * 1024
"""All transfers together; more is refused until something is published."""


class StagingFull(ResourceError):
    """The staging area holds as much as it may."""

    code = "quota"


class Staging:
    """
    The staging area of a data directory.

    Args:
        data_dir: Where its folder lies.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self._bytes = sum(file.stat().st_size for file in self._folder.glob("*/*"))

    @property
    def size(self) -> int:
        """Bytes staged."""
        return self._bytes

    def put(self, transfer: bytes, item: int, data: bytes) -> None:
        """
        Keep an item.

        Raises:
            StagingFull: Too much is staged already.
            ResourceError: It cannot be written.
        """
        if self._bytes + len(data) > BYTES_MAX:
            raise StagingFull(
                "the staging area is full", remedy="wait for transfers to end or to expire"
            )
        folder = self._folder / transfer.hex()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            target = folder / str(item)
            beside = folder / f"{item}.new"
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            before = target.stat().st_size if target.exists() else 0
            beside.rename(target)
        except OSError as error:
            raise ResourceError(f"staging: {error.strerror}", remedy="free some disk") from None
        self._bytes += len(data) - before

    def get(self, transfer: bytes, item: int) -> bytes | None:
        """What was kept under an item, None if nothing was."""
        try:
            return (self._folder / transfer.hex() / str(item)).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResourceError(f"staging: {error.strerror}") from None

    def items(self, transfer: bytes) -> list[int]:
        """Items kept of a transfer, rising."""
        try:
            names = [file.name for file in (self._folder / transfer.hex()).iterdir()]
        except OSError:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    def drop(self, transfer: bytes) -> None:
        """Forget a transfer."""
        self._drop(self._folder / transfer.hex())

    def expire(self, now_s: float) -> int:
        """Forget transfers that were not touched for a day; returns how many."""
        old = [
            folder for folder in self._folder.glob("*") if folder.stat().st_mtime < now_s - KEEP_S
        ]
        for folder in old:
            self._drop(folder)
        return len(old)

    def _drop(self, folder: Path) -> None:
        self._bytes -= sum(file.stat().st_size for file in folder.glob("*"))
        shutil.rmtree(folder, ignore_errors=True)
