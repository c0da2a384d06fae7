"""
One root as it is being watched: its state, and the blocking work on it.

Everything here runs in the watch room's own thread, one call at a time; the
room decides when. A place knows its folders, which of them have no watch, and
what is wrong with it.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from imprintd.errors import ResourceError
from imprintd.watch import coverage
from imprintd.watch.coverage import Fault
from imprintd.watch.hint import Hint
from imprintd.watch.scan import FileState, Root, Scan, is_ignored, scan

PlaceState = Literal["starting", "watching", "polling", "missing"]

RETRY_S_MAX = 3600.0
"""A root that cannot be watched is tried again this often at the least."""


@dataclass(slots=True)
class Place:
    """
    State of one root. Times are seconds of the monotonic clock.

    Attributes:
        index: The root's number.
        asked: The root as configured.
        root: The same with its path resolved (links above and at the root).
        state: What is being done about it.
        identity: (st_dev, st_ino) of the folder that was scanned last.
        kind: Type of the file system, where the system tells.
        inner: Paths of other roots that lie below: what is there is theirs.
        folders: All folders seen, with their identities.
        files: Accepted files at the last full scan.
        bare: Folders that have no watch, polled one by one.
        retried: The root was watched anew because of them,
        confirmed: ... and in vain: they are not just a race that was lost.
        faults: What is wrong, by code.
        scan_at: When to scan all of it next.
        poll_at: When to look at the bare folders next.
        count_at: When to count the watches; None: nothing changed since.
        arm_at: When a failed native watch is tried again.
        backoff_s: ... and how long the next failure postpones that.
        scanned_ms: Wall time of the last complete scan, 0: never.
        scanned_at: When the last scan ended.
        scan_s: How long it took,
        scan_cpu_s: ... and how much of that was work.
    """

    index: int
    asked: Root
    root: Root
    state: PlaceState = "starting"
    identity: tuple[int, int] | None = None
    kind: str = ""
    inner: tuple[str, ...] = ()
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)
    files: int = 0
    bare: list[str] = field(default_factory=list)
    retried: bool = False
    confirmed: bool = False
    faults: dict[str, Fault] = field(default_factory=dict)
    scan_at: float = 0.0
    poll_at: float = 0.0
    count_at: float | None = None
    arm_at: float = 0.0
    backoff_s: float = 5.0
    scanned_ms: int = 0
    scanned_at: float = 0.0
    scan_s: float = 0.0
    scan_cpu_s: float = 0.0

    @property
    def covered(self) -> int:
        """Folders that the kernel watches for us."""
        return len(self.folders) - len(self.bare) if self.state == "watching" else 0


def places_for(roots: Sequence[Root]) -> list[Place]:
    """One place for each root; a folder named twice counts once, under the first."""
    spots: list[Place] = []
    for root in roots:
        real = dataclasses.replace(root, path=os.path.realpath(root.path))
        if all(real.path != spot.root.path for spot in spots):
            spots.append(Place(len(spots), root, real))
    for spot in spots:
        prefix = spot.root.path.rstrip("/") + "/"
        spot.inner = tuple(o.root.path for o in spots if o.root.path.startswith(prefix))
    return spots


def owns(spot: Place, path: str, *, folder: bool) -> bool:
    """Whether a hinted path is one that a scan of this place would find."""
    if any(path == other or path.startswith(other + "/") for other in spot.inner):
        return False
    if is_ignored(spot.root, path):
        return False
    name = path.rpartition("/")[2]
    return name not in spot.root.ignored if folder else spot.root.accept(name)


def moved(spot: Place) -> bool:
    """Whether the folder at the root's path is another one than was scanned, or gone."""
    return coverage.identity(spot.asked.path) != spot.identity


