"""
How small structures lie in the database: event spans, tails, masks, times.

A chunk's spans are packed to a few bytes an event (positions as differences,
ISO timestamps as milliseconds wherever that gives the very same words back),
because they are the largest part of a chunk's row.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import msgpack

from imprintd.errors import IntegrityError
from imprintd.model.event import KINDS, ROLES, EventSpan
from imprintd.model.snapshot import Tail
from imprintd.model.source import Coverage

_ROLE_BIT: Final = {role: n for n, role in enumerate(ROLES)}
_KIND_BIT: Final = {kind: n for n, kind in enumerate(KINDS)}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_START: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a moment in UTC, written with `Z`
_MS_MAX: Final = 253_402_300_799_999  # the last millisecond of year 9999


def pack_spans(spans: Sequence[EventSpan], origin: int) -> bytes:
    """
    Pack spans; `origin` (the chunk's start) is what positions count from.

    An event is `gap, length, role and kind, turn step` and a time: a number
    is a step in ms from the last such time, `nil` none, a string the words.
    """
    flat: list[Any] = []
    at, turn, ms = origin, 0, 0
    for span in spans:
        time: Any = span.timestamp
        parsed = _regular_ms(time) if time is not None else None
        if parsed is not None:
            time, ms = parsed - ms, parsed
        elif time is not None and not _is_text(time):
            time = time.encode("utf-8", "surrogatepass")
        flat += (
            span.start - at,
            span.end - span.start,
            _ROLE_BIT[span.role] * 16 + _KIND_BIT[span.kind],
            span.turn - turn,
            time,
        )
        at, turn = span.end, span.turn
    packed: bytes = msgpack.packb(flat)
    return packed


def unpack_spans(packed: bytes, origin: int) -> tuple[EventSpan, ...]:
    """
    The spans again.

    Raises:
        IntegrityError: These are not packed spans.
    """
    try:
        flat = msgpack.unpackb(packed)
        spans: list[EventSpan] = []
        at, turn, ms = origin, 0, 0
        for n in range(0, len(flat), 5):
            gap, length, code, step, time = flat[n : n + 5]
            if isinstance(time, int):
                ms += time
                time = _regular(ms)
            elif isinstance(time, bytes):
                time = time.decode("utf-8", "surrogatepass")
            start = at + gap
            at, turn = start + length, turn + step
            spans.append(EventSpan(start, at, ROLES[code // 16], KINDS[code % 16], turn, time))
    except (ValueError, TypeError, IndexError, OverflowError, msgpack.UnpackException) as error:
        raise IntegrityError(f"stored event spans cannot be read: {type(error).__name__}") from None
    return tuple(spans)


def masks(spans: Iterable[EventSpan]) -> tuple[int, int]:
    """Roles and kinds present, as bit masks over ROLES and KINDS."""
    roles = kinds = 0
    for span in spans:
        roles |= 1 << _ROLE_BIT[span.role]
        kinds |= 1 << _KIND_BIT[span.kind]
    return roles, kinds


def role_mask(names: Iterable[str]) -> int:
    """Bit mask of some roles."""
    return sum(1 << n for n, role in enumerate(ROLES) if role in set(names))


def kind_mask(names: Iterable[str]) -> int:
    """Bit mask of some kinds."""
    return sum(1 << n for n, kind in enumerate(KINDS) if kind in set(names))


def times(spans: Iterable[EventSpan]) -> tuple[int | None, int | None]:
    """Earliest and latest time of some events in ms since the epoch, where one can be read."""
    known = [ms for span in spans if (ms := parse_ms(span.timestamp)) is not None]
    return (min(known), max(known)) if known else (None, None)


def parse_ms(timestamp: str | None) -> int | None:
    """Milliseconds of an ISO 8601 timestamp (UTC where it names no zone), else None."""
    if not timestamp or len(timestamp) > 64:
        return None
    try:
        moment = dt.datetime.fromisoformat(timestamp)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return (moment - _EPOCH) // dt.timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def pack_tail(tail: Tail) -> bytes:
    """A tail as bytes."""
    packed: bytes = msgpack.packb(
        (
            tail.closed_blocks,
            tail.closed_blocks_chain,
            tail.closed_bytes,
            tail.closed_chars,
            tail.closed_chunks,
            tail.closed_chunks_chain,
            tail.open_start,
            tail.total_chars,
            tail.events,
            tail.last_event_start,
            pack_spans(tail.open_events, tail.open_start),
        )
    )
    return packed


def unpack_tail(packed: bytes) -> Tail:
    """
    The tail again.

    Raises:
        IntegrityError: These bytes are no tail.
    """
    try:
        values = msgpack.unpackb(packed)
        if not isinstance(values, list) or len(values) != len(fields(Tail)):
            raise ValueError("no list of a tail's fields")  # noqa: TRY301 - one way out
        tail = Tail(*values[:-1])
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise IntegrityError(f"a stored tail cannot be read: {type(error).__name__}") from None
    return replace(tail, open_events=unpack_spans(values[-1], tail.open_start))


def pack_coverage(coverage: Coverage) -> str:
    """Coverage as JSON; what is zero is left out."""
    counts = {
        "omissions": dict(coverage.omissions),
        "unknown": dict(coverage.unknown),
        "zero_filled_lines": coverage.zero_filled_lines,
        "joined_lines": coverage.joined_lines,
        "repeated_records": coverage.repeated_records,
        "pending_tail_bytes": coverage.pending_tail_bytes,
    }
    # ASCII escapes keep names with lone surrogates storable
    return json.dumps({k: v for k, v in counts.items() if v}, sort_keys=True)


def unpack_coverage(text: str) -> Coverage:
    """
    The coverage again.

    Raises:
        IntegrityError: This is no coverage.
    """
    try:
        return Coverage(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise IntegrityError(f"stored coverage cannot be read: {type(error).__name__}") from None


def _regular_ms(timestamp: str) -> int | None:
    """Milliseconds, if `_regular` writes them in these very words."""
    if len(timestamp) != 24 or not timestamp.endswith("Z") or not timestamp.isascii():
        return None
    ms = parse_ms(timestamp)
    return ms if ms is not None and 0 <= ms <= _MS_MAX and _regular(ms) == timestamp else None


def _regular(ms: int) -> str:
    return (_START + dt.timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
