"""
The sync engine: events in, effects out, no I/O, no clock, no chance.

One replica serves all links of a device. Everything it remembers may be
lost at any moment; every message may be lost, doubled, late or out of order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from imprintd.sync import effects, events, offers, receive, reconcile, wants
from imprintd.sync.inventory import Inventory
from imprintd.sync.peer import Peer, Turn, catch_up
from imprintd.sync.ports import Journal
from imprintd.wire import limits, messages

SKEW_MS_NOTED: Final = 2_000
SKEW_MS_WARNED: Final = 120_000


class Replica:
    """
    The part of one device in every exchange.

    Args:
        journal: Read access to committed state.
        rules: Fingerprint of the point rules in use; None: no points wanted.
        build: Name and version, told to peers.
    """

    def __init__(
        self, journal: Journal, *, rules: str | None = None, build: str = "imprintd"
    ) -> None:
        self._journal = journal
        self._rules = rules
        self._build = build
        self._peers: dict[str, Peer] = {}

    def handle(self, event: events.SyncEvent, now: events.Instant) -> list[effects.Effect]:
        """
        What follows from an event.

        Args:
            event: What happened.
            now: Both clocks at that moment.

        Returns:
            Effects to carry out in this order. None raises: what a peer
            sends wrongly is reported, not thrown.
        """
        turn = Turn(self._journal, self._rules, self._build, self._peers, now)
        if isinstance(event, events.LinkUp):
            self._link_up(turn, event)
        elif isinstance(event, events.LocalPublished):
            turn.log_moved()
        elif isinstance(event, events.LinkDown):
            self._peers.pop(event.peer, None)
        else:
            self._for_peer(turn, event)
        for peer in self._peers.values():
            _set_timer(turn, peer)
        return turn.out

    def peer_names(self) -> tuple[str, ...]:
        """Peers whose link is up."""
        return tuple(self._peers)

    def behind(self, peer: str) -> int:
        """Heads of a peer that are known to be missing here; 0 for one without a link."""
        found = self._peers.get(peer)
        return 0 if found is None else len(found.wants) + max(0, found.change - found.seen)

    def _link_up(self, turn: Turn, event: events.LinkUp) -> None:
        peer = Peer(event.peer, event.link_key, Inventory(event.link_key))
        catch_up(self._journal, peer)
        peer.reconcile_at_s = turn.now.elapsed_s + reconcile.RECONCILE_FIRST_S
        self._peers[event.peer] = peer
        turn.send(
            peer,
            messages.Hello(
                limits.PROTOCOL_MIN, limits.PROTOCOL_MAX, (), self._build, turn.now.wall_ms
            ),
        )
        reconcile.summarise(turn, peer)

    def _for_peer(
        self,
        turn: Turn,
        event: events.FrameReceived
        | events.Staged
        | events.Checked
        | events.Committed
        | events.Refused
        | events.TimerFired,
    ) -> None:
        if isinstance(event, events.Committed):
            # others hear of it even when the link that brought it is down
            turn.log_moved()
        peer = self._peers.get(event.peer)
        if peer is None:
            return
        if isinstance(event, events.FrameReceived):
            _dispatch(turn, peer, event.message)
        elif isinstance(event, events.Staged):
            receive.on_staged(turn, peer, event)
        elif isinstance(event, events.Checked):
            receive.on_checked(turn, peer, event)
        elif isinstance(event, events.Committed):
            receive.on_committed(turn, peer, event)
        elif isinstance(event, events.Refused):
            receive.on_refused(turn, peer, event)
        else:
            _tick(turn, peer)


def _on_hello(turn: Turn, peer: Peer, message: messages.Hello) -> None:
    peer.hello = message
    skew_ms = message.wall_ms - turn.now.wall_ms
    if abs(skew_ms) > SKEW_MS_WARNED:
        turn.report(peer, "clock-skew", "warning", detail=f"{skew_ms} ms")
    elif abs(skew_ms) > SKEW_MS_NOTED:
        turn.report(peer, "clock-skew", "note", detail=f"{skew_ms} ms")
    if not peer.understood:
        # nothing else it says can be trusted to mean what it would mean here
        turn.report(
            peer,
            "no-common-protocol",
            "error",
            detail=f"{message.build} speaks {message.proto_min} to {message.proto_max}",
        )


def _on_reject(turn: Turn, peer: Peer, message: messages.Reject) -> None:
    if message.transfer:
        offers.on_end(turn, peer, message)
    else:
        wants.gone(turn, peer, message)


def _on_ping(turn: Turn, peer: Peer, message: messages.Ping) -> None:
    turn.send(peer, messages.Pong(message.token, turn.now.wall_ms))


def _on_unknown(turn: Turn, peer: Peer, message: messages.Unknown) -> None:
    peer.ignored += 1
    if message.must_understand:
        turn.send(peer, messages.Unsupported(message.type))


def _on_unsupported(turn: Turn, peer: Peer, message: messages.Unsupported) -> None:
    turn.report(peer, "peer-lacks-message", "warning", detail=f"type {message.type}")


def _on_pong(turn: Turn, peer: Peer, message: messages.Pong) -> None:
    del turn, peer, message


_HANDLERS: Final[dict[type, Callable[[Turn, Peer, Any], None]]] = {
    messages.Hello: _on_hello,
    messages.Summary: reconcile.on_summary,
    messages.Changes: reconcile.on_changes,
    messages.Ask: reconcile.on_ask,
    messages.Answer: reconcile.on_answer,
    messages.Want: offers.on_want,
    messages.Offer: receive.on_offer,
    messages.Accept: offers.on_accept,
    messages.Credit: offers.on_credit,
    messages.Reject: _on_reject,
    messages.Data: receive.on_data,
    messages.Points: receive.on_points,
    messages.Done: receive.on_done,
    messages.Committed: offers.on_end,
    messages.Nack: receive.on_nack,
    messages.Ping: _on_ping,
    messages.Pong: _on_pong,
    messages.Unsupported: _on_unsupported,
    messages.Unknown: _on_unknown,
}


def _dispatch(turn: Turn, peer: Peer, message: messages.Message) -> None:
    if not peer.understood and not isinstance(message, messages.Hello):
        peer.ignored += 1
        return
    _HANDLERS[type(message)](turn, peer, message)


def _tick(turn: Turn, peer: Peer) -> None:
    now = turn.now.elapsed_s
    peer.timer_s = None
    if not peer.understood:
        peer.summary_at_s = peer.reconcile_at_s = now + reconcile.RECONCILE_S
        return
    receive.tick(turn, peer)
    offers.expire(turn, peer)
    if peer.reconciliation is not None and peer.reconciliation.ask_at_s <= now:
        reconcile.ask(turn, peer)
    elif peer.reconciliation is None and peer.reconcile_at_s <= now:
        reconcile.begin_when_idle(turn, peer)
    wants.ask(turn, peer)
    if peer.summary_at_s <= now:
        reconcile.summarise(turn, peer)


def _set_timer(turn: Turn, peer: Peer) -> None:
    """Ask for the one timer of a peer where its next deadline moved."""
    deadlines = [peer.summary_at_s, peer.reconcile_at_s]
    if peer.reconciliation is not None:
        deadlines.append(peer.reconciliation.ask_at_s)
    for inbound in peer.inbound.values():
        deadlines.append(inbound.stalled_at_s)
        if inbound.credit_at_s is not None:
            deadlines.append(inbound.credit_at_s)
    deadlines += [outbound.expires_s for outbound in peer.outbound.values()]
    taken = {inbound.offer.key for inbound in peer.inbound.values()} | set(peer.waiting)
    deadlines += [want.ask_at_s for key, want in peer.wants.items() if key not in taken]
    # a deadline in the past is one that waits for room; looking again soon is enough
    at_s = max(min(deadlines), turn.now.elapsed_s + 0.05)
    if peer.timer_s is None or at_s < peer.timer_s or peer.timer_s <= turn.now.elapsed_s:
        peer.timer_s = at_s
        turn.out.append(effects.SetTimer(peer.name, at_s))
