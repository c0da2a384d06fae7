"""
The giving side of a transfer: WANT to OFFER, ACCEPT and CREDIT to DATA.

It decides nothing and remembers little: which offers it made, and what is in
flight. A receiver that comes back after anything at all names what it needs
and gets that. Nothing but a CREDIT moves the window.
"""

from __future__ import annotations

from typing import Final

from imprintd.errors import LocalProtocolError
from imprintd.model.snapshot import Point
from imprintd.sync.peer import OFFERED_MAX, Outbound, Peer, Turn
from imprintd.sync.ranges import Items
from imprintd.wire import frames, limits, messages
from imprintd.wire.codec import deflate, digest
from imprintd.wire.offer import transcript, transfer_id
from imprintd.wire.pages import encode_page, encode_points

EXPIRE_S: Final = 90.0
_POINTS_BYTES: Final = 192 * 1024
"""A frame of points is closed once it holds this much."""

_POINTS_CHUNKS: Final = 512


def on_want(turn: Turn, peer: Peer, message: messages.Want) -> None:
    """Describe the heads that were asked for."""
    for key in message.keys:
        source = peer.inventory.source(key)
        offer = None
        if source is not None and turn.journal.relays(source):
            offer = turn.journal.describe(source, key)
        if offer is None:
            turn.send(peer, messages.Reject(b"", key, "gone"))
            continue
        try:
            size = len(frames.encode(offer))
        except LocalProtocolError:
            turn.report(peer, "offer-too-large", "error", source)
            turn.send(peer, messages.Reject(b"", key, "too-big"))
            continue
        assert size <= limits.CONTROL_BYTES_MAX
        transfer = transfer_id(offer)
        peer.offered[transfer] = offer
        peer.offered.move_to_end(transfer)
        if len(peer.offered) > OFFERED_MAX:
            peer.offered.popitem(last=False)
        turn.send(peer, offer)


def on_accept(turn: Turn, peer: Peer, message: messages.Accept) -> None:
    """Open a transfer, or go on with one."""
    outbound = peer.outbound.get(message.transfer)
    if outbound is None:
        offer = peer.offered.get(message.transfer)
        if offer is None:
            turn.send(peer, messages.Nack(message.transfer, "unknown"))
            return
        if len(peer.outbound) >= 2 * limits.TRANSFERS_MAX:
            # a peer that crashed without a sign leaves old ones behind
            oldest = min(peer.outbound, key=lambda name: peer.outbound[name].expires_s)
            del peer.outbound[oldest]
        outbound = peer.outbound[message.transfer] = Outbound(offer, 0.0)
    outbound.prefixes = {p.item: (p.size, p.digest) for p in message.prefixes}
    _advance(turn, peer, outbound, message, again=False)


def on_credit(turn: Turn, peer: Peer, message: messages.Credit) -> None:
    """Take what was staged out of the window and send on."""
    outbound = peer.outbound.get(message.transfer)
    if outbound is None:
        turn.send(peer, messages.Nack(message.transfer, "unknown"))
        return
    _advance(turn, peer, outbound, message, again=message.again)


def on_end(turn: Turn, peer: Peer, message: messages.Committed | messages.Reject) -> None:
    """The peer has it, or does not want it."""
    outbound = peer.outbound.pop(message.transfer, None)
    offer = peer.offered.pop(message.transfer, None) or (outbound.offer if outbound else None)
    if isinstance(message, messages.Committed):
        peer.knows(message.key, message.version)
    elif message.reason in {"clock-ahead", "quota", "not-verified", "too-big"}:
        turn.report(
            peer, f"peer-{message.reason}", "warning", None if offer is None else offer.source
        )


def expire(turn: Turn, peer: Peer) -> None:
    """Forget transfers whose receiver has gone quiet."""
    for transfer, outbound in list(peer.outbound.items()):
        if outbound.expires_s <= turn.now.elapsed_s:
            del peer.outbound[transfer]


