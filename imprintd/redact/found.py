"""
What detectors hand over, and how findings become one list of spans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from imprintd.redact.kinds import RANK

_LAST: Final = len(RANK)


class Found(NamedTuple):
    """One finding, in bytes of the text that was looked at."""

    start: int
    end: int
    kind: str


def merge(findings: Iterable[Found]) -> list[Found]:
    """
    Union of overlapping findings, in order.

    The most telling kind names a union, so that a token found in the value of
    a name keeps its own label. Findings that only touch stay apart.
    """
    merged: list[Found] = []
    for found in sorted(findings):
        if found.end <= found.start:
            continue
        if merged and found.start < merged[-1].end:
            last = merged[-1]
            kind = min(last.kind, found.kind, key=lambda kind: RANK.get(kind, _LAST))
            merged[-1] = Found(last.start, max(last.end, found.end), kind)
        else:
            merged.append(found)
    return merged
