"""
Framing of JSONL: bytes in, whole records out, damage named or salvaged.

Only complete lines are consumed. What crashes and concurrent writers leave
behind (NUL runs, two records on one line, torn records) is told apart here,
once, for every client that writes JSONL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from imprintd.errors import DamagedLine

_PADDING: Final = b" \t\r\0"
_GAP: Final = re.compile(r"[ \t\r\0]*")
_START: Final = re.compile(r'\{\s*"')
_ATTEMPTS_MAX: Final = 256
"""Places of one torn line where a whole record is looked for: bounded work."""
_DIGITS_MAX: Final = 4000
"""Python refuses to read longer whole numbers; they become floats."""

REMEDY: Final = "imprintd learn --salvage PATH takes every whole record and counts the torn bytes"


@dataclass(slots=True)
class Framed:
    """
    The records of some bytes.

    Attributes:
        records: Decoded JSON values in file order.
        consumed: Bytes done with.
        lines: Complete lines among them.
        zero_filled: Lines of NULs only, and lines with NULs beside a record.
        joined: Lines that held two or more whole records.
        damaged_bytes: Torn bytes left out (salvage only).
        invalid_utf8: Lines that were not UTF-8 and were decoded with U+FFFD.
        passed: Whole records of the types that are only counted, by type.
    """

    records: list[Any] = field(default_factory=list)
    consumed: int = 0
    lines: int = 0
    zero_filled: int = 0
    joined: int = 0
    damaged_bytes: int = 0
    invalid_utf8: int = 0
    passed: dict[str, int] = field(default_factory=dict)


def frame(
    data: bytes,
    *,
    final: bool,
    salvage: bool,
    is_record: Callable[[Any], bool],
    counted: Collection[str] = (),
) -> Framed:
    """
    Cut bytes into records.

    Args:
        data: Bytes that follow what was consumed before.
        final: A whole record without its newline is taken, too.
        salvage: Take whole records of a damaged line, count the rest.
        is_record: Tells a client's record from an inner object of a torn one.
        counted: Types of records that are only counted. They are let go at
            once: files of 99 % progress lines must stay cheap.

    Raises:
        DamagedLine: A complete line is not JSON and `salvage` is off.
    """
    framed = Framed()
    end = data.rfind(b"\n") + 1
    records = framed.records
    loads = orjson.loads
    for number, line in enumerate(data[: end - 1].split(b"\n") if end else (), 1):
        try:
            value = loads(line)
        except orjson.JSONDecodeError:
            _slow_line(framed, line, number, salvage=salvage, is_record=is_record)
            continue
        if counted and type(value) is dict:
            kind = value.get("type")
            if type(kind) is str and kind in counted:
                framed.passed[kind] = framed.passed.get(kind, 0) + 1
                continue
        records.append(value)
    framed.lines = data.count(b"\n", 0, end)
    framed.consumed = end
    tail = data[end:]
    if final and tail.strip(_PADDING):
        text, replaced = _decoded(tail)
        values, at = _whole_records(text)
        if values and at == len(text) and all(type(value) is dict for value in values):
            records.extend(values)
            framed.consumed = len(data)
            framed.joined += len(values) > 1
            framed.invalid_utf8 += replaced
            framed.zero_filled += b"\0" in tail
    return framed


def _slow_line(
    framed: Framed,
    line: bytes,
    number: int,
    *,
    salvage: bool,
    is_record: Callable[[Any], bool],
) -> None:
    bare = line.strip(_PADDING)
    if not bare:
        framed.zero_filled += b"\0" in line
        return
    text, replaced = _decoded(line)
    values, at = _whole_records(text)
    whole = at == len(text) and bool(values)
    # several values on one line are records only if each is an object
    if whole and (len(values) == 1 or all(type(value) is dict for value in values)):
        framed.zero_filled += b"\0" in line
        framed.joined += len(values) > 1
        framed.invalid_utf8 += replaced
        framed.records.extend(values)
        return
    if not salvage:
        raise DamagedLine(
            f"line {number} is not JSON: {_why(text, at)}",
            reason="damaged-line",
            line=number,
            remedy=REMEDY,
        )
    kept, torn = _salvaged(text, is_record)
    framed.zero_filled += b"\0" in line
    framed.records.extend(kept)
    framed.joined += len(kept) > 1
    framed.damaged_bytes += torn
    framed.invalid_utf8 += replaced


def _decoded(line: bytes) -> tuple[str, bool]:
    try:
        return line.decode().removeprefix("\ufeff"), False
    except UnicodeDecodeError:
        return line.decode(errors="replace").removeprefix("\ufeff"), True


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _DIGITS_MAX else float(digits)


_DECODER: Final = json.JSONDecoder(parse_int=_whole, strict=False)


def _value_at(text: str, at: int) -> tuple[Any, int] | None:
    """One JSON value and where it ends; None if there is no whole one."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError, OverflowError):
        return None
    # raw control characters are read, but NULs stand where a crash lost words
    return None if text.find("\0", at, end) >= 0 else (value, end)


def _whole_records(text: str) -> tuple[list[Any], int]:
    """Values that follow one another from the start, and where they stop."""
    values: list[Any] = []
    at = _skip(text, 0)
    while at < len(text):
        found = _value_at(text, at)
        if found is None:
            break
        values.append(found[0])
        at = _skip(text, found[1])
    return values, at


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _salvaged(text: str, is_record: Callable[[Any], bool]) -> tuple[list[Any], int]:
    """
    Whole records of a torn line, and how many bytes are not part of one.

    An inner object of a torn record is no record: a record is followed by the
    end of the line or by the start of another one.
    """
    kept: list[Any] = []
    torn = 0
    at = _skip(text, 0)
    attempts = 0
    while at < len(text):
        start = _START.search(text, at)
        if start is None or attempts >= _ATTEMPTS_MAX:
            break
        found = _value_at(text, start.start())
        after = _skip(text, found[1]) if found else 0
        if found and is_record(found[0]) and (after == len(text) or _START.match(text, after)):
            torn += len(text[at : start.start()].encode(errors="surrogatepass"))
            kept.append(found[0])
            at = after
            continue
        attempts += found is None or is_record(found[0])
        # a whole inner object needs no second look inside
        stop = found[1] if found and not is_record(found[0]) else start.start() + 1
        torn += len(text[at:stop].encode(errors="surrogatepass"))
        at = stop
    torn += len(text[at:].rstrip("\0 \t\r").encode(errors="surrogatepass"))
    return kept, torn


def _why(text: str, at: int) -> str:
    """A short reason without a word of the transcript."""
    if at >= len(text):
        return "several values that are not records"
    try:
        _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        return f"{error.msg.split(':')[0].lower()} at character {error.pos + 1}"
    except RecursionError:
        return "nested too deeply"
    except (ValueError, OverflowError):
        return "a number that cannot be read"
    return "zero bytes inside a record"
