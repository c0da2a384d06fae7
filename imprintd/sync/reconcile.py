"""
Finding out what the other side has: change numbers, and ranges when in doubt.

Normally a peer says how far it has looked into our change log, and gets what
follows. On first contact, after a restored database, or when numbers do not
fit, ranges of keys are compared instead of guessing.
"""

from __future__ import annotations

from typing import Final

from imprintd.sync import wants
from imprintd.sync.peer import Peer, Reconciliation, Turn
from imprintd.wire import limits, messages

SUMMARY_S: Final = 30.0
PULL_S: Final = 2.0
ASK_S: Final = 3.0
RECONCILE_S: Final = 24 * 3600.0
RECONCILE_FIRST_S: Final = 20.0
"""After a link came up and its logs were followed: finds what was held back
on an earlier link and has no change number any more."""

RECONCILE_AGAIN_S: Final = 600.0
"""After a comparison that led nowhere."""

ANSWERS_MAX: Final = 20_000
"""Answers of one comparison: 100,000 heads that all differ need about 7,000."""


def summarise(turn: Turn, peer: Peer) -> None:
    """Say where both logs stand; that is also how changes are pulled."""
    now = turn.now.elapsed_s
    peer.summary_at_s = now + SUMMARY_S
    if _behind(peer):
        peer.pull_at_s = now + PULL_S
        peer.summary_at_s = now + PULL_S
    turn.send(
        peer,
        messages.Summary(
            turn.journal.index_id,
            turn.journal.change(),
            peer.index,
            peer.seen,
            peer.settled,
            len(peer.inventory),
        ),
    )


def _behind(peer: Peer) -> bool:
    return (
        peer.reconciliation is None
        and peer.change > peer.seen
        and len(peer.wants) < wants.WANTS_MAX
    )


def _pull(turn: Turn, peer: Peer) -> None:
    if _behind(peer) and peer.pull_at_s <= turn.now.elapsed_s:
        summarise(turn, peer)


def on_summary(turn: Turn, peer: Peer, message: messages.Summary) -> None:
    """Give what the peer has not seen of our log; see whether we are behind in its log."""
    journal = turn.journal
    change = journal.change()
    if message.seen_index == journal.index_id:
        if message.seen < change:
            _tell(turn, peer, message.seen, change)
        elif message.seen > change:
            # our log lost numbers it had given out: the store renews the id
            turn.report(peer, "log-went-back", "error")
    if message.index != peer.index:
        # a smaller number under the same index is only a summary that comes late
        _follow(turn, peer, message)
        return
    peer.change = max(peer.change, message.change)
    _pull(turn, peer)


def _follow(turn: Turn, peer: Peer, message: messages.Summary) -> None:
    """A log that is new to us: from its start when we hold nothing, else by ranges."""
    first = not peer.index
    peer.index = message.index
    peer.change = message.change
    peer.seen = peer.settled = 0
    peer.refused.clear()
    known = turn.journal.acknowledged(peer.name) if first else None
    if known is not None and known[0] == message.index and known[1] <= message.change:
        peer.seen = peer.settled = known[1]
    elif len(peer.inventory) and message.heads:
        begin(turn, peer)
        return
    peer.pull_at_s = 0.0
    _pull(turn, peer)


def _tell(turn: Turn, peer: Peer, seen: int, change: int) -> None:
    lines = turn.journal.heads_after(seen, limits.CHANGES_ENTRIES_MAX)
    last = lines[-1].change if len(lines) == limits.CHANGES_ENTRIES_MAX else change
    entries = []
    for line in lines:
        key = peer.inventory.put(line.source, line.stamp)
        version = peer.inventory.version(key)
        assert version is not None
        if peer.known.get(key) != version:
            entries.append(messages.Change(line.change, key, version))
    turn.send(peer, messages.Changes(turn.journal.index_id, seen, last, tuple(entries)))


def on_changes(turn: Turn, peer: Peer, message: messages.Changes) -> None:
    """Take up the next part of the log we follow; anything else is asked for again."""
    if (
        message.index != peer.index
        or message.prev != peer.seen
        or peer.reconciliation is not None
        or len(peer.wants) >= wants.WANTS_MAX
    ):
        peer.ignored += 1
        return
    peer.seen = message.last
    peer.change = max(peer.change, message.last)
    for entry in message.entries:
        wants.note(turn, peer, entry, entry.change)
    wants.acknowledge(turn, peer)
    wants.ask(turn, peer)
    peer.pull_at_s = 0.0
    _pull(turn, peer)


