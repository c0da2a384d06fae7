"""Spans, tails and coverage come back as they were; hostile bytes are an error of ours."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from imprintd.errors import IntegrityError
from imprintd.model.event import KINDS, ROLES, EventSpan
from imprintd.model.snapshot import Tail
from imprintd.model.source import Coverage
from imprintd.store.spans import (
    kind_mask,
    masks,
    pack_coverage,
    pack_spans,
    pack_tail,
    parse_ms,
    role_mask,
    times,
    unpack_coverage,
    unpack_spans,
    unpack_tail,
)

NUMBER = st.integers(0, 1 << 40)
MOMENT = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z")
WORDS = st.text(st.characters(), max_size=12)
SPAN = st.builds(
    EventSpan,
    NUMBER,
    NUMBER,
    st.sampled_from(ROLES),
    st.sampled_from(KINDS),
    st.integers(0, 1 << 31),
    st.none() | MOMENT | WORDS,
)
SPANS = st.lists(SPAN, max_size=6).map(tuple)
DIGEST = st.binary(min_size=32, max_size=32)
TAIL = st.builds(
    Tail,
    NUMBER,
    DIGEST,
    NUMBER,
    NUMBER,
    NUMBER,
    DIGEST,
    NUMBER,
    NUMBER,
    NUMBER,
    NUMBER,
    SPANS,
)
COUNTS = st.dictionaries(WORDS, st.integers(0, 1 << 40), max_size=4)


@given(SPANS, NUMBER)
def test_spans_come_back(spans: tuple[EventSpan, ...], origin: int) -> None:
    assert unpack_spans(pack_spans(spans, origin), origin) == spans


@given(TAIL)
def test_tails_come_back(tail: Tail) -> None:
    assert unpack_tail(pack_tail(tail)) == tail


@given(st.builds(Coverage, COUNTS, COUNTS, NUMBER, NUMBER, NUMBER, NUMBER))
def test_coverage_comes_back(coverage: Coverage) -> None:
    packed = pack_coverage(coverage)
    assert packed.isascii()
    assert unpack_coverage(packed) == coverage


@given(st.binary(max_size=60))
@example(b"\xa0")
def test_hostile_bytes_raise_nothing_else(packed: bytes) -> None:
    with suppress(IntegrityError):
        unpack_spans(packed, 0)
    with suppress(IntegrityError):
        unpack_tail(packed)


@given(WORDS | MOMENT)
def test_any_timestamp_is_a_number_or_nothing(timestamp: str) -> None:
    ms = parse_ms(timestamp)
    assert ms is None or isinstance(ms, int)


def test_a_usual_event_takes_few_bytes() -> None:
    spans = tuple(
        EventSpan(n * 600, n * 600 + 600, "user", "message", n, f"2026-05-01T10:00:{n:02d}.123Z")
        for n in range(60)
    )
    assert len(pack_spans(spans, 0)) <= 60 * 10


def test_times_and_masks() -> None:
    spans = (
        EventSpan(0, 1, "user", "message", 1, "2026-05-01T10:00:00Z"),
        EventSpan(1, 2, "tool", "tool_output", 1, "2026-05-01T12:00:00+02:00"),
        EventSpan(2, 3, "tool", "tool_output", 1, "yesterday"),
        EventSpan(3, 4, "tool", "tool_output", 1, "2026-05-01T09:59:59"),
    )
    assert times(spans) == (1_777_629_599_000, 1_777_629_600_000)
    assert times(spans[2:3]) == (None, None)
    assert masks(spans) == (role_mask(["user", "tool"]), kind_mask(["message", "tool_output"]))
