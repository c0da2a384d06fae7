"""
The taking side of a transfer, from an OFFER to COMMITTED.

The receiver drives: it says what it needs, and says it again when nothing
comes. Nothing counts as received before it is durably staged, and nothing is
COMMITTED before the publishing transaction is durable.
"""

from __future__ import annotations

import hashlib
from typing import Final

from imprintd.errors import RemoteProtocolError
from imprintd.sync import effects, wants
from imprintd.sync.events import Checked, Committed, Refused, Staged
from imprintd.sync.heads import Verdict
from imprintd.sync.inventory import source_key
from imprintd.sync.opening import block_or_page, judged, opened, prefixes
from imprintd.sync.peer import Inbound, Peer, Turn
from imprintd.sync.ranges import Items
from imprintd.wire import limits, messages
from imprintd.wire.offer import transcript, transfer_id, version_hash
from imprintd.wire.pages import decode_points

CREDIT_FRAMES: Final = 4
CREDIT_S: Final = 0.1
STALL_S: Final = 2.0
STALLS_MAX: Final = 6
CHECKS_MAX: Final = 8
STRIKES_MAX: Final = 3


def on_offer(turn: Turn, peer: Peer, offer: messages.Offer) -> None:
    """Judge an offer that was asked for; take it up when there is room."""
    want = peer.wants.get(offer.key)
    if want is None:
        peer.ignored += 1
        return
    if source_key(peer.link_key, offer.source) != offer.key:
        turn.report(peer, "bad-key", "error")
        turn.send(peer, messages.Reject(transfer_id(offer), offer.key, "bad-key"))
        wants.refuse(turn, peer, offer.key)
        return
    transfer = transfer_id(offer)
    if transfer in peer.inbound:
        return
    want.asked = False
    if len(peer.inbound) >= limits.TRANSFERS_MAX:
        peer.waiting[offer.key] = offer
        return
    peer.waiting.pop(offer.key, None)
    _begin(turn, peer, transfer, offer)


def _begin(turn: Turn, peer: Peer, transfer: bytes, offer: messages.Offer) -> None:
    reason = turn.journal.refusal(offer)
    if reason is not None:
        turn.send(peer, messages.Reject(transfer, offer.key, reason))
        turn.out.append(effects.Discard(transfer))
        wants.refuse(turn, peer, offer.key)
        return
    verdict = judged(turn, offer, None)
    if verdict.action != "take":
        _without_data(turn, peer, transfer, offer, verdict)
        return
    need = Items(((0, len(offer.blocks)),) if offer.blocks else ())
    need.discard_all(turn.journal.staged(transfer))
    missing = {offer.blocks[item].digest for item in need}
    held = turn.journal.held(offer.source.workspace, missing)
    for item in list(need):
        if offer.blocks[item].digest in held:
            need.discard(item)
    inbound = Inbound(
        transfer,
        offer,
        "filling",
        need,
        prefixes(turn, offer, need),
        turn.now.elapsed_s + STALL_S,
    )
    peer.inbound[transfer] = inbound
    peer.turns += 1
    turn.send(
        peer,
        messages.Accept(
            transfer,
            peer.turns,
            need.ranges(limits.NEED_RANGES_MAX),
            tuple(
                messages.Prefix(item, len(plain), hashlib.sha256(plain).digest())
                for item, plain in inbound.prefixes.items()
            ),
            limits.WINDOW_FRAMES,
            limits.WINDOW_BYTES,
        ),
    )
    if not need:
        _check(turn, peer, inbound)


def _without_data(
    turn: Turn, peer: Peer, transfer: bytes, offer: messages.Offer, verdict: Verdict
) -> None:
    """Everything that an offer can lead to but a transfer."""
    inbound = peer.inbound.pop(transfer, None)
    if inbound is not None:
        turn.out.append(effects.Discard(transfer))
    if verdict.action == "hold":
        ahead = offer.stamp.update_ms - turn.now.wall_ms
        turn.report(peer, "clock-ahead", "warning", offer.source, f"{ahead // 1000} s ahead")
        turn.send(peer, messages.Reject(transfer, offer.key, "clock-ahead"))
        wants.hold(turn, peer, offer.key)
        return
    if verdict.action in {"adopt", "raise"}:
        own = turn.journal.describe(offer.source, offer.key)
        assert own is not None
        assert verdict.stamp is not None
        peer.inbound[transfer] = Inbound(
            transfer, offer, "restamping", Items(), {}, turn.now.elapsed_s + STALL_S
        )
        turn.out.append(
            effects.Restamp(peer.name, transfer, offer.source, verdict.stamp, own.stamp)
        )
        return
    own_version = peer.inventory.version(offer.key)
    same = own_version == version_hash(offer.stamp)
    turn.send(peer, messages.Reject(transfer, offer.key, "have-same" if same else "have-newer"))
    wants.settle(turn, peer, offer.key)
    resume(turn, peer)


