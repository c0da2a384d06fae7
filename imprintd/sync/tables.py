"""
The life of a transfer at its receiver, as data.

    filling ──(all items durable)──▶ checking ──(more is needed)──▶ filling
                                        │
                                    (complete)
                                        ▼
    restamping                       closing ──(transcript right)──▶ publishing
        │                                                               │
        ╰───────────(durable)──▶ gone ◀───────────(durable)─────────────╯

A refusal leads to `gone` from everywhere, except that a head which moved
meanwhile sends `publishing` back to `checking`. `gone` is not kept: the
transfer is removed. The driver's results that come for a removed transfer
are passed over; they changed nothing that is remembered here.
"""

from __future__ import annotations

from typing import Final, Literal

from imprintd.errors import LocalProtocolError

State = Literal["filling", "checking", "closing", "publishing", "restamping", "gone"]
Step = Literal["filled", "needs", "complete", "closed", "moved", "committed", "refused"]

TRANSITIONS: Final[dict[State, dict[Step, State]]] = {
    "filling": {"filled": "checking", "refused": "gone"},
    "checking": {"needs": "filling", "complete": "closing", "refused": "gone"},
    "closing": {"closed": "publishing", "refused": "gone"},
    "publishing": {"committed": "gone", "moved": "checking", "refused": "gone"},
    "restamping": {"committed": "gone", "moved": "gone", "refused": "gone"},
}


def after(state: State, step: Step) -> State:
    """
    The state that a step leads to.

    Raises:
        LocalProtocolError: The step does not exist there: a bug of ours.
    """
    try:
        return TRANSITIONS[state][step]
    except KeyError:
        raise LocalProtocolError(f"transfer is {state}, cannot be {step}") from None
