"""
Log lines: exact form, nothing secret, repetition folded.
"""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.clock import ManualClock
from imprintd.errors import NotKnown
from imprintd.ops.log import Collapse, Log, configure, described, is_journal, shown


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("imprintd").setLevel(logging.NOTSET)


def _lines(out: io.StringIO) -> list[str]:
    """Lines without their time stamps."""
    return [line.split(" ", 1)[1] for line in out.getvalue().splitlines()]


def _configured(clock: ManualClock | None = None) -> io.StringIO:
    out = io.StringIO()
    configure(clock or ManualClock(), {}, level="debug", stream=out)
    return out


def test_a_line_is_level_event_and_fields() -> None:
    out = _configured()
    Log("watch").info("scanned", files=20_000, seconds=0.125, path="/home/a b", ok=True, at=None)
    assert _lines(out) == [
        'info watch.scanned files=20000 seconds=0.125 path="/home/a b" ok=true at=none'
    ]


def test_our_errors_show_their_message_and_foreign_ones_do_not() -> None:
    out = _configured()
    log = Log("learn")
    log.failure("failed", NotKnown("no such source"), source="claude:1")
    try:
        json.loads("sk-secret")
    except ValueError as error:
        log.failure("failed", error)
    log.failure("failed", PermissionError(13, "denied", "/secret/name"))
    assert (
        _lines(out)[0]
        == 'error learn.failed source=claude:1 code=not-known message="no such source"'
    )
    assert _lines(out)[1] == "error learn.failed type=JSONDecodeError"
    assert _lines(out)[2] == "error learn.failed type=PermissionError errno=EACCES"


def test_a_foreign_exception_names_the_place_in_our_code() -> None:
    try:
        shown({"a": object}.get("a"))  # type: ignore[arg-type]
        is_journal(None, {"JOURNAL_STREAM": "1:2"})  # type: ignore[arg-type]
    except AttributeError as error:
        place = described(error)["at"]
    assert isinstance(place, str)
    assert place.startswith("ops/log.py:")


def test_records_of_other_libraries_show_templates_only() -> None:
    out = _configured()
    logging.getLogger("asyncio").warning("took %s", "sk-secret")
    logging.getLogger("asyncio").error("Task exception was never retrieved sk-secret and more")
    try:
        int("sk-secret")
    except ValueError:
        logging.getLogger("other").exception("it failed")
    assert _lines(out) == [
        'warning asyncio.log message="took %s"',
        'error asyncio.log message="Task exception was never retrieved"',
        'error other.log message="it failed" type=ValueError',
    ]


def test_the_same_failure_is_said_once_and_then_counted() -> None:
    clock = ManualClock()
    out = _configured(clock)
    log = Log("link")
    for _ in range(301):
        log.warning("broker-unreachable", host="h")
        log.info("tried")
        clock.advance(1)
    log.warning("broker-unreachable", host="other")
    said = [line for line in _lines(out) if line.startswith("warning")]
    assert said == [
        "warning link.broker-unreachable host=h",
        "warning link.broker-unreachable host=h repeated=299",
        "warning link.broker-unreachable host=other",
    ]
    assert len(_lines(out)) == 3 + 301


def test_the_memory_of_repetitions_is_bounded() -> None:
    collapse = Collapse(ManualClock())
    for number in range(1000):
        record = logging.LogRecord("x", logging.ERROR, "f", 1, f"e{number}", None, None)
        assert collapse.filter(record)
    assert len(collapse._seen) == 256


def test_the_journal_gets_levels_instead_of_times(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        found = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        configure(ManualClock(), environ, stream=stream)
        Log("a").info("one")
        Log("a").warning("two")
        Log("a").error("three")
        Log("a").debug("hidden")
        logging.getLogger("foreign").info("hidden")
    assert (tmp_path / "log").read_text() == "<6>a.one\n<4>a.two\n<3>a.three\n"
    assert not is_journal(io.StringIO(), environ)
    assert not is_journal(stream, {"JOURNAL_STREAM": "garbage"})


@given(st.text(max_size=400))
def test_any_value_is_one_bounded_line(text: str) -> None:
    word = shown(text)
    assert "\n" not in word
    assert "\r" not in word
    assert word.isascii()
    if word.startswith('"'):
        assert text.startswith(json.loads(word).removesuffix("...")[:200])
    else:
        assert " " not in word
        assert len(word) <= 203
