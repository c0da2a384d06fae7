"""What is indexed and what is asked: pure."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_fake import said

from imprintd.search.words import (
    WINDOW_CHARS_MAX,
    Asking,
    ask,
    bare_text,
    body_spans,
    day_words,
    fold_key,
    humps,
    pairs,
    set_apart,
    spaced,
    window_spans,
)
from imprintd.text.canonical import render_all


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the retry logic?", Asking(("retry", "logic?"))),
        ("what is this about", Asking(("what", "is", "this", "about"))),
        ("it's what I didn't see", Asking(("didn't", "see"))),
        ('say "never gonna" twice', Asking(("say", "twice"), ("never gonna",))),
        ("“curly quotes” of it", Asking((), ("curly quotes",))),
        ('an odd " quote', Asking(("odd", "quote"))),
        ("field:value AND x* (y OR", Asking(("field:value", "x*", "(y"))),
        ("src/a/b.py snake_case E1234", Asking(("src/a/b.py", "snake_case", "E1234"))),
        ("東京タワー height", Asking(("height",), (), ("東京タワー",))),
        ("!!! --- ???", Asking()),
        ('""', Asking()),
    ],
)
def test_a_question_is_taken_apart_without_operators(text: str, expected: Asking) -> None:
    asking = ask(text)

    assert (asking.words, asking.phrases, asking.runs) == (
        expected.words,
        expected.phrases,
        expected.runs,
    )


def test_neighbouring_words_are_asked_for_in_one_piece_too() -> None:
    assert ask("get user name of the").joined == ("getuser", "username", "nameof", "getusername",
                                                  "usernameof", "nameofthe")  # fmt: skip


def test_an_endless_question_is_bounded() -> None:
    asking = ask(" ".join(f"word{n}" for n in range(10_000)))

    assert asking.words == tuple(f"word{n}" for n in range(64))


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("getUserName", ["get", "User", "Name"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("utf8Text", ["utf8", "Text"]),
        ("plain", ["plain"]),
    ],
)
def test_humps_part_an_identifier(word: str, parts: list[str]) -> None:
    assert humps(word) == parts


def test_scripts_without_spaces_are_taken_apart() -> None:
    assert spaced("検索 engine").split() == ["検", "索", "engine"]
    assert pairs("検索器") == ["検索", "索器"]
    assert pairs("検") == ["検"]


@given(st.text())
def test_set_apart_keeps_the_length(text: str) -> None:
    blank, alone = set_apart(text)

    assert len(blank) == len(text)
    assert [text[a:b] for _, a, b in alone] == [c for c, _, _ in alone]


@given(st.text(alphabet="ab \n", max_size=400).map(lambda text: text * 60))
def test_windows_cover_a_content_and_stay_small(content: str) -> None:
    spans = window_spans(content)

    assert spans[0][0] == 0
    assert spans[-1][1] == len(content)
    assert all(a[1] > b[0] for a, b in itertools.pairwise(spans))
    assert all(b - a <= WINDOW_CHARS_MAX for a, b in spans)
    assert all(a < b for a, b in spans) or not content


def test_a_short_content_is_one_window() -> None:
    assert window_spans("x" * 6000) == [(0, 6000)]
    assert window_spans("") == [(0, 0)]
    assert len(window_spans("x" * 6001)) == 2


def test_headers_are_left_out_and_bodies_kept() -> None:
    text, spans = render_all([said("one"), said("«user message · turn 1 · 3 chars»\ntwo")], 70)

    bodies = body_spans(text, 70, spans)

    assert bare_text(text, bodies, 0, len(text)) == (
        "one\n\n«user message · turn 1 · 3 chars»\ntwo\n"
    )


def test_a_body_that_goes_on_in_a_chunk_keeps_a_line_like_a_header() -> None:
    body = "start\n" + "«user message · turn 1 · 3 chars»\n" + "rest of a long message"
    text, (span,) = render_all([said(body)])
    cut = text.index("«user message · turn 1 · 3")
    clipped = type(span)(cut, span.end, span.role, span.kind, span.turn, span.timestamp)

    bodies = body_spans(text[cut:], cut, [clipped])

    assert bare_text(text[cut:], bodies, 0, len(text) - cut) == text[cut:]


def test_a_header_at_a_cut_event_is_still_left_out() -> None:
    text, (span,) = render_all([said("word " * 100)])
    clipped = type(span)(0, 200, span.role, span.kind, span.turn, span.timestamp)

    bodies = body_spans(text[:200], 0, [clipped])

    assert re.match("word word", bare_text(text[:200], bodies, 0, 200))


def test_days_become_words() -> None:
    assert day_words(
        ["2026-11-05T09:00:00.000Z", None, "nonsense", "2026-13-01", "2026-11-30T00:00:00+01:00"]
    ) == ("5 November 2026 30 November 2026")
    assert day_words(["2026-01-01T00:00:00Z", "2026-01-01T09:00:00Z"]) == "1 January 2026"
    assert day_words([]) == ""


def test_the_same_said_at_another_time_folds() -> None:
    first, first_spans = render_all([said("deploy now", timestamp="2026-01-01T00:00:00Z")])
    other, other_spans = render_all([said("deploy now", timestamp="2026-02-02T00:00:00Z")], 9)
    third, third_spans = render_all([said("deploy later")])

    assert fold_key(first, body_spans(first, 0, first_spans)) == fold_key(
        other, body_spans(other, 9, other_spans)
    )
    assert fold_key(first, body_spans(first, 0, first_spans)) != fold_key(
        third, body_spans(third, 0, third_spans)
    )
