"""Where a match is and what is shown of it."""

from collections.abc import Sequence

import pytest
from search_fake import said

from imprintd.model.event import Event
from imprintd.search.match import EXCERPT_CHARS, Match, locate
from imprintd.search.ports import Query
from imprintd.text.canonical import render_all

ANY = Query("any")


def words(text: str) -> list[tuple[str, int, int]]:
    found, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        found.append((word, at, at + len(word)))
        at += len(word)
    return found


def find(
    events: Sequence[Event],
    weights: dict[str, float],
    asked: Query = ANY,
    *,
    part: int | None = 0,
    window: tuple[int, int] | None = None,
    base: int = 0,
) -> Match | None:
    text, spans = render_all(events, base)
    return locate(text, base, spans, weights, words, asked, part=part, window=window)


def test_the_event_with_the_most_telling_words_is_under_the_match() -> None:
    match = find(
        [said("common common"), said("rare thing", "assistant"), said("common")],
        {"common": 0.1, "rare": 0.9},
    )

    assert match is not None
    assert match.event is not None
    assert (match.event.role, match.share) == ("assistant", 1.0)
    assert match.excerpt.startswith("rare thing")


def test_a_filter_takes_the_best_event_that_passes_and_says_its_share() -> None:
    match = find(
        [said("rare common", "assistant"), said("only common here")],
        {"common": 0.25, "rare": 0.75},
        Query("any", role="user"),
    )

    assert match is not None
    assert match.event is not None
    assert (match.event.role, match.share) == ("user", 0.25)


@pytest.mark.parametrize("window", [None, (0, 1)])
def test_without_a_word_in_a_passing_event_only_a_vector_makes_a_match(
    window: tuple[int, int] | None,
) -> None:
    match = find(
        [said("rare", "assistant"), said("something else")],
        {"rare": 1.0},
        Query("any", role="user"),
        window=window,
    )

    assert (match is None) == (window is None)


def test_files_have_no_events_and_pass_no_filter_by_role() -> None:
    text = "line of a file with rare word\n" * 3

    plain = locate(text, 50, (), {"rare": 1.0}, words, ANY, part=0, window=None)
    filtered = locate(text, 50, (), {}, words, Query("x", kind="message"), part=0, window=None)

    assert plain == Match(None, 1.0, 50, 50 + len(text), text)
    assert filtered is None


def test_an_excerpt_is_bounded_and_lies_where_it_says() -> None:
    events = [said("pad " * 400 + "needle here " + "pad " * 400)]
    text, _ = render_all(events, 1000)

    match = find(events, {"needle": 1.0}, base=1000)

    assert match is not None
    assert "needle here" in match.excerpt
    assert len(match.excerpt) <= EXCERPT_CHARS
    assert text[match.start - 1000 : match.end - 1000] == match.excerpt


def test_a_word_that_is_everywhere_does_not_say_where_to_look() -> None:
    events = [said("test passed\n" * 200 + "yen rounding test failed\n" + "test passed\n" * 200)]

    match = find(events, {"test": 1.0, "yen": 0.5, "rounding": 0.5})

    assert match is not None
    assert "yen rounding test failed" in match.excerpt


def test_a_vectors_window_says_where_to_look() -> None:
    events = [said("alpha " * 600), said("omega " * 600, "assistant")]

    first = find(events, {}, part=None, window=(0, 6))
    last = find(events, {}, part=None, window=(5, 6))

    assert first is not None
    assert last is not None
    assert ("alpha" in first.excerpt, "omega" in last.excerpt) == (True, True)
