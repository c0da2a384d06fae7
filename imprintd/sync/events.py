"""
What can happen to a replica: the inputs of `Replica.handle`.
"""

from __future__ import annotations

from dataclasses import dataclass

from imprintd.wire.messages import Message, Ranges


@dataclass(frozen=True, slots=True)
class Instant:
    """
    The two clocks at the moment of an event.

    Attributes:
        wall_ms: Milliseconds since the epoch, may jump; compared with stamps.
        elapsed_s: Seconds that never go backwards; deadlines are made of it.
    """

    wall_ms: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class LinkUp:
    """
    An authenticated session with a peer began.

    `link_key` is a secret of the two devices: names of sources are hashed
    with it, so that a peer learns only keys it holds itself or is offered.
    """

    peer: str
    link_key: bytes


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The session ended; what was in flight is lost, what was staged is not."""

    peer: str


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """A decoded message of a peer, in any order, perhaps not for the first time."""

    peer: str
    message: Message


@dataclass(frozen=True, slots=True)
class LocalPublished:
    """The change log moved to `change` by other means than a transfer."""

    change: int


@dataclass(frozen=True, slots=True)
class Staged:
    """Result of Stage and StagePoints: these items outlive a crash now."""

    peer: str
    transfer: bytes
    items: Ranges


@dataclass(frozen=True, slots=True)
class Checked:
    """
    Result of Check: the staged version was put together and looked at.

    Attributes:
        need: Items that are wanted besides (manifest pages when the own cut
            differs, points that are not there). Empty: ready to publish.
    """

    peer: str
    transfer: bytes
    need: Ranges


@dataclass(frozen=True, slots=True)
class Committed:
    """Result of Publish and Restamp, after the transaction is durable."""

    peer: str
    transfer: bytes
    change: int


@dataclass(frozen=True, slots=True)
class Refused:
    """
    Result of an effect that was not carried out; nothing changed.

    Attributes:
        reason: `head-moved` is decided anew; any other ends the transfer and
            goes into the status.
        retryable: Trying later may help: the disk was full.
    """

    peer: str
    transfer: bytes
    reason: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The timer of a peer went off."""

    peer: str


SyncEvent = (
    LinkUp
    | LinkDown
    | FrameReceived
    | LocalPublished
    | Staged
    | Checked
    | Committed
    | Refused
    | TimerFired
)
