"""
What the sync room reads from the store: one port, declared by its consumer.

Reading is all it does; every change goes out as an effect. A call answers
from committed state, at once, or says None where what was named is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from imprintd.model.snapshot import Chunk, Point, Stamp
from imprintd.model.source import SourceId
from imprintd.wire.messages import Offer, Ranges


@dataclass(frozen=True, slots=True)
class HeadLine:
    """One head as the change log lists it."""

    change: int
    source: SourceId
    stamp: Stamp


class Journal(Protocol):
    """Committed state: heads, their parts, and what was staged."""

    @property
    def device(self) -> str:
        """Id of this device."""
        ...

    @property
    def index_id(self) -> bytes:
        """8 bytes that name the life of the change log."""
        ...

    def change(self) -> int:
        """Number of the last change."""
        ...

    def heads_after(self, change: int, limit: int) -> Sequence[HeadLine]:
        """Heads whose number is above `change`, rising, at most `limit` of them."""
        ...

    def describe(self, source: SourceId, key: bytes) -> Offer | None:
        """
        The head of a source as it is offered, under a link's key for it.

        Where a received text was redacted further here, the blocks, roots and
        version are still those of its origin.
        """
        ...

    def block(self, source: SourceId, stamp: Stamp, position: int) -> bytes | None:
        """
        Plain bytes of a block of the head with this stamp.

        None when the head is another one by now, or when its text was
        redacted here and is no longer the block that the origin named.
        """
        ...

    def chunks(
        self, source: SourceId, stamp: Stamp, first: int, count: int
    ) -> Sequence[Chunk] | None:
        """Manifest entries of the head with this stamp, or None."""
        ...

    def points(
        self, source: SourceId, stamp: Stamp, ordinal: int, rules: str
    ) -> Sequence[Point] | None:
        """Points of the chunk with this ordinal under some rules; None as above."""
        ...

    def held(self, workspace: str, digests: Collection[bytes]) -> Collection[bytes]:
        """Which of these blocks are stored in a workspace and need not travel."""
        ...

    def staged(self, transfer: bytes) -> Ranges:
        """Items of a transfer that an earlier link left durably staged."""
        ...

    def arrived(self, transfer: bytes, offer: Offer, position: int) -> bytes | None:
        """Plain bytes of an offered block that is staged or held, or None."""
        ...

    def refusal(self, offer: Offer) -> str | None:
        """Why this device does not want a version: `excluded`, `purged`, ...; None: it may come."""
        ...

    def relays(self, source: SourceId) -> bool:
        """
        Whether the head may be offered: its text is the one its stamp names.

        One that was redacted further here is not passed on as its origin's.
        """
        ...

    def acknowledged(self, peer: str) -> tuple[bytes, int] | None:
        """Index id and change number of a peer's log that are settled, durably."""
        ...