def on_data(turn: Turn, peer: Peer, message: messages.Data) -> None:
    """Look at a block or a page, put a suffix behind its prefix, hand it to the stage."""
    inbound = peer.inbound.get(message.transfer)
    item = message.item
    if inbound is None or item not in inbound.need or item in inbound.staging:
        peer.ignored += 1
        return
    try:
        plain = block_or_page(inbound, message)
    except RemoteProtocolError as error:
        _strike(turn, peer, inbound, error)
        return
    inbound.staging.add(item)
    _heard(turn, inbound)
    turn.out.append(effects.Stage(peer.name, inbound.transfer, inbound.offer, item, plain))


def on_points(turn: Turn, peer: Peer, message: messages.Points) -> None:
    """Hand the points of some chunks to the stage."""
    inbound = peer.inbound.get(message.transfer)
    if inbound is None or not message.items:
        peer.ignored += 1
        return
    wanted = Items(message.items)
    if any(item not in inbound.need or item in inbound.staging for item in wanted):
        peer.ignored += 1
        return
    if wanted.first() < inbound.offer.first_point or message.rules != turn.rules:
        _strike(turn, peer, inbound, RemoteProtocolError("points that were not asked for"))
        return
    try:
        points = decode_points(opened(message), message.rules)
    except RemoteProtocolError as error:
        _strike(turn, peer, inbound, error)
        return
    for first, count in message.items:
        inbound.staging.add(first, count)
    _heard(turn, inbound)
    turn.out.append(
        effects.StagePoints(peer.name, inbound.transfer, inbound.offer, message.items, points)
    )


def _heard(turn: Turn, inbound: Inbound) -> None:
    inbound.stalls = 0
    inbound.stalled_at_s = turn.now.elapsed_s + STALL_S


def _strike(turn: Turn, peer: Peer, inbound: Inbound, error: RemoteProtocolError) -> None:
    inbound.strikes += 1
    turn.report(peer, "bad-frame", "warning", inbound.offer.source, error.message)
    if inbound.strikes >= STRIKES_MAX:
        _abandon(turn, peer, inbound, "not-verified", retryable=False)


def on_staged(turn: Turn, peer: Peer, event: Staged) -> None:
    """Items are durable: give credit for them, and check once they are all there."""
    inbound = peer.inbound.get(event.transfer)
    if inbound is None:
        return
    inbound.need.discard_all(event.items)
    inbound.staging.discard_all(event.items)
    if inbound.state != "filling":
        return
    inbound.frames += 1
    if not inbound.need:
        credit(turn, peer, inbound)
        _check(turn, peer, inbound)
    elif inbound.frames >= CREDIT_FRAMES:
        credit(turn, peer, inbound)
    elif inbound.credit_at_s is None:
        inbound.credit_at_s = turn.now.elapsed_s + CREDIT_S


def credit(turn: Turn, peer: Peer, inbound: Inbound, *, again: bool = False) -> None:
    """Say what is still needed, which is what moves the sender's window."""
    peer.turns += 1
    inbound.frames = 0
    inbound.credit_at_s = None
    turn.send(
        peer,
        messages.Credit(
            inbound.transfer,
            peer.turns,
            inbound.need.ranges(limits.NEED_RANGES_MAX),
            limits.WINDOW_FRAMES,
            limits.WINDOW_BYTES,
            again,
        ),
    )


def _check(turn: Turn, peer: Peer, inbound: Inbound) -> None:
    inbound.checks += 1
    if inbound.state == "filling":
        inbound.step("filled")
    turn.out.append(effects.Check(peer.name, inbound.transfer, inbound.offer))


def on_checked(turn: Turn, peer: Peer, event: Checked) -> None:
    """The version was put together: fetch what it lacks, or go on to publish."""
    inbound = peer.inbound.get(event.transfer)
    if inbound is None or inbound.state != "checking":
        return
    _heard(turn, inbound)
    if event.need:
        if inbound.checks >= CHECKS_MAX:
            _abandon(turn, peer, inbound, "not-verified", retryable=False)
            return
        inbound.need = Items(event.need)
        inbound.prefixes = {}
        inbound.step("needs")
        credit(turn, peer, inbound)
        return
    inbound.step("complete")
    if inbound.done:
        _publish(turn, peer, inbound)
    else:
        credit(turn, peer, inbound)


