"""
Reading one value where it stands: quoted at any depth of escaping, or bare.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

VALUE_MAX: Final = 4096
"""Bytes. A longer value of a name is no password; keys have their own readers."""

_OPEN: Final = re.compile(
    rb"(?:[bBrRuUfFL@$]{1,2}(?=[\"'`]))?(\\{0,15})(\"\"\"|'''|[\"'`]{1,2}|&quot;|&#3[49];|&apos;)"
)
_BARE: Final = re.compile(rb"[^\s\"'`<>\\\x00|]+")
_BACKSLASHED: Final = re.compile(
    rb"\\(?![nrt\"'/0bfv`]|u00[0-9a-fA-F]{2}|x[0-9a-fA-F]{2}|\s|\\)[^\s\"'`<>\\\x00|]*"
)


class Literal(NamedTuple):
    """
    A value in place.

    Attributes:
        start: First byte of the value itself.
        end: Just past it, before the closing quote and its backslashes.
        quoted: It stands in quotes.
    """

    start: int
    end: int
    quoted: bool


def read(data: bytes, at: int, *, stops: bytes = b"") -> Literal | None:
    """
    The value that begins at `at`; None where there is none.

    Args:
        data: The text.
        at: Where a quote or the value's first byte stands.
        stops: Bytes that end a bare value here (`&` in a query).
    """
    opening = _OPEN.match(data, at, at + 24)
    if opening is not None:
        closed = _quoted(data, opening)
        if closed is not None:
            return closed
        at = opening.end()
    limit = at + VALUE_MAX
    for byte in stops:
        place = data.find(byte, at, limit)
        if place >= 0:
            limit = place
    found = _BARE.match(data, at, limit)
    if found is None:
        return None
    end = found.end()
    while data[end : end + 1] == b"\\":
        more = _BACKSLASHED.match(data, end, limit)
        if more is None:
            break
        end = more.end()
    return Literal(at, end, quoted=False) if end > at else None


def _quoted(data: bytes, opening: re.Match[bytes]) -> Literal | None:
    """To the closing quote of the same depth, or of a shallower one."""
    depth, mark = len(opening[1]), opening[2]
    if len(mark) == 2 and mark[0] == mark[1] and mark != b"``":
        return Literal(opening.end(), opening.end(), quoted=True)  # "" or ''
    if len(mark) == 2:
        mark = mark if mark == b"``" else mark[1:]
    start = opening.end()
    limit = min(len(data), start + VALUE_MAX)
    at = start
    while True:
        at = data.find(mark, at, limit)
        if at < 0:
            return None
        run = at
        while run > start and data[run - 1] == 92:
            run -= 1
        if at - run <= depth or ((at - run) % 2 == 0 and depth == 0):
            end = run if at - run <= depth else at
            break
        at += len(mark)
    if len(mark) < 3 and b"\n" in data[start:end] and mark != b"`":
        return None
    return Literal(start, end, quoted=True)


def trimmed(data: bytes, start: int, end: int, *, ends: bytes = b".,;:)]}") -> int:
    """The end without what belongs to the sentence or the code around."""
    while end > start and data[end - 1] in ends:
        end -= 1
    return end
