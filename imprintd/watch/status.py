"""
What the watch room says about itself in the status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from imprintd.watch.coverage import Fault, limit_fault, watch_limit
from imprintd.watch.place import Place, PlaceState


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


def roots_of(spots: Sequence[Place]) -> tuple[RootStatus, ...]:
    """One entry for each place."""
    return tuple(
        RootStatus(
            path=spot.asked.path,
            client=spot.asked.client,
            state=spot.state,
            filesystem=spot.kind,
            files=spot.files,
            folders=len(spot.folders),
            covered=spot.covered,
            scanned_ms=spot.scanned_ms,
        )
        for spot in spots
    )


def faults_of(spots: Sequence[Place]) -> tuple[Fault, ...]:
    """What is wrong with any place, and with all of them together."""
    # copied first: the status is asked for from other threads, too
    faults = [fault for spot in spots for fault in tuple(spot.faults.values())]
    watched = [spot for spot in spots if spot.state == "watching"]
    if any(spot.confirmed for spot in watched):
        folders = sum(len(spot.folders) for spot in watched)
        covered = sum(spot.covered for spot in watched)
        faults.append(limit_fault(folders, covered, watch_limit()))
    return tuple(faults)
