"""
What the watch room says about itself in the status.
"""

from __future__ import annotations

from dataclasses import dataclass

from imprintd.watch.coverage import Fault
from imprintd.watch.place import PlaceState


@dataclass(frozen=True, slots=True)
class RootStatus:
    """
    One root.

    Attributes:
        path: As configured.
        client: The client whose transcripts lie in it.
        state: `watching` natively, `polling` by scans, `missing`, `starting`.
        filesystem: Its type, where the system tells.
        files: Accepted files at the last full scan.
        folders: Folders below it.
        covered: Those that the kernel watches for us.
        scanned_ms: Wall time of the last complete scan; 0: never.
    """

    path: str
    client: str
    state: PlaceState
    filesystem: str
    files: int
    folders: int
    covered: int
    scanned_ms: int


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """
    All roots together.

    Attributes:
        roots: One entry a root.
        folders: Folders below all roots.
        covered: Those that the kernel watches for us.
        pending: Files that wait to be told or are in the caller's hands.
        settling: Files that changed a moment ago.
        scans: Complete scans of a root since the start.
        losses: Times that hints were lost (bursts, overflows, dead threads).
        last_scan: Wall time of the latest complete scan, ms; 0: never.
        paused: Nothing is told until resumed.
        faults: What is wrong right now.
    """

    roots: tuple[RootStatus, ...]
    folders: int
    covered: int
    pending: int
    settling: int
    scans: int
    losses: int
    last_scan: int
    paused: bool
    faults: tuple[Fault, ...]
