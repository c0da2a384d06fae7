"""Ranges find exactly what differs, in few rounds and few bytes; items are sets."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.model.snapshot import Stamp
from imprintd.model.source import SourceId
from imprintd.sync.inventory import Inventory, source_key
from imprintd.sync.ranges import Items
from imprintd.wire import limits
from imprintd.wire.codec import pack


def source(number: int) -> SourceId:
    return SourceId("default", "/p", f"claude:{number}")


def stamp(number: int) -> Stamp:
    return Stamp(number, 0, "A", bytes(32))


def inventory(heads: dict[int, int]) -> Inventory:
    found = Inventory(b"link")
    for number, version in heads.items():
        found.put(source(number), stamp(version))
    return found


def reconcile(mine: Inventory, theirs: Inventory) -> tuple[set[bytes], int, int]:
    """Keys that differ or are only theirs, rounds and bytes, as the engine goes about it."""
    found: set[bytes] = set()
    pending = [(b"", b"")]
    rounds = size = 0
    while pending:
        rounds += 1
        later = []
        for low, high in pending:
            asked = mine.span(low, high)
            size += len(pack([asked.low, asked.high, asked.count, asked.sum]))
            held = theirs.span(low, high)
            if held == asked:
                continue
            if held.count <= limits.RANGE_LEAF:
                entries = theirs.entries(low, high)
                size += 35 * len(entries)
                found |= {e.key for e in entries if mine.version(e.key) != e.version}
                continue
            for span in theirs.split(low, high):
                size += len(pack([span.low, span.high, span.count, span.sum]))
                if mine.span(span.low, span.high) != span:
                    later.append((span.low, span.high))
        pending = later
    return found, rounds, size


@given(
    st.dictionaries(st.integers(0, 300), st.integers(0, 2), max_size=200),
    st.dictionaries(st.integers(0, 300), st.integers(0, 2), max_size=200),
)
def test_reconciliation_finds_exactly_what_differs(
    mine: dict[int, int], theirs: dict[int, int]
) -> None:
    found, _, _ = reconcile(inventory(mine), inventory(theirs))

    assert found == {
        source_key(b"link", source(number))
        for number, version in theirs.items()
        if mine.get(number) != version
    }


def test_ten_of_ten_thousand_cost_little() -> None:
    heads = dict.fromkeys(range(10_000), 1)
    changed = dict.fromkeys(Random(1).sample(range(10000), 10), 2)
    mine, theirs = inventory(heads), inventory(heads | changed)

    equal, equal_rounds, equal_size = reconcile(mine, inventory(heads))
    found, rounds, size = reconcile(mine, theirs)

    assert (equal, equal_rounds) == (set(), 1)
    assert equal_size < 40
    assert found == {source_key(b"link", source(number)) for number in changed}
    assert rounds <= 4
    assert size < 25_000


def test_split_covers_a_range_once() -> None:
    held = inventory(dict.fromkeys(range(500), 1))
    spans = held.split(b"", b"")

    assert spans[0].low == b""
    assert spans[-1].high == b""
    assert [span.high for span in spans[:-1]] == [span.low for span in spans[1:]]
    assert sum(span.count for span in spans) == 500
    assert len(spans) == limits.RANGE_FAN_OUT


def test_keys_depend_on_the_link_and_on_every_part() -> None:
    keys = {
        source_key(link, SourceId(*parts))
        for link in (b"a", b"b")
        for parts in (("w", "p", "k"), ("wp", "", "k"), ("w", "pk", ""), ("w", "p", "kk"))
    }
    assert len(keys) == 8


OPERATIONS = st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(1, 9)), max_size=30)


@given(OPERATIONS, st.integers(0, 40), st.integers(1, 9))
def test_items_are_a_set(operations: list[tuple[bool, int, int]], first: int, count: int) -> None:
    items, model = Items(), set()
    for add, start, length in operations:
        if add:
            items.add(start, length)
            model |= set(range(start, start + length))
        else:
            items.discard(start, length)
            model -= set(range(start, start + length))

    assert list(items) == sorted(model)
    assert len(items) == len(model)
    assert bool(items) == bool(model)
    assert [n in items for n in range(60)] == [n in model for n in range(60)]
    assert items.meets(((first, count),)) == bool(model & set(range(first, first + count)))
    assert list(Items(items.ranges())) == sorted(model)
    ends = [(a + n, b) for (a, n), (b, _) in zip(items.ranges(), items.ranges()[1:], strict=False)]
    assert all(end < start for end, start in ends)


def test_items_name_their_first_ranges() -> None:
    items = Items(((1, 2), (5, 1), (9, 3)))

    assert items.ranges(2) == ((1, 2), (5, 1))
    assert items.first() == 1
    with pytest.raises(IndexError):
        Items().first()
