"""Canonical text as it is written, letter by letter."""

import pytest

from imprintd.errors import IntegrityError
from imprintd.model.event import Event, EventSpan
from imprintd.text.canonical import header_at, parse, render, render_all


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("user", "message", "Why?", 1), "«user message · turn 1 · 4 chars»\nWhy?\n"),
        (Event("context", "context", ""), "«context context · turn 0 · 0 chars»\n\n"),
        (
            Event("tool", "tool_output", "a\nb\n", 12, "2026-11-08T10:00:00.123Z", "toolu_01AbC"),
            (
                "«tool tool_output · turn 12 · 2026-11-08T10:00:00.123Z · call toolu_01AbC"
                " · 4 chars»\na\nb\n\n"
            ),
        ),
        (
            Event("speaker", "speech", "Guten Tag", 0, None, None, "de-AT", 1.5, 3.0),
            "«speaker speech · turn 0 · language de-AT · audio 1.5..3.0 · 9 chars»\nGuten Tag\n",
        ),
        (
            Event("speaker", "speech", "", 0, None, None, None, None, 1e22),
            "«speaker speech · turn 0 · audio ..1e+22 · 0 chars»\n\n",
        ),
        (
            Event("assistant", "tool_call", "x", 3, "", 'a "b"\n\0é\ud800'),
            (
                '«assistant tool_call · turn 3 · "" · call "a \\22;b\\22;\\a;\\0;\\e9;\\d800;"'
                " · 1 chars»\nx\n"
            ),
        ),
    ],
)
def test_an_event_is_written_one_way(event: Event, text: str) -> None:
    assert render(event) == text
    assert parse(text) == [event]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "«user message · turn 1 · 4 chars»",
        "«user message · turn 1 · 4 chars»\nWhy?",
        "«user message · turn 1 · 3 chars»\nWhy?\n",
        "«user message · turn 1 · 5 chars»\nWhy?\n",
        "«user message · turn 1 · 99999999 chars»\nWhy?\n",
        "«user message · turn 01 · 4 chars»\nWhy?\n",
        "«user message · turn 1 · 04 chars»\nWhy?\n",
        "«user message · turn \u0661 · 4 chars»\nWhy?\n",
        '«user message · turn 1 · "now" · 4 chars»\nWhy?\n',
        '«user message · turn 1 · "\\41;" · 4 chars»\nWhy?\n',
        '«user message · turn 1 · "\\110000; " · 4 chars»\nWhy?\n',
        "«user message · turn 1 · call a · now · 4 chars»\nWhy?\n",
        "«user message · turn 1 · audio .. · 4 chars»\nWhy?\n",
        "«user message · turn 1 · audio 1.. · 4 chars»\nWhy?\n",
        "«user message · turn 1 · audio 1.0.0.. · 4 chars»\nWhy?\n",
        "«user shout · turn 1 · 4 chars»\nWhy?\n",
        "«user message · turn 1 · 4 chars»\nWhy?\ntrailing",
        "\n«user message · turn 1 · 4 chars»\nWhy?\n",
    ],
)
def test_what_is_not_canonical_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError):
        parse(text)


@pytest.mark.parametrize("turn", [-1, 10**15 + 1])
def test_an_impossible_turn_is_refused(turn: int) -> None:
    with pytest.raises(IntegrityError):
        render(Event("user", "message", "x", turn))


def test_a_role_outside_the_model_is_refused() -> None:
    with pytest.raises(IntegrityError):
        render(Event("narrator", "message", "x"))  # type: ignore[arg-type]


def test_a_body_that_looks_like_canonical_text_stays_a_body() -> None:
    inner = render(Event("user", "message", "inner", 1))
    events = [Event("user", "message", inner * 2, 1), Event("assistant", "message", inner, 1)]
    text, spans = render_all(events, 100)
    assert parse(text) == events
    assert spans == (
        EventSpan(100, 100 + len(render(events[0])), "user", "message", 1, None),
        EventSpan(100 + len(render(events[0])), 100 + len(text), "assistant", "message", 1, None),
    )


def test_a_header_is_found_only_where_it_begins() -> None:
    text = "x" + render(Event("user", "message", "body", 1))
    assert [i for i in range(len(text)) if header_at(text, i)] == [1]


def test_a_hostile_header_costs_little() -> None:
    # every optional part, then a quoted value that never closes
    text = '«user message · turn 1 · a · call b · language "' + " · call a" * 20_000
    assert header_at(text, 0) is None
