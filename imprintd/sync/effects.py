"""
What a replica wants done: the outputs of `Replica.handle`, in order.

Whoever drives the replica carries them out and hands results back as events.
Stage, Check, Publish and Restamp are answered by exactly one event each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from imprintd.model.snapshot import Point, Stamp
from imprintd.model.source import SourceId
from imprintd.wire.messages import Message, Offer, Ranges


@dataclass(frozen=True, slots=True)
class Send:
    """Give a message to the link; it may be lost there."""

    peer: str
    message: Message


@dataclass(frozen=True, slots=True)
class Stage:
    """
    Keep an item of a transfer where a crash does not reach it.

    `plain` is a whole block, its digest checked, or a whole manifest page.
    """

    peer: str
    transfer: bytes
    offer: Offer
    item: int
    plain: bytes


@dataclass(frozen=True, slots=True)
class StagePoints:
    """Likewise the points of some chunks; items without any are settled, too."""

    peer: str
    transfer: bytes
    offer: Offer
    items: Ranges
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """
    Put the staged version together and verify it.

    Blocks, root, redaction, spans, contents, manifest: all of it before
    anything is published.
    """

    peer: str
    transfer: bytes
    offer: Offer


@dataclass(frozen=True, slots=True)
class Publish:
    """
    Make the checked version the head, in one transaction with its points.

    Attributes:
        stamp: The origin's, or a ratcheted one of this device.
        expected: Stamp of the head that this decision saw; another one means
            Refused with `head-moved`.
        keep_alternate: The replaced head is a concurrent version: keep it.
    """

    peer: str
    transfer: bytes
    offer: Offer
    stamp: Stamp
    expected: Stamp | None
    keep_alternate: bool


@dataclass(frozen=True, slots=True)
class Restamp:
    """Give the head of a source, unchanged, another stamp; `expected` as above."""

    peer: str
    transfer: bytes
    source: SourceId
    stamp: Stamp
    expected: Stamp


@dataclass(frozen=True, slots=True)
class Discard:
    """Drop what was staged of a transfer."""

    transfer: bytes


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Remember, durably, that a peer's change log is settled up to `change`."""

    peer: str
    index: bytes
    change: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire the one timer of a peer at `at_s` (elapsed), instead of any earlier setting."""

    peer: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """Something for the status: a stable code and what it is about, never text."""

    peer: str
    code: str
    severity: Literal["note", "warning", "error"]
    source: SourceId | None = None
    detail: str = ""


Effect = (
    Send
    | Stage
    | StagePoints
    | Check
    | Publish
    | Restamp
    | Discard
    | Acknowledge
    | SetTimer
    | Report
)