def _advance(
    turn: Turn,
    peer: Peer,
    outbound: Outbound,
    message: messages.Accept | messages.Credit,
    *,
    again: bool,
) -> None:
    if message.turn <= outbound.turn:
        return
    outbound.turn = message.turn
    outbound.expires_s = turn.now.elapsed_s + EXPIRE_S
    outbound.frames = min(message.frames, limits.WINDOW_FRAMES)
    outbound.size = min(message.size, limits.WINDOW_BYTES)
    need = Items(message.need)
    if message.need and sum(message.need[-1]) > outbound.offer.items:
        turn.report(peer, "bad-need", "warning", outbound.offer.source)
        turn.send(peer, messages.Nack(message.transfer, "bad-need"))
        return
    for first, (items, _) in list(outbound.flight.items()):
        if again or not need.meets(items):
            del outbound.flight[first]
        else:
            need.discard_all(items)
    outbound.unsent = need
    _pump(turn, peer, outbound, message.transfer)


def _pump(turn: Turn, peer: Peer, outbound: Outbound, transfer: bytes) -> None:
    """Fill the window; say DONE when nothing is left to send."""
    offer = outbound.offer
    flying = sum(size for _, size in outbound.flight.values())
    while outbound.unsent and len(outbound.flight) < outbound.frames and flying < outbound.size:
        first = outbound.unsent.first()
        try:
            made = _frame(turn, outbound, transfer, first)
        except LocalProtocolError:
            turn.report(peer, "frame-too-large", "error", offer.source)
            made = None
        if made is None:
            del peer.outbound[transfer]
            turn.send(peer, messages.Nack(transfer, "gone"))
            return
        message, items = made
        size = len(message.packed)
        outbound.unsent.discard_all(items)
        outbound.flight[first] = (items, size)
        flying += size
        turn.send(peer, message)
    if not outbound.unsent:
        turn.send(peer, messages.Done(transfer, offer.items, transcript(offer)))


def _frame(
    turn: Turn, outbound: Outbound, transfer: bytes, item: int
) -> tuple[messages.Data | messages.Points, messages.Ranges] | None:
    """The frame that begins with an item; None when the head has been replaced."""
    offer = outbound.offer
    if item >= offer.first_point:
        return _points_frame(turn, outbound, transfer, item)
    offset = 0
    if item >= offer.first_page:
        first = (item - offer.first_page) * limits.PAGE_ENTRIES
        chunks = turn.journal.chunks(offer.source, offer.stamp, first, limits.PAGE_ENTRIES)
        if chunks is None:
            return None
        plain = encode_page(chunks)
    else:
        block = turn.journal.block(offer.source, offer.stamp, item)
        if block is None:
            return None
        offset = _agreed(block, outbound.prefixes.get(item))
        plain = block[offset:]
    data = messages.Data(transfer, item, offset, len(plain), digest(plain), deflate(plain))
    return data, ((item, 1),)


def _agreed(block: bytes, prefix: tuple[int, bytes] | None) -> int:
    """How many bytes of a block the receiver has already."""
    if prefix is None or prefix[0] >= len(block):
        return 0
    return prefix[0] if digest(block[: prefix[0]]) == prefix[1] else 0


def _points_frame(
    turn: Turn, outbound: Outbound, transfer: bytes, item: int
) -> tuple[messages.Points, messages.Ranges] | None:
    offer = outbound.offer
    rules = offer.rules[0] if offer.rules else ""
    taken = Items()
    found: list[Point] = []
    size = 0
    for other in outbound.unsent:
        if other < item:
            continue
        points = turn.journal.points(offer.source, offer.stamp, other - offer.first_point, rules)
        if points is None:
            return None
        more = sum(len(point.vector) + 48 for point in points)
        if taken and size + more > _POINTS_BYTES:
            break
        taken.add(other)
        found.extend(points)
        size += more
        ranges = taken.ranges()
        if len(taken) >= _POINTS_CHUNKS or len(ranges) >= limits.NEED_RANGES_MAX:
            break
    plain = encode_points(found)
    ranges = taken.ranges()
    message = messages.Points(transfer, ranges, rules, len(plain), digest(plain), deflate(plain))
    return message, ranges
