"""
A VFS that notes every write, can be made full, and can lose power.

It writes through to real files (readers see them as usual) and keeps a log.
`after_power_cut` rebuilds the files as a disk might hold them if the power
went at some point of that log: everything synced before, and of what was not
synced any part, whole writes or torn ones, in any order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import apsw

SECTOR = 512


@dataclass
class Disk:
    """What happened to the files, in order."""

    log: list[tuple[str, str, int, bytes]] = field(default_factory=list)
    bytes_written: int = 0
    room: int | None = None
    recording: bool = True

    def note(self, what: str, file: str, at: int = 0, data: bytes = b"") -> None:
        if self.recording:
            self.log.append((what, Path(file).name, at, data))


class NotingVfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self.disk = disk
        self.name = name
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - named by SQLite
        return _File(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - named by SQLite
        self.disk.note("delete", filename)
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary"
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - named by SQLite
        if self._disk.room is not None:
            self._disk.room -= len(data)
            if self._disk.room < 0:
                raise apsw.FullError("no room")
        self._disk.bytes_written += len(data)
        self._disk.note("write", self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - named by SQLite
        self._disk.note("truncate", self._name, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - named by SQLite
        self._disk.note("sync", self._name)
        super().xSync(flags)


def after_power_cut(disk: Disk, at: int, folder: Path, dice: random.Random) -> None:
    """Write the database files as they may be if power goes before entry `at` of the log."""
    durable: dict[str, bytearray] = {}
    pending: dict[str, list[tuple[str, int, bytes]]] = {}
    for what, name, offset, data in disk.log[:at]:
        if what == "sync":
            _apply(durable.setdefault(name, bytearray()), pending.pop(name, []))
        elif what == "delete":
            durable.pop(name, None)
            pending.pop(name, None)
        else:
            pending.setdefault(name, []).append((what, offset, data))
    for name, changes in pending.items():
        kept = [change for change in changes if dice.random() < 0.5]
        dice.shuffle(kept)
        torn = []
        for what, offset, data in kept:
            # a sector is written whole or not at all
            sectors = dice.randint(0, -(-len(data) // SECTOR))
            torn.append((what, offset, data[: sectors * SECTOR] if what == "write" else data))
        _apply(durable.setdefault(name, bytearray()), torn)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in durable.items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)


def _apply(content: bytearray, changes: list[tuple[str, int, bytes]]) -> None:
    for what, offset, data in changes:
        if what == "truncate":
            del content[offset:]
        else:
            if len(content) < offset:
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data
