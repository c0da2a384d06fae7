"""
Heads that a peer has and we may lack: asked for, held back, settled.

A peer's change log is settled up to the number before the first want that
is still open. That number is what is acknowledged durably; after a restart
the log is followed from there.
"""

from __future__ import annotations

from typing import Final

from imprintd.sync import effects
from imprintd.sync.peer import Peer, Turn, Want
from imprintd.wire import limits, messages

WANTS_MAX: Final = 1024
"""Open wants; while there are more, no further changes are pulled."""

ASK_S: Final = 5.0
HOLD_S: Final = 600.0
RETRY_S: Final = 60.0
TRIES_MAX: Final = 20
REFUSED_MAX: Final = 65_536


def note(turn: Turn, peer: Peer, entry: messages.Change, change: int) -> None:
    """
    The peer has this version of this key.

    Args:
        change: Number that the log of the peer is settled up to once this is
            done with.
    """
    peer.knows(entry.key, entry.version)
    if peer.inventory.version(entry.key) == entry.version:
        peer.wants.pop(entry.key, None)
        return
    if peer.refused.get(entry.key) == entry.version:
        return
    want = peer.wants.get(entry.key)
    if want is not None and want.version == entry.version:
        want.change = max(want.change, change)
        return
    peer.wants[entry.key] = Want(entry.version, change, turn.now.elapsed_s)
    peer.wants.move_to_end(entry.key)
    peer.waiting.pop(entry.key, None)


def ask(turn: Turn, peer: Peer) -> None:
    """Ask for the next heads, not for more than can be looked at soon."""
    now = turn.now.elapsed_s
    for want in peer.wants.values():
        if want.asked and want.ask_at_s <= now:
            want.asked = False
    taken = {inbound.offer.key for inbound in peer.inbound.values()} | set(peer.waiting)
    asked = sum(want.asked for want in peer.wants.values())
    room = min(limits.WANT_KEYS_MAX, 2 * limits.TRANSFERS_MAX - len(taken) - asked)
    keys: list[bytes] = []
    for key, want in peer.wants.items():
        if len(keys) >= room:
            break
        if key in taken or want.asked or want.ask_at_s > now:
            continue
        want.asked = True
        want.ask_at_s = now + ASK_S * 2 ** min(want.tries, 4)
        want.tries += 1
        keys.append(key)
    if keys:
        turn.send(peer, messages.Want(tuple(keys)))


def settle(turn: Turn, peer: Peer, key: bytes) -> None:
    """Nothing is left to do about a key."""
    peer.wants.pop(key, None)
    acknowledge(turn, peer)


def refuse(turn: Turn, peer: Peer, key: bytes) -> None:
    """Never ask for this version of a key again on this link."""
    want = peer.wants.pop(key, None)
    if want is not None and len(peer.refused) < REFUSED_MAX:
        peer.refused[key] = want.version
    acknowledge(turn, peer)


def hold(turn: Turn, peer: Peer, key: bytes, *, settle: bool = True) -> None:
    """
    Not now: ask again later.

    Args:
        settle: It does not hold back the rest of the log (a stamp from the
            future may stay one for years).
    """
    want = peer.wants.get(key)
    if want is None:
        return
    want.asked = False
    want.ask_at_s = turn.now.elapsed_s + (HOLD_S if settle else RETRY_S)
    if settle:
        want.change = 0
        acknowledge(turn, peer)


def again(turn: Turn, peer: Peer, key: bytes) -> None:
    """Ask again soon, but not for ever: what never arrives is given up on this link."""
    want = peer.wants.get(key)
    if want is not None and want.tries >= TRIES_MAX:
        turn.report(peer, "gave-up", "warning", detail=f"asked {want.tries} times")
        refuse(turn, peer, key)
    elif want is not None:
        want.asked = False
        want.ask_at_s = turn.now.elapsed_s + min(1.0 * want.tries, 30.0)


def gone(turn: Turn, peer: Peer, message: messages.Reject) -> None:
    """The peer has nothing to offer under a key: a newer change will say what it has."""
    want = peer.wants.get(message.key)
    if want is None or not want.asked:
        return
    if message.reason == "gone":
        settle(turn, peer, message.key)
    else:
        turn.report(peer, f"not-offered-{message.reason}", "warning")
        refuse(turn, peer, message.key)
    ask(turn, peer)


def acknowledge(turn: Turn, peer: Peer) -> None:
    """Remember how far the peer's log is settled, where that moved."""
    if not peer.index or peer.reconciliation is not None:
        return
    open_changes = [want.change for want in peer.wants.values() if want.change]
    settled = min(open_changes) - 1 if open_changes else peer.seen
    settled = min(settled, peer.seen)
    if settled > peer.settled:
        peer.settled = settled
        turn.out.append(effects.Acknowledge(peer.name, peer.index, settled))
