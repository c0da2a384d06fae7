"""
What travels inside DATA and POINTS besides text: manifest pages and vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imprintd.errors import RemoteProtocolError
from imprintd.model.event import KINDS, ROLES, EventSpan
from imprintd.model.snapshot import Chunk, Point
from imprintd.wire import limits
from imprintd.wire.codec import pack, unpack
from imprintd.wire.fields import number, octets, row, text

_VECTOR_BYTES_MAX = 8192
_WINDOWS_MAX = 4096


def encode_page(chunks: Sequence[Chunk]) -> bytes:
    """Up to PAGE_ENTRIES chunks of a manifest, in order."""
    return pack(
        [
            [
                chunk.memory_id,
                chunk.start,
                chunk.end,
                chunk.content_digest,
                (1 if chunk.long_event else 0) | (2 if chunk.code else 0),
                [
                    [
                        event.start,
                        event.end,
                        ROLES.index(event.role),
                        KINDS.index(event.kind),
                        event.turn,
                        event.timestamp,
                    ]
                    for event in chunk.events
                ],
            ]
            for chunk in chunks
        ]
    )


def decode_page(data: bytes) -> tuple[Chunk, ...]:
    """
    The chunks of a page.

    Raises:
        RemoteProtocolError: It is no page, or a span is turned around.
    """
    error = RemoteProtocolError("manifest page is damaged")
    rows = unpack(data, size_max=limits.PLAIN_BYTES_MAX, items_max=limits.PAGE_ITEMS_MAX)
    if len(row(rows, error, 0)) > limits.PAGE_ENTRIES:
        raise error
    return tuple(_chunk(entry, error) for entry in rows)


def _chunk(value: Any, error: RemoteProtocolError) -> Chunk:
    parts = row(value, error, 6)
    start = number(parts[1], error)
    end = number(parts[2], error, start)
    flags = number(parts[4], error, 0, 255)
    return Chunk(
        text(parts[0], error, 64),
        start,
        end,
        octets(parts[3], error, 32),
        bool(flags & 1),
        bool(flags & 2),
        tuple(_event(event, error, start, end) for event in row(parts[5], error, 0)),
    )


def _event(value: Any, error: RemoteProtocolError, low: int, high: int) -> EventSpan:
    parts = row(value, error, 6)
    start = number(parts[0], error, low, high)
    stamp = parts[5]
    return EventSpan(
        start,
        number(parts[1], error, start, high),
        ROLES[number(parts[2], error, 0, len(ROLES) - 1)],
        KINDS[number(parts[3], error, 0, len(KINDS) - 1)],
        number(parts[4], error),
        None if stamp is None else text(stamp, error, limits.NAME_CHARS_MAX, clean=False),
    )


def encode_points(points: Sequence[Point]) -> bytes:
    """Points of some chunks; their rules stand in the message around them."""
    return pack([[p.content_digest, p.window, p.windows, p.vector] for p in points])


def decode_points(data: bytes, rules: str) -> tuple[Point, ...]:
    """
    The points in a POINTS frame.

    Whether a vector has the model's length and is finite is for the receiver
    to say, who knows the model.

    Raises:
        RemoteProtocolError: They are no points.
    """
    error = RemoteProtocolError("points are damaged")
    rows = unpack(data, size_max=limits.PLAIN_BYTES_MAX, items_max=limits.PAGE_ITEMS_MAX)
    found = []
    for entry in row(rows, error, 0):
        parts = row(entry, error, 4)
        windows = number(parts[2], error, 1, _WINDOWS_MAX)
        vector = octets(parts[3], error)
        if not vector or len(vector) % 2 or len(vector) > _VECTOR_BYTES_MAX:
            raise error
        found.append(
            Point(
                octets(parts[0], error, 32),
                number(parts[1], error, 0, windows - 1),
                windows,
                rules,
                vector,
            )
        )
    return tuple(found)
