"""
Settling: a quiet file after the pause, a busy one at the cap, nothing lost.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.watch.settle import Settle


def test_a_quiet_file_is_released_after_the_pause() -> None:
    settle = Settle(1000, 10_000)
    settle.touch("a", 100.0)
    assert settle.next_due() == 101.0
    assert settle.ready(100.999) == []
    assert settle.ready(101.0) == ["a"]
    assert settle.ready(200.0) == []
    assert settle.next_due() is None


def test_a_change_starts_the_pause_again() -> None:
    settle = Settle(1000, 10_000)
    settle.touch("a", 0.0)
    settle.touch("a", 0.9)
    assert settle.ready(1.0) == []
    assert settle.next_due() == 1.9
    assert settle.ready(1.9) == ["a"]


def test_a_busy_file_is_released_at_the_cap_and_again() -> None:
    settle = Settle(1000, 10_000)
    released = []
    for tenth in range(351):
        now = tenth / 10
        settle.touch("busy", now)
        released += [now for _ in settle.ready(now)]
    assert released == pytest.approx([10.0, 20.1, 30.2])


def test_files_are_released_in_the_order_they_became_due() -> None:
    settle = Settle(1000, 10_000)
    for number, path in enumerate("cab"):
        settle.touch(path, number / 10)
    settle.touch("c", 0.25)
    assert settle.ready(9.0) == ["a", "b", "c"]


def test_a_cap_below_the_pause_means_the_pause() -> None:
    settle = Settle(1000, 10)
    settle.touch("a", 0.0)
    assert settle.next_due() == 1.0


touches = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(0.001, 3, allow_nan=False)), max_size=60
)


@given(touches, st.integers(1, 2000), st.integers(1, 5000))
def test_nothing_waits_beyond_its_limits_and_nothing_is_lost(
    steps: list[tuple[str, float]], quiet_ms: int, cap_ms: int
) -> None:
    """Driven by next_due alone, every touch is followed by a release in time."""
    settle = Settle(quiet_ms, cap_ms)
    quiet_s, cap_s = quiet_ms / 1000, max(quiet_ms, cap_ms) / 1000
    first: dict[str, float] = {}
    last: dict[str, float] = {}

    def advance(until: float) -> None:
        while (due := settle.next_due()) is not None and due <= until:
            for path in settle.ready(due):
                expected = min(last.pop(path) + quiet_s, first.pop(path) + cap_s)
                assert due == pytest.approx(expected)

    now = 0.0
    for path, pause in steps:
        now += pause
        advance(now)
        settle.touch(path, now)
        first.setdefault(path, now)
        last[path] = now
    advance(float("inf"))
    assert (first, last, len(settle)) == ({}, {}, 0)