def on_done(turn: Turn, peer: Peer, message: messages.Done) -> None:
    """The sender's word on the whole: it has to be the offer that was taken up."""
    inbound = peer.inbound.get(message.transfer)
    if inbound is None or inbound.state == "restamping":
        return
    if message.items != inbound.offer.items or message.transcript != transcript(inbound.offer):
        turn.report(peer, "bad-transcript", "error", inbound.offer.source)
        _abandon(turn, peer, inbound, "not-verified", retryable=False)
        return
    inbound.done = True
    if inbound.state == "closing":
        _publish(turn, peer, inbound)


def _publish(turn: Turn, peer: Peer, inbound: Inbound) -> None:
    offer = inbound.offer
    verdict = judged(turn, offer, inbound.transfer)
    if verdict.action != "take":
        _without_data(turn, peer, inbound.transfer, offer, verdict)
        return
    assert verdict.stamp is not None
    own = turn.journal.describe(offer.source, offer.key)
    inbound.step("closed")
    turn.out.append(
        effects.Publish(
            peer.name,
            inbound.transfer,
            offer,
            verdict.stamp,
            None if own is None else own.stamp,
            verdict.keep_alternate,
        )
    )


def on_committed(turn: Turn, peer: Peer, event: Committed) -> None:
    """It is durable: say so, settle it, go on with the next."""
    inbound = peer.inbound.pop(event.transfer, None)
    if inbound is None:
        return
    inbound.step("committed")
    offer = inbound.offer
    version = peer.inventory.version(offer.key)
    if version == version_hash(offer.stamp):
        peer.knows(offer.key, version)
    turn.send(
        peer, messages.Committed(inbound.transfer, offer.key, version or version_hash(offer.stamp))
    )
    wants.settle(turn, peer, offer.key)
    resume(turn, peer)


def on_refused(turn: Turn, peer: Peer, event: Refused) -> None:
    """An effect was not carried out: decide anew where the head moved, else give up."""
    inbound = peer.inbound.get(event.transfer)
    if inbound is None:
        return
    if event.reason == "head-moved" and inbound.checks < CHECKS_MAX:
        if inbound.state == "restamping":
            del peer.inbound[event.transfer]
            _begin(turn, peer, event.transfer, inbound.offer)
            return
        if inbound.state == "publishing":
            # what was checked was checked against the old head
            inbound.step("moved")
            _check(turn, peer, inbound)
            return
    _abandon(turn, peer, inbound, event.reason, retryable=event.retryable)


def on_nack(turn: Turn, peer: Peer, message: messages.Nack) -> None:
    """The sender knows nothing of the transfer (any more): ask afresh."""
    inbound = peer.inbound.get(message.transfer)
    if inbound is None or inbound.state in {"publishing", "restamping"}:
        return
    del peer.inbound[message.transfer]
    wants.again(turn, peer, inbound.offer.key)
    resume(turn, peer)


def _abandon(turn: Turn, peer: Peer, inbound: Inbound, reason: str, *, retryable: bool) -> None:
    del peer.inbound[inbound.transfer]
    offer = inbound.offer
    turn.report(peer, reason, "error", offer.source)
    turn.send(peer, messages.Reject(inbound.transfer, offer.key, reason[:32]))
    if retryable:
        wants.hold(turn, peer, offer.key, settle=False)
    else:
        turn.out.append(effects.Discard(inbound.transfer))
        wants.refuse(turn, peer, offer.key)
    resume(turn, peer)


def resume(turn: Turn, peer: Peer) -> None:
    """Take up offers that waited for room, then ask for more."""
    while peer.waiting and len(peer.inbound) < limits.TRANSFERS_MAX:
        key, offer = peer.waiting.popitem(last=False)
        if key in peer.wants:
            _begin(turn, peer, transfer_id(offer), offer)
    wants.ask(turn, peer)


def tick(turn: Turn, peer: Peer) -> None:
    """Credits that are due, and transfers in which nothing moved for a while."""
    now = turn.now.elapsed_s
    for inbound in list(peer.inbound.values()):
        if inbound.credit_at_s is not None and inbound.credit_at_s <= now:
            credit(turn, peer, inbound)
        if inbound.stalled_at_s > now:
            continue
        inbound.stalls += 1
        inbound.stalled_at_s = now + STALL_S * 2 ** min(inbound.stalls, 4)
        if inbound.state in {"checking", "publishing", "restamping"} or inbound.staging:
            # the driver is at work; its answer is certain
            inbound.stalls = 0
        elif inbound.stalls > STALLS_MAX:
            del peer.inbound[inbound.transfer]
            wants.again(turn, peer, inbound.offer.key)
            resume(turn, peer)
        else:
            credit(turn, peer, inbound, again=True)
