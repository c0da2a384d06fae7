"""
Looking at what came: frames against their offer, an offer against our head.
"""

from __future__ import annotations

import hashlib

from imprintd.errors import RemoteProtocolError
from imprintd.sync.heads import Verdict, judge
from imprintd.sync.peer import Inbound, Turn
from imprintd.sync.ranges import Items
from imprintd.wire import messages
from imprintd.wire.codec import inflate
from imprintd.wire.pages import decode_page


def judged(turn: Turn, offer: messages.Offer, transfer: bytes | None) -> Verdict:
    """The verdict on an offer against the head of now; final once its bytes are here."""
    journal = turn.journal
    own = journal.describe(offer.source, offer.key)
    return judge(
        own,
        offer,
        device=journal.device,
        wall_ms=turn.now.wall_ms,
        own_block=lambda at: None if own is None else journal.block(offer.source, own.stamp, at),
        offered_block=(
            None if transfer is None else lambda at: journal.arrived(transfer, offer, at)
        ),
    )


def prefixes(turn: Turn, offer: messages.Offer, need: Items) -> dict[int, bytes]:
    """The own open last block, where the offered block in its place may start with it."""
    own = turn.journal.describe(offer.source, offer.key)
    if own is None or not own.blocks:
        return {}
    last = len(own.blocks) - 1
    if last not in need or offer.blocks[last].size <= own.blocks[last].size:
        return {}
    plain = turn.journal.block(offer.source, own.stamp, last)
    return {last: plain} if plain else {}


def block_or_page(inbound: Inbound, message: messages.Data) -> bytes:
    """
    The whole plain block or page that a frame completes.

    Raises:
        RemoteProtocolError: It is not what was offered and asked for.
    """
    offer = inbound.offer
    plain = opened(message)
    if message.item >= offer.first_page:
        if message.item >= offer.first_point or message.offset:
            raise RemoteProtocolError("item is no block and no page")
        decode_page(plain)
        return plain
    if message.offset:
        prefix = inbound.prefixes.get(message.item, b"")
        if len(prefix) != message.offset:
            raise RemoteProtocolError("suffix of a prefix that was not named")
        plain = prefix + plain
    block = offer.blocks[message.item]
    if len(plain) != block.size or hashlib.sha256(plain).digest() != block.digest:
        raise RemoteProtocolError("block is not the one that was offered")
    return plain


def opened(message: messages.Data | messages.Points) -> bytes:
    """
    Plain content of a frame.

    Raises:
        RemoteProtocolError: It does not inflate to what the frame says.
    """
    plain = inflate(message.packed, message.size)
    if hashlib.sha256(plain).digest() != message.digest:
        raise RemoteProtocolError("frame does not match its digest")
    return plain
