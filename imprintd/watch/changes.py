"""
Which files differ from what was read, and in which order they are told.

The sync core of watching: no I/O and no clock, so that its promises can be
tested by themselves. A path moves from hinted (settling) to pending, in
flight, known, and once it has been still for a while, quiet.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from typing import NewType

from imprintd.watch.scan import FileState
from imprintd.watch.settle import Settle

Signature = tuple[int, int, int, int]
"""(st_dev, st_ino, size, mtime_ns): equal ones are not read again."""

WallNs = NewType("WallNs", int)


def signature(state: FileState) -> Signature:
    """What must differ for a file to count as changed."""
    return (state.device, state.inode, state.size, state.mtime_ns)


class Changes:
    """
    Files between "something happened" and "it was read".

    Args:
        known: What the caller has read, by path; it is copied. Files whose
            tail is still undecided are better left out: they are told again.
        settle_ms: A hinted file is looked at once quiet for this long,
        settle_ms_max: ... and at the latest after this.
        quiet_s: A file that was told and then unchanged this long is quiet.
    """

    def __init__(
        self,
        known: Mapping[str, Signature],
        *,
        settle_ms: int,
        settle_ms_max: int,
        quiet_s: float,
    ) -> None:
        self._known: dict[str, Signature] = dict(known)
        self._settle = Settle(settle_ms, settle_ms_max)
        self._settle_ns = settle_ms * 1_000_000
        self._settling_root: dict[str, int] = {}
        self._looking = 0
        self._pending: dict[str, FileState] = {}
        self._newest: list[tuple[int, str]] = []
        self._flying: dict[str, FileState] = {}
        self._quiet_s = quiet_s
        # one delay for all, so insertion order is order of time
        self._still: dict[str, tuple[float, int]] = {}

    @property
    def pending(self) -> int:
        """Files that wait to be told, those in the caller's hands included."""
        return len(self._pending) + len(self._flying)

    @property
    def settling(self) -> int:
        """Files that were hinted and are not quiet, or being looked at."""
        return len(self._settle) + self._looking

    def hinted(self, path: str, root: int, now: float) -> None:
        """A path may have changed just now."""
        self._settle.touch(path, now)
        self._settling_root[path] = root

    def due(self, now: float) -> list[tuple[str, int]]:
        """Paths (with roots) that have settled and must be looked at; end with `all_looked`."""
        paths = [(path, self._settling_root.pop(path)) for path in self._settle.ready(now)]
        self._looking = len(paths)
        return paths

    def all_looked(self) -> None:
        """What `due` gave out has been looked at, whatever was found."""
        self._looking = 0

    def found(self, state: FileState, now: float, wall_ns: WallNs) -> None:
        """A scan saw this file; one that changed within settle_ms settles first."""
        if self._is_told(state):
            return
        age_ns = abs(wall_ns - state.mtime_ns)  # a time just ahead is a coarse clock
        if age_ns < self._settle_ns:
            self.hinted(state.path, state.root, now)
        else:
            self.looked(state)

    def looked(self, state: FileState) -> None:
        """A settled file was looked at; if it differs it is to be told."""
        if self._is_told(state):
            return
        self._pending[state.path] = state
        heapq.heappush(self._newest, (-state.mtime_ns, state.path))
        self._still.pop(state.path, None)

    def take(self, count_max: int) -> list[FileState]:
        """Up to so many files to tell, newest first; answer with done or undone."""
        batch: list[FileState] = []
        while self._newest and len(batch) < count_max:
            newest, path = heapq.heappop(self._newest)
            state = self._pending.get(path)
            if state is None or state.mtime_ns != -newest:
                continue  # told already, or pushed again with a later time
            del self._pending[path]
            self._flying[path] = state
            batch.append(state)
        return batch

    def done(self, batch: Iterable[FileState], now: float) -> None:
        """The caller has taken these; wait for them to be quiet."""
        for state in batch:
            self._flying.pop(state.path, None)
            self._known[state.path] = signature(state)
            self._still.pop(state.path, None)
            self._still[state.path] = (now + self._quiet_s, state.root)

    def undone(self, batch: Iterable[FileState]) -> None:
        """The caller failed on these: they are pending again."""
        for state in batch:
            self._flying.pop(state.path, None)
            if state.path not in self._pending:
                self._pending[state.path] = state
                heapq.heappush(self._newest, (-state.mtime_ns, state.path))

    def still(self, now: float) -> list[tuple[str, int]]:
        """Paths (with roots) that were not told again for quiet_s; each comes once."""
        ready: list[tuple[str, int]] = []
        for path, (due, root) in self._still.items():
            if due > now:
                break
            ready.append((path, root))
        for path, _ in ready:
            del self._still[path]
        return ready

    def is_known(self, state: FileState) -> bool:
        """Whether the caller has taken exactly this state."""
        return self._known.get(state.path) == signature(state)

    def next_due(self) -> float | None:
        """When `due` or `still` has something to say, at the earliest."""
        times = [t for t in (self._settle.next_due(),) if t is not None]
        for when, _ in self._still.values():
            times.append(when)
            break
        return min(times, default=None)

    def prune(self, folder: str, present: Collection[str]) -> None:
        """
        Forget paths below a folder that a complete scan no longer saw.

        This bounds memory only: nothing learned is touched, and a file that
        comes back is told again.
        """
        prefix = folder.rstrip("/") + "/"
        gone = [path for path in self._known if path.startswith(prefix) and path not in present]
        for path in gone:
            del self._known[path]
            self._still.pop(path, None)

    def _is_told(self, state: FileState) -> bool:
        latest = self._pending.get(state.path) or self._flying.get(state.path)
        told = signature(latest) if latest else self._known.get(state.path)
        return told == signature(state)