def begin_when_idle(turn: Turn, peer: Peer) -> None:
    """Compare everything unless there is work that will change the result."""
    if not peer.index or peer.inbound or peer.waiting or _behind(peer):
        peer.reconcile_at_s = turn.now.elapsed_s + RECONCILE_FIRST_S
    else:
        begin(turn, peer)


def begin(turn: Turn, peer: Peer) -> None:
    """Compare everything, range by range."""
    peer.rounds += 1
    peer.reconciliation = Reconciliation(peer.rounds, {(b"", b""): False})
    peer.reconcile_at_s = turn.now.elapsed_s + RECONCILE_S
    ask(turn, peer)


def ask(turn: Turn, peer: Peer) -> None:
    """Ask for the ranges that have not been asked for; for all of them when it is time."""
    comparison = peer.reconciliation
    if comparison is None:
        return
    now = turn.now.elapsed_s
    due = comparison.ask_at_s <= now
    bounds = [bound for bound, asked in comparison.pending.items() if due or not asked]
    bounds = bounds[: limits.RANGE_ASKS_MAX]
    if due:
        for bound in comparison.pending:
            comparison.pending[bound] = False
    if not bounds:
        return
    for bound in bounds:
        comparison.pending[bound] = True
    comparison.ask_at_s = now + ASK_S
    spans = tuple(peer.inventory.span(low, high) for low, high in bounds)
    turn.send(peer, messages.Ask(comparison.round, spans))


def on_ask(turn: Turn, peer: Peer, message: messages.Ask) -> None:
    """Answer every range: equal, or all heads of a small one, or smaller ranges."""
    index, change = turn.journal.index_id, turn.journal.change()
    for theirs in message.spans:
        mine = peer.inventory.span(theirs.low, theirs.high)
        equal = mine == theirs
        few = not equal and mine.count <= limits.RANGE_LEAF
        many = not equal and not few
        turn.send(
            peer,
            messages.Answer(
                message.round,
                theirs.low,
                theirs.high,
                index,
                change,
                equal,
                peer.inventory.split(theirs.low, theirs.high) if many else (),
                peer.inventory.entries(theirs.low, theirs.high) if few else (),
            ),
        )


def on_answer(turn: Turn, peer: Peer, message: messages.Answer) -> None:
    """Go deeper where a range differs; want what a small one lists and we lack."""
    comparison = peer.reconciliation
    bound = (message.low, message.high)
    if comparison is None or message.round != comparison.round or bound not in comparison.pending:
        peer.ignored += 1
        return
    del comparison.pending[bound]
    comparison.answers += 1
    if message.index != peer.index or comparison.answers > ANSWERS_MAX:
        _give_up(turn, peer)
        return
    if comparison.change is None or message.change < comparison.change:
        comparison.change = message.change
    end = message.low
    for theirs in message.spans:
        inside = end == theirs.low and (
            theirs.high > theirs.low if theirs.high else theirs.high == message.high
        )
        if not inside or (theirs.low, theirs.high) == bound:
            turn.report(peer, "bad-ranges", "warning")
            _give_up(turn, peer)
            return
        end = theirs.high
        if peer.inventory.span(theirs.low, theirs.high) != theirs:
            comparison.pending[theirs.low, theirs.high] = False
    for entry in message.entries:
        wants.note(turn, peer, entry, comparison.change)
    if comparison.pending:
        ask(turn, peer)
    else:
        peer.reconciliation = None
        peer.seen = max(peer.seen, comparison.change)
        wants.acknowledge(turn, peer)
        peer.pull_at_s = 0.0
        _pull(turn, peer)
    wants.ask(turn, peer)


def _give_up(turn: Turn, peer: Peer) -> None:
    """Ranges lead nowhere: the whole log, from its start, always does."""
    peer.reconciliation = None
    peer.reconcile_at_s = turn.now.elapsed_s + RECONCILE_AGAIN_S
    peer.seen = 0
    peer.pull_at_s = 0.0
    turn.report(peer, "ranges-failed", "note")
    _pull(turn, peer)
