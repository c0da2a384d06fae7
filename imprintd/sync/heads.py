"""
Which of two heads of a source stays: a total order, and how they are related.

The order is the stamp's own. Stamps are ratcheted: what a device publishes
after it saw a head always stands above that head, whatever the clocks say.
So the order never contradicts causality, and every device that knows the
same heads chooses the same one in whatever order they came.

Two things go beyond the order. A text that continues another is newer than
it even where neither device knew of the other; the device that sees both
gives the longer one a stamp above the shorter one's. And a loser that is no
ancestor of the winner is concurrent: its holder keeps it as an alternate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from imprintd.model.snapshot import Stamp
from imprintd.wire.messages import Offer
from imprintd.wire.offer import version_hash

CLOCK_AHEAD_MS_MAX = 5 * 60 * 1000
"""A stamp further ahead of our clock is held, not applied: folding it in
would move every later stamp of this device for good."""

Relation = Literal[
    "same", "continues", "may-continue", "continued", "supersedes", "superseded", "concurrent"
]
"""Of what is offered to what is held. `may-continue`: all blocks agree but
the open last one, whose bytes have to be seen."""

BlockBytes = Callable[[int], bytes | None]
"""Plain bytes of a block by position, None where they are not there."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    What to do about an offer.

    Attributes:
        action: `take` fetches or publishes it; `adopt` gives the own head,
            the same text, the offered stamp; `raise` gives the own head,
            the longer text, a stamp above the offered one; `keep` does
            nothing; `hold` waits for the clock.
        stamp: The stamp to publish or set, for take, adopt and raise.
        keep_alternate: The own head would lose as a concurrent version.
        certain: False while a continuation has yet to be confirmed by bytes.
    """

    action: Literal["take", "adopt", "raise", "keep", "hold"]
    stamp: Stamp | None = None
    keep_alternate: bool = False
    certain: bool = True


def ratchet(above: Stamp, update_ms: int, device: str, digest: bytes) -> Stamp:
    """The lowest stamp with this update time, or a later one, that stands above another."""
    if update_ms > above.update_ms:
        return Stamp(update_ms, 0, device, digest)
    return Stamp(above.update_ms, above.counter + 1, device, digest)


def relation(
    own: Offer,
    offered: Offer,
    own_block: BlockBytes,
    offered_block: BlockBytes | None = None,
) -> Relation:
    """
    How an offered head is related to the own one.

    Args:
        own: The own head.
        offered: The other one.
        own_block: Bytes of the own head's blocks.
        offered_block: Bytes of the offered head's blocks, once they are
            there; with them the answer is never `may-continue`.
    """
    if own.root == offered.root and own.total_bytes == offered.total_bytes:
        return "same"
    if version_hash(offered.stamp) in own.after:
        return "superseded"
    if _continues(offered, own):
        last = len(own.blocks) - 1
        if last < 0 or own.blocks[last].digest == offered.blocks[last].digest:
            return "continues"
        if offered_block is None:
            return "may-continue"
        if _starts(offered_block(last), own_block(last)):
            return "continues"
    elif _continues(own, offered):
        last = len(offered.blocks) - 1
        if last < 0 or own.blocks[last].digest == offered.blocks[last].digest:
            return "continued"
        held = own_block(last)
        reference = offered.blocks[last]
        if held is not None and (
            hashlib.sha256(held[: reference.size]).digest() == reference.digest
        ):
            return "continued"
    if version_hash(own.stamp) in offered.after:
        return "supersedes"
    if own.origin == offered.origin == own.stamp.device == offered.stamp.device:
        # one device's own publications are never concurrent with each other
        return "supersedes" if own.stamp < offered.stamp else "superseded"
    return "concurrent"


def judge(
    own: Offer | None,
    offered: Offer,
    *,
    device: str,
    wall_ms: int,
    own_block: BlockBytes,
    offered_block: BlockBytes | None = None,
) -> Verdict:
    """
    What to do about an offer; arguments as for `relation`.

    Args:
        device: This device, whose name a ratcheted stamp carries.
        wall_ms: This device's clock.
    """
    ahead = offered.stamp.update_ms > wall_ms + CLOCK_AHEAD_MS_MAX
    if own is None:
        return Verdict("hold") if ahead else Verdict("take", offered.stamp)
    if own.stamp == offered.stamp:
        return Verdict("keep")
    newer = own.stamp < offered.stamp
    kind = relation(own, offered, own_block, offered_block)
    if kind == "continued":
        if not newer:
            return Verdict("keep")
        return Verdict(
            "raise", ratchet(offered.stamp, own.meta.updated_ms, device, own.stamp.digest)
        )
    if kind in {"continues", "may-continue"}:
        stamp = offered.stamp
        if not newer:
            stamp = ratchet(own.stamp, offered.meta.updated_ms, device, offered.stamp.digest)
        return Verdict("take", stamp, certain=kind == "continues")
    if not newer:
        return Verdict("keep")
    if ahead:
        return Verdict("hold")
    if kind == "same" and own.manifest_root == offered.manifest_root:
        return Verdict("adopt", offered.stamp)
    return Verdict("take", offered.stamp, keep_alternate=kind == "concurrent")


def _continues(longer: Offer, shorter: Offer) -> bool:
    """All blocks of the shorter but its last stand at the same place in the longer."""
    closed = len(shorter.blocks) - 1
    return (
        longer.total_bytes > shorter.total_bytes
        and len(longer.blocks) > closed
        and all(
            mine.digest == theirs.digest
            for mine, theirs in zip(longer.blocks[:closed], shorter.blocks, strict=False)
        )
        and (closed < 0 or longer.blocks[closed].size >= shorter.blocks[closed].size)
    )


def _starts(longer: bytes | None, shorter: bytes | None) -> bool:
    return longer is not None and shorter is not None and longer.startswith(shorter)
