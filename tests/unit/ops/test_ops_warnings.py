"""
Warnings: set, updated, hidden, replaced, bounded, in order.
"""

from __future__ import annotations

import pytest

from imprintd.clock import ManualClock
from imprintd.ops.warnings import KINDS, Kind, Warnings

TEST_KINDS = (
    Kind("slow", "info", "It is slow", visible_after_s=10),
    Kind("broken", "error", "It is broken"),
    Kind("odd", "warning", "It is odd"),
    Kind("lonely", "info", "Nobody there", explained_by=("broken",)),
)


def test_a_warning_keeps_its_age_when_said_again() -> None:
    clock = ManualClock(wall_ms=1000)
    warnings = Warnings(clock, TEST_KINDS)
    warnings.set("odd", "first", key="/a", remedy="do this")
    clock.advance(5)
    warnings.set("odd", "second", key="/a", remedy="do that")
    assert [w.as_json() for w in warnings.visible()] == [
        {
            "code": "odd",
            "key": "/a",
            "severity": "warning",
            "title": "It is odd",
            "text": "second",
            "remedy": "do that",
            "since_ms": 1000,
        }
    ]
    warnings.clear("odd")
    assert len(warnings.visible()) == 1
    warnings.clear("odd", "/a")
    assert warnings.visible() == []


def test_it_shows_once_it_has_lasted_and_unless_explained() -> None:
    clock = ManualClock()
    warnings = Warnings(clock, TEST_KINDS)
    warnings.set("slow", "x")
    warnings.set("lonely", "x")
    assert [w.code for w in warnings.visible()] == ["lonely"]
    clock.advance(10)
    warnings.set("broken", "x")
    assert [w.code for w in warnings.visible()] == ["broken", "slow"]
    warnings.clear("broken")
    assert [w.code for w in warnings.visible()] == ["lonely", "slow"]


def test_replacing_clears_what_is_not_named() -> None:
    told: list[tuple[str, bool]] = []
    warnings = Warnings(ManualClock(), TEST_KINDS, lambda code, is_set: told.append((code, is_set)))
    warnings.set("odd", "a", key="a")
    warnings.set("broken", "x", key="a")
    warnings.replace("odd", [("b", "text", "remedy"), ("c", "text", "")])
    warnings.replace("odd", [("c", "text", "")])
    assert [(w.code, w.key) for w in warnings.visible()] == [("broken", "a"), ("odd", "c")]
    assert told == [
        ("odd", True),
        ("broken", True),
        ("odd", False),
        ("odd", True),
        ("odd", True),
        ("odd", False),
    ]


def test_one_code_is_bounded_and_unknown_ones_are_refused() -> None:
    warnings = Warnings(ManualClock(), TEST_KINDS)
    for number in range(200):
        warnings.set("odd", "x", key=str(number))
    assert [w.key for w in warnings.visible()] == sorted(str(n) for n in range(150, 200))
    with pytest.raises(ValueError, match="nonsense"):
        warnings.set("nonsense", "x")


def test_the_kinds_are_well_formed() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)
    assert {cause for kind in KINDS for cause in kind.explained_by} <= set(codes)