def survey(
    spot: Place,
    hint: Hint | None,
    now: float,
    should_stop: Callable[[], bool],
) -> Scan | None:
    """
    Watch a root (first, so that nothing falls between) and scan all of it.

    Args:
        spot: Is brought up to date.
        hint: None: native watching was not asked for.
        now: The monotonic time.
        should_stop: Asked once a folder.

    Returns: What was found; None when there is no such folder.
    """
    real = os.path.realpath(spot.asked.path)
    identity = coverage.identity(real)
    if identity is None:
        _is_missing(spot, hint)
        return None
    fresh = identity != spot.identity or real != spot.root.path
    spot.faults.pop("source-missing", None)
    spot.root = dataclasses.replace(spot.asked, path=real)
    spot.identity = identity
    spot.kind = coverage.filesystem_of(real, coverage.mounts_now())
    _arm(spot, hint, now, fresh=fresh)
    wall, cpu = time.monotonic(), time.thread_time()
    found = scan(spot.root, spot.index, others=spot.inner, should_stop=should_stop)
    spot.scan_s, spot.scan_cpu_s = time.monotonic() - wall, time.thread_time() - cpu
    if found.complete:
        spot.folders = found.folders
        spot.files = len(found.files)
        spot.bare = [path for path in spot.bare if path in found.folders]
    spot.faults.pop("source-unreadable", None)
    if found.faults_total:
        first = found.faults[0]
        spot.faults["source-unreadable"] = Fault(
            "source-unreadable",
            spot.root.path,
            f"{found.faults_total} places cannot be read, the first is {first.path!r}"
            f" ({first.reason})",
            "give this user the right to read them",
        )
    return found


def _is_missing(spot: Place, hint: Hint | None) -> None:
    if hint is not None:
        hint.disarm(spot.index)
    spot.state, spot.identity = "missing", None
    spot.folders, spot.bare, spot.files = {}, [], 0
    spot.arm_at, spot.backoff_s = 0.0, 5.0
    spot.faults.clear()
    if spot.asked.expected:
        spot.faults["source-missing"] = Fault(
            "source-missing",
            spot.asked.path,
            f"{spot.asked.path} does not exist; what was learned from it stays",
            "create it, mount it, or take it out of [watch] roots",
        )


def _arm(spot: Place, hint: Hint | None, now: float, *, fresh: bool) -> None:
    if hint is None or coverage.is_remote(spot.kind):
        if hint is not None:
            hint.disarm(spot.index)
        spot.state = "polling"
        return
    if not fresh and not spot.bare and hint.armed().get(spot.index):
        return
    if not fresh and now < spot.arm_at:
        return
    try:
        hint.arm(spot.index, spot.root.path)
    except ResourceError as error:
        spot.state = "polling"
        code: Literal["inotify-limit", "watch-degraded"] = (
            "inotify-limit" if "inotify" in error.message else "watch-degraded"
        )
        spot.faults[code] = Fault(code, spot.root.path, error.message, error.remedy)
        _postpone(spot, now)
        return
    spot.state = "watching"
    spot.faults.pop("inotify-limit", None)
    spot.faults.pop("watch-degraded", None)
    if spot.bare:  # watched anew to cover them; when that is vain, not again soon
        spot.retried = True
        _postpone(spot, now)
    else:
        spot.arm_at, spot.backoff_s = 0.0, 5.0


def _postpone(spot: Place, now: float) -> None:
    spot.arm_at = now + spot.backoff_s
    spot.backoff_s = min(spot.backoff_s * 2, RETRY_S_MAX)


def count(spot: Place) -> list[str]:
    """
    Compare the folders with the watches the kernel has for us.

    Returns: Folders newly found to have none; `spot.bare` holds all of them.
    """
    if spot.state != "watching":
        return []
    watched = coverage.watched_folders()
    if watched is None:
        return []
    lacking: list[str] = []
    for path in coverage.uncovered(spot.folders, watched):
        now = coverage.identity(path)
        if now is None:
            del spot.folders[path]
        elif now == spot.folders[path]:  # else it was made anew: its event comes
            lacking.append(path)
    before = set(spot.bare)
    spot.bare = lacking
    spot.retried = spot.retried and bool(lacking)
    spot.confirmed = spot.retried
    if not lacking:
        spot.arm_at, spot.backoff_s = 0.0, 5.0
    return [path for path in lacking if path not in before]


def branch(spot: Place, folder: str) -> list[FileState]:
    """Scan a folder that appeared, with all it holds; its folders join the place's."""
    found = scan(spot.root, spot.index, start=folder, others=spot.inner)
    spot.folders.update(found.folders)
    return found.files


def poll(spot: Place) -> list[FileState]:
    """Look at every bare folder by itself; new folders below are scanned whole."""
    files: list[FileState] = []
    gone: list[str] = []
    for folder in spot.bare:
        found = scan(spot.root, spot.index, start=folder, others=spot.inner, deep=False)
        files += found.files
        if not found.folders:
            gone.append(folder)
        for path in found.folders:
            if path not in spot.folders:
                files += branch(spot, path)
    for folder in gone:
        spot.folders.pop(folder, None)
    if gone:
        spot.bare = [path for path in spot.bare if path in spot.folders]
    return files
