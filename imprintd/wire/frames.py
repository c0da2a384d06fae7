"""
Messages to bytes and back: `[type, flags, body]` in msgpack.

Bit 0 of flags says that the receiver must understand the message or answer
UNSUPPORTED. Types without it that are not known are ignored and counted.
Further array elements and unknown keys are ignored, so fields can be added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from imprintd.errors import LocalProtocolError, RemoteProtocolError
from imprintd.wire import limits, messages, offer
from imprintd.wire.codec import pack, unpack
from imprintd.wire.fields import Fields, number, octets, row, text

MUST_UNDERSTAND: Final = 1


def encode(message: messages.Message) -> bytes:
    """
    The bytes of a message.

    Raises:
        LocalProtocolError: The message is over a limit of the protocol, or of
            a kind that is never sent.
    """
    entry = _BY_CLASS.get(type(message))
    if entry is None:
        raise LocalProtocolError(f"{type(message).__name__} is never sent")
    code, write = entry
    data = pack([code, 0, write(message)])
    if len(data) > _size_max(code):
        raise LocalProtocolError(f"{type(message).__name__} of {len(data)} bytes")
    return data


def decode(data: bytes | memoryview) -> messages.Message:
    """
    The message that some bytes hold.

    Raises:
        RemoteProtocolError: They hold no message of this protocol.
    """
    if len(data) > limits.FRAME_BYTES_MAX:
        raise RemoteProtocolError(f"message of {len(data)} bytes")
    envelope = unpack(data, size_max=limits.FRAME_BYTES_MAX)
    error = RemoteProtocolError("message is no [type, flags, body]")
    parts = row(envelope, error, 3)
    code = number(parts[0], error, 0, 255)
    flags = number(parts[1], error, 0, 255)
    entry = _BY_CODE.get(code)
    if entry is None:
        return messages.Unknown(code, bool(flags & MUST_UNDERSTAND))
    if len(data) > _size_max(code):
        raise RemoteProtocolError(f"message of type {code} has {len(data)} bytes")
    name, read = entry
    return read(Fields(name, parts[2]))


def _size_max(code: int) -> int:
    return limits.FRAME_BYTES_MAX if code in _BULKY else limits.CONTROL_BYTES_MAX


def _hello(m: messages.Hello) -> dict[str, Any]:
    return {
        "proto": [m.proto_min, m.proto_max],
        "caps": list(m.caps),
        "build": m.build,
        "wall": m.wall_ms,
    }


def _read_hello(f: Fields) -> messages.Hello:
    versions = f.many("proto", 8, lambda v, e: number(v, e, 0, 255))
    low, high = versions[:2] if len(versions) >= 2 else (0, 0)
    if not 0 < low <= high:
        raise f.bad("proto")
    caps = f.many("caps", 64, lambda v, e: text(v, e, 64))
    return messages.Hello(low, high, caps, f.text("build"), f.integer("wall"))


def _summary(m: messages.Summary) -> dict[str, Any]:
    return {
        "index": m.index,
        "change": m.change,
        "seen_index": m.seen_index,
        "seen": m.seen,
        "settled": m.settled,
        "heads": m.heads,
    }


def _read_summary(f: Fields) -> messages.Summary:
    return messages.Summary(
        f.octets("index", 8),
        f.integer("change"),
        f.octets("seen_index", 0, 8),
        f.integer("seen"),
        f.integer("settled"),
        f.integer("heads"),
    )


def _changes(m: messages.Changes) -> dict[str, Any]:
    return {"index": m.index, "prev": m.prev, "last": m.last, "heads": _entries(m.entries)}


def _read_changes(f: Fields) -> messages.Changes:
    found = messages.Changes(
        f.octets("index", 8),
        f.integer("prev"),
        f.integer("last"),
        f.many("heads", limits.CHANGES_ENTRIES_MAX, _read_change),
    )
    before = found.prev
    for entry in found.entries:
        if not before < entry.change <= found.last:
            raise f.bad("heads")
        before = entry.change
    if found.last < found.prev:
        raise f.bad("last")
    return found


def _entries(entries: tuple[messages.Change, ...]) -> list[list[Any]]:
    return [[entry.change, entry.key, entry.version] for entry in entries]


def _read_change(value: Any, error: RemoteProtocolError) -> messages.Change:
    parts = row(value, error, 3)
    return messages.Change(
        number(parts[0], error), octets(parts[1], error, 16), octets(parts[2], error, 16)
    )


def _spans(spans: tuple[messages.Span, ...]) -> list[list[Any]]:
    return [[span.low, span.high, span.count, span.sum] for span in spans]


def _read_span(value: Any, error: RemoteProtocolError) -> messages.Span:
    parts = row(value, error, 4)
    span = messages.Span(
        octets(parts[0], error, 0, 16),
        octets(parts[1], error, 0, 16),
        number(parts[2], error),
        octets(parts[3], error, 16),
    )
    if span.high and span.low >= span.high:
        raise error
    return span


def _ask(m: messages.Ask) -> dict[str, Any]:
    return {"round": m.round, "spans": _spans(m.spans)}


def _read_ask(f: Fields) -> messages.Ask:
    return messages.Ask(f.integer("round"), f.many("spans", limits.RANGE_ASKS_MAX, _read_span))


def _answer(m: messages.Answer) -> dict[str, Any]:
    return {
        "round": m.round,
        "low": m.low,
        "high": m.high,
        "index": m.index,
        "change": m.change,
        "equal": m.equal,
        "spans": _spans(m.spans),
        "heads": _entries(m.entries),
    }


def _read_answer(f: Fields) -> messages.Answer:
    return messages.Answer(
        f.integer("round"),
        f.octets("low", 0, 16),
        f.octets("high", 0, 16),
        f.octets("index", 8),
        f.integer("change"),
        f.flag("equal"),
        f.many("spans", limits.RANGE_FAN_OUT, _read_span),
        f.many("heads", limits.RANGE_ANSWER_ENTRIES_MAX, _read_change),
    )


def _want(m: messages.Want) -> dict[str, Any]:
    return {"keys": list(m.keys)}


def _read_want(f: Fields) -> messages.Want:
    return messages.Want(f.many("keys", limits.WANT_KEYS_MAX, lambda v, e: octets(v, e, 16)))


def _accept(m: messages.Accept) -> dict[str, Any]:
    return {
        "transfer": m.transfer,
        "turn": m.turn,
        "need": [list(pair) for pair in m.need],
        "prefixes": [[p.item, p.size, p.digest] for p in m.prefixes],
        "frames": m.frames,
        "size": m.size,
    }


def _read_accept(f: Fields) -> messages.Accept:
    return messages.Accept(
        f.octets("transfer", 16),
        f.integer("turn"),
        f.ranges("need"),
        f.many("prefixes", limits.PREFIXES_MAX, _read_prefix),
        f.integer("frames"),
        f.integer("size"),
    )


def _read_prefix(value: Any, error: RemoteProtocolError) -> messages.Prefix:
    parts = row(value, error, 3)
    return messages.Prefix(
        number(parts[0], error),
        number(parts[1], error, 1, limits.PLAIN_BYTES_MAX),
        octets(parts[2], error, 32),
    )


def _credit(m: messages.Credit) -> dict[str, Any]:
    return {
        "transfer": m.transfer,
        "turn": m.turn,
        "need": [list(pair) for pair in m.need],
        "frames": m.frames,
        "size": m.size,
        "again": m.again,
    }


def _read_credit(f: Fields) -> messages.Credit:
    return messages.Credit(
        f.octets("transfer", 16),
        f.integer("turn"),
        f.ranges("need"),
        f.integer("frames"),
        f.integer("size"),
        f.flag("again"),
    )


def _reject(m: messages.Reject) -> dict[str, Any]:
    return {"transfer": m.transfer, "key": m.key, "reason": m.reason}


def _read_reject(f: Fields) -> messages.Reject:
    return messages.Reject(f.octets("transfer", 0, 16), f.octets("key", 16), f.text("reason", 32))


def _data(m: messages.Data) -> dict[str, Any]:
    return {
        "transfer": m.transfer,
        "item": m.item,
        "offset": m.offset,
        "size": m.size,
        "digest": m.digest,
        "zstd": m.packed,
    }


def _read_data(f: Fields) -> messages.Data:
    return messages.Data(
        f.octets("transfer", 16),
        f.integer("item"),
        f.integer("offset", 0, limits.PLAIN_BYTES_MAX),
        f.integer("size", 0, limits.PLAIN_BYTES_MAX),
        f.octets("digest", 32),
        f.octets("zstd"),
    )


def _points(m: messages.Points) -> dict[str, Any]:
    return {
        "transfer": m.transfer,
        "items": [list(pair) for pair in m.items],
        "rules": m.rules,
        "size": m.size,
        "digest": m.digest,
        "zstd": m.packed,
    }


def _read_points(f: Fields) -> messages.Points:
    return messages.Points(
        f.octets("transfer", 16),
        f.ranges("items"),
        f.text("rules"),
        f.integer("size", 0, limits.PLAIN_BYTES_MAX),
        f.octets("digest", 32),
        f.octets("zstd"),
    )


def _done(m: messages.Done) -> dict[str, Any]:
    return {"transfer": m.transfer, "items": m.items, "transcript": m.transcript}


def _read_done(f: Fields) -> messages.Done:
    return messages.Done(f.octets("transfer", 16), f.integer("items"), f.octets("transcript", 32))


def _committed(m: messages.Committed) -> dict[str, Any]:
    return {"transfer": m.transfer, "key": m.key, "version": m.version}


def _read_committed(f: Fields) -> messages.Committed:
    return messages.Committed(
        f.octets("transfer", 16), f.octets("key", 16), f.octets("version", 16)
    )


_Writer = Callable[[Any], dict[str, Any]]
_Reader = Callable[[Fields], messages.Message]

_TABLE: Final[tuple[tuple[int, type, _Writer, _Reader], ...]] = (
    (1, messages.Hello, _hello, _read_hello),
    (2, messages.Summary, _summary, _read_summary),
    (3, messages.Changes, _changes, _read_changes),
    (4, messages.Ask, _ask, _read_ask),
    (5, messages.Answer, _answer, _read_answer),
    (6, messages.Want, _want, _read_want),
    (7, messages.Offer, offer.write, offer.read),
    (8, messages.Accept, _accept, _read_accept),
    (9, messages.Reject, _reject, _read_reject),
    (10, messages.Data, _data, _read_data),
    (11, messages.Points, _points, _read_points),
    (12, messages.Credit, _credit, _read_credit),
    (13, messages.Done, _done, _read_done),
    (14, messages.Committed, _committed, _read_committed),
    (
        15,
        messages.Nack,
        lambda m: {"transfer": m.transfer, "reason": m.reason},
        lambda f: messages.Nack(f.octets("transfer", 16), f.text("reason", 32)),
    ),
    (
        16,
        messages.Ping,
        lambda m: {"token": m.token},
        lambda f: messages.Ping(f.integer("token")),
    ),
    (
        17,
        messages.Pong,
        lambda m: {"token": m.token, "wall": m.wall_ms},
        lambda f: messages.Pong(f.integer("token"), f.integer("wall")),
    ),
    (
        18,
        messages.Unsupported,
        lambda m: {"type": m.type},
        lambda f: messages.Unsupported(f.integer("type", 0, 255)),
    ),
)
"""19 to 31 are kept for TOMBSTONE, PURGE, REKEY, UNPAIR and ERROR."""

_BULKY: Final = frozenset({10, 11})
_BY_CLASS: Final[dict[type, tuple[int, _Writer]]] = {
    kind: (code, write) for code, kind, write, _ in _TABLE
}
_BY_CODE: Final[dict[int, tuple[str, _Reader]]] = {
    code: (kind.__name__.upper(), read) for code, kind, _, read in _TABLE
}
