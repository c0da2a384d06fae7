"""Framing: what is a record, what is damage, what waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imprintd.errors import DamagedLine
from imprintd.readers.lines import Framed, frame


def is_record(value: Any) -> bool:
    return isinstance(value, dict) and "t" in value


def framed(data: bytes, *, final: bool = False, salvage: bool = False) -> Framed:
    return frame(data, final=final, salvage=salvage, is_record=is_record)


def test_lines_are_records() -> None:
    assert framed(b'{"t":1}\n\n  \n{"t":2}\r\n{"t":') == Framed(
        records=[{"t": 1}, {"t": 2}], consumed=21, lines=4
    )


@pytest.mark.parametrize(
    ("data", "records", "zero_filled", "joined"),
    [
        (b"\0\0\0\n", [], 1, 0),
        (b"\0 \t\0\r\n", [], 1, 0),
        (b"  \r\n", [], 0, 0),
        (b'\0\0{"t":1}\n', [{"t": 1}], 1, 0),
        (b'{"t":1}\0\0\0\n', [{"t": 1}], 1, 0),
        (b'{"t":1}\0\0{"t":2}\n', [{"t": 1}, {"t": 2}], 1, 1),
        (b'{"t":1}{"t":2} {"t":3}\n', [{"t": 1}, {"t": 2}, {"t": 3}], 0, 1),
        (b'\xef\xbb\xbf{"t":1}\n', [{"t": 1}], 0, 0),
        (b'{"t":"\\ud800x"}\n', [{"t": "\ud800x"}], 0, 0),
        (b'{"t":"a\\u0000b"}\n', [{"t": "a\0b"}], 0, 0),
        ('{"t":"a\u2028b\u0085c"}\n'.encode(), [{"t": "a\u2028b\u0085c"}], 0, 0),
        (b'{"t":1e400}\n', [{"t": float("inf")}], 0, 0),
        (b'{"t":"raw\ttab"}\n', [{"t": "raw\ttab"}], 0, 0),
        (b"12\n", [12], 0, 0),
        (b"[1]\n", [[1]], 0, 0),
    ],
)
def test_what_is_read_without_loss(
    data: bytes, records: list[Any], zero_filled: int, joined: int
) -> None:
    for salvage in (False, True):
        assert framed(data, salvage=salvage) == Framed(
            records=records,
            consumed=len(data),
            lines=1,
            zero_filled=zero_filled,
            joined=joined,
        )


def test_nan_is_read() -> None:
    (record,) = framed(b'{"t":NaN}\n').records
    assert record["t"] != record["t"]


def test_a_number_of_many_digits_is_read() -> None:
    (record,) = framed(b'{"t":"\\ud800","n":' + b"9" * 5000 + b"}\n").records
    assert record["n"] == float("inf")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"t":"cut', "unterminated string starting at"),
        (b'{"t":1} tail', "expecting value"),
        (b"words", "expecting value"),
        (b'{"t":1}12', "several values that are not records"),
        (b'{"t":1,}', "expecting property name enclosed in double quotes"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"t":"a\0\0\0b"}', "zero bytes inside a record"),
    ],
)
def test_what_would_lose_something_is_refused(line: bytes, why: str) -> None:
    with pytest.raises(DamagedLine) as caught:
        framed(b'{"t":0}\n' + line + b"\n")
    assert (caught.value.line, caught.value.reason) == (2, "damaged-line")
    assert caught.value.message.startswith(f"line 2 is not JSON: {why}")


@pytest.mark.parametrize(
    ("line", "records", "torn"),
    [
        # cut inside a string, the next record follows at once
        (b'{"t":"cut mid{"t":2}', [{"t": 2}], 13),
        (b'{"t":1}{"t":"cut', [{"t": 1}], 9),
        (b'{"t":1}{"t":"cut{"t":3}', [{"t": 1}, {"t": 3}], 9),
        # what is whole only inside a torn record is no record of its own
        (b'{"t":0,"inner":{"t":5},"more', [], 28),
        (b'{"x":[{"t":5},{"t":6},', [], 22),
        (b'tail of something"}{"t":4}', [{"t": 4}], 19),
        (b"no record at all", [], 16),
        (b'{"t":"a\0\0\0b"}{"t":8}', [{"t": 8}], 13),
        (b'{"t":"caf\xc3{"t":9}', [{"t": 9}], 12),
    ],
)
def test_salvage_takes_whole_records_only(line: bytes, records: list[Any], torn: int) -> None:
    got = framed(line + b"\n", salvage=True)
    assert got.records == records
    # a byte that was no UTF-8 counts as the three bytes of its replacement
    assert got.damaged_bytes == torn


def test_salvage_is_bounded_work() -> None:
    line = b'{"t":"' + b'{"t":[' * 50_000
    got = framed(line + b"\n", salvage=True)
    assert (got.records, got.damaged_bytes) == ([], len(line))


@pytest.mark.parametrize(
    ("tail", "records", "consumed"),
    [
        (b'{"t":2}', [{"t": 2}], True),
        (b'{"t":2}{"t":3}', [{"t": 2}, {"t": 3}], True),
        (b'\0\0{"t":2}', [{"t": 2}], True),
        (b'{"t":2', [], False),
        (b'{"t":2}{"t":', [], False),
        (b"\0\0\0", [], False),
        (b"12", [], False),
        (b'{"t":"caf\xc3', [], False),
    ],
)
def test_the_tail_is_taken_when_quiet_and_whole(
    tail: bytes, records: list[Any], consumed: bool
) -> None:
    head = b'{"t":1}\n'
    assert framed(head + tail).records == [{"t": 1}]
    assert framed(head + tail).consumed == len(head)
    got = framed(head + tail, final=True)
    assert got.records == [{"t": 1}, *records]
    assert got.consumed == len(head) + (len(tail) if consumed else 0)
    assert got.lines == 1


def test_a_huge_line_is_one_record() -> None:
    words = "warp and weft " * 400_000
    data = json.dumps({"t": words}).encode() + b"\n"
    assert framed(data).records == [{"t": words}]
