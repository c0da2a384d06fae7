"""
Metrics: exact text, odd documents, hostile labels.
"""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from imprintd.ops.metrics import Family, exposition, families, metrics_response

LINE = re.compile(
    r"(# (HELP|TYPE) [a-z_]+ .*"
    r'|[a-z_]+(\{[a-z]+="([^"\\\n]|\\[\\"n])*"\})? (-?[0-9.e+-]+|NaN|[+-]Inf))'
)


def test_the_status_becomes_metrics() -> None:
    status = {
        "version": "1.2.3",
        "state": "running",
        "sources": 7,
        "watch": {"folders": 61, "covered": 40},
        "process": {"rss_bytes": 1024, "cpu_seconds": 1.5},
        "rooms": {
            "watch": {"state": "running", "restarts": 2},
            "learn": {"state": "degraded", "restarts": 0},
        },
        "warnings": [{"code": "paused"}, {"code": "disk-low"}, {"code": "disk-low"}],
        "peers": [{"device": "abcdefghijklmnopqrst", "behind": 3, "skew_ms": None}],
    }
    text = metrics_response(status).body.decode()
    values = [line for line in text.splitlines() if not line.startswith("#")]
    assert values == [
        'imprintd_build_info{version="1.2.3"} 1',
        "imprintd_up 1",
        "imprintd_sources 7",
        "imprintd_watch_folders 61",
        "imprintd_watch_covered 40",
        "imprintd_resident_memory_bytes 1024",
        "imprintd_cpu_seconds_total 1.5",
        'imprintd_room_up{room="learn"} 0',
        'imprintd_room_up{room="watch"} 1',
        'imprintd_room_restarts_total{room="learn"} 0',
        'imprintd_room_restarts_total{room="watch"} 2',
        'imprintd_warnings{code="disk-low"} 2',
        'imprintd_warnings{code="paused"} 1',
        'imprintd_peer_behind{device="abcdefghijkl"} 3',
    ]
    assert "# HELP imprintd_up 1 while the daemon" in text
    assert "# TYPE imprintd_cpu_seconds_total counter" in text


documents = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ("rooms", "watch", "warnings", "errors", "peers", "version", "state", "learning", "sources")


@given(st.dictionaries(st.sampled_from(KEYS), documents))
def test_any_document_gives_well_formed_lines(status: dict[str, Any]) -> None:
    for line in exposition(families(status)).split("\n"):
        assert line == "" or LINE.fullmatch(line), line


def test_labels_are_escaped_and_numbers_are_exact() -> None:
    family = Family(
        "x",
        "gauge",
        "h",
        (
            ((("a", 'q"\\\n'),), 2.0**60),
            ((), 0.1),
            ((), float("nan")),
            ((), float("inf")),
            ((), -float("inf")),
        ),
    )
    assert exposition([family, Family("empty", "gauge", "h", ())]).splitlines()[2:] == [
        'x{a="q\\"\\\\\\n"} 1152921504606846976',
        "x 0.1",
        "x NaN",
        "x +Inf",
        "x -Inf",
    ]
