"""
Where a forked rollout stops repeating its parent.

A fork or a sub-agent's rollout begins with the parent's records, written
again within moments under new timestamps. Two things tell the end of that
prefix: a turn whose id (a UUID of version 7, which holds its time) is no older
than the thread itself, or, in versions without turn ids, the first pause in
the timestamps. Where neither can be told, nothing is dropped.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final

from imprintd.readers.codex_names import is_subagent
from imprintd.readers.memory import digest
from imprintd.readers.tally import word

_UUID7: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-", re.IGNORECASE)
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.")
_TURN_IDS_SINCE: Final = (0, 104)
_PAUSE_MS: Final = 1000
_LONG_PAUSE_MS: Final = 10_000
"""No replay stops that long; should a turn id never come, nothing more is lost."""


class Replay:
    """
    Follows a rollout's first records; see the module.

    Call `drops` once for every record, in order.
    """

    __slots__ = ("_by_turn", "_id", "_last_ms", "_on", "_over", "_own_ms", "_sub")

    def __init__(self, table: dict[str, Any]) -> None:
        self._id: str = table.get("id", "")  # a digest
        self._own_ms: int | None = table.get("own")
        self._sub: bool = table.get("sub", False)
        self._by_turn: bool = table.get("turns", False)
        self._on: bool = table.get("on", False)
        self._over: bool = table.get("over", False)
        self._last_ms: int | None = table.get("last")

    def pack(self) -> dict[str, Any]:
        """For the state."""
        return {
            "id": self._id,
            "own": self._own_ms,
            "sub": self._sub,
            "turns": self._by_turn,
            "on": self._on,
            "over": self._over,
            "last": self._last_ms,
        }

    def drops(self, kind: object, payload: dict[str, Any], stamp: object) -> bool:
        """Whether a record belongs to the replayed prefix."""
        if self._over:
            return False
        if kind == "session_meta":
            return self._meta(payload, stamp)
        if not self._id:
            # no thread of its own to compare with
            self._over = True
            return False
        turn = turn_of(kind, payload)
        made_ms = uuid7_ms(turn)
        if not self._on:
            if made_ms is not None and self._forked_before(made_ms):
                self._on = self._by_turn = True
                self._last_ms = milliseconds(stamp)
                return True
            # the conversation's own first turn: no replay will come
            self._over = made_ms is not None
            return False
        return self._replayed(made_ms, turn, milliseconds(stamp))

    def _meta(self, payload: dict[str, Any], stamp: object) -> bool:
        name = payload.get("id")
        if type(name) is not str:
            return self._on
        if not self._id:
            self._id = digest("thread\0" + name).hex()
            self._own_ms = uuid7_ms(name) or milliseconds(payload.get("timestamp"))
            self._sub = is_subagent(payload)
            version = _VERSION.match(str(payload.get("cli_version", "")))
            since = (int(version[1]), int(version[2])) if version else (0, 0)
            self._by_turn = uuid7_ms(name) is not None and since >= _TURN_IDS_SINCE
            return False
        if (
            digest("thread\0" + name).hex() != self._id
            and not self._on
            and (self._by_turn or not self._sub)
        ):
            self._on = True
            self._last_ms = milliseconds(stamp)
        return self._on

    def _forked_before(self, made_ms: int) -> bool:
        return self._own_ms is not None and made_ms < self._own_ms

    def _replayed(self, made_ms: int | None, turn: str | None, now_ms: int | None) -> bool:
        if self._by_turn:
            ended = turn is not None and (made_ms is None or not self._forked_before(made_ms))
            pause_ms = _LONG_PAUSE_MS
        else:
            ended = now_ms is None
            pause_ms = _PAUSE_MS
        if now_ms is not None:
            ended |= self._last_ms is not None and now_ms - self._last_ms > pause_ms
            self._last_ms = now_ms
        if ended:
            self._on, self._over = False, True
        return self._on


def turn_of(kind: object, payload: dict[str, Any]) -> str | None:
    """The turn that a record opens or belongs to by its context."""
    opens = kind == "turn_context" or (
        kind == "event_msg" and word(payload.get("type")) in {"task_started", "turn_started"}
    )
    turn = payload.get("turn_id") if opens else None
    return turn if type(turn) is str and turn else None


def uuid7_ms(name: str | None) -> int | None:
    """The time in a UUID of version 7, ms since the epoch."""
    match = _UUID7.match(name) if name else None
    return int(match[1] + match[2], 16) if match else None


def milliseconds(stamp: object) -> int | None:
    """An ISO 8601 timestamp as ms since the epoch."""
    if type(stamp) is not str or len(stamp) > 40:
        return None
    try:
        moment = dt.datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1000)
