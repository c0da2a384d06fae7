"""Excerpts around matches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprintd.errors import UsageError
from imprintd.text.excerpt import excerpt

WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed"]
PADDING = " ".join(WORDS * 40)


def test_a_short_content_comes_whole() -> None:
    assert excerpt("all of it", ["it"], 100) == (0, 9, "all of it")


def test_the_densest_place_is_centred() -> None:
    content = f"{PADDING} needle {PADDING} a needle in the haystack {PADDING}"
    start, end, text = excerpt(content, ["needle", "haystack"], 200)
    assert text == content[start:end]
    assert "a needle in the haystack" in text
    before, _, after = text.partition("needle in the haystack")
    assert abs(len(before) - len(after)) < 40


def test_cuts_stand_at_word_ends() -> None:
    content = f"{PADDING} needle {PADDING}"
    for limit in range(30, 300, 7):
        _, _, text = excerpt(content, ["needle"], limit)
        assert set(text.split()) <= {*WORDS, "needle"}


def test_a_term_begins_a_word_in_any_case() -> None:
    content = f"{PADDING} unrelated xcompile {PADDING} Re_Compiling it {PADDING}"
    assert "Re_Compiling" in excerpt(content, ["compil"], 60)[2]


def test_a_term_inside_a_word_counts_when_no_word_begins_with_it() -> None:
    assert "xcompile" in excerpt(f"{PADDING} xcompile {PADDING}", ["compil"], 60)[2]


def test_known_spans_are_taken_as_they_are() -> None:
    content = f"{PADDING} here {PADDING}"
    at = content.index("here")
    start, end, text = excerpt(content, [(at, at + 4)], 50)
    assert start <= at
    assert end >= at + 4
    assert "here" in text


def test_nothing_matched_gives_the_beginning() -> None:
    start, _, text = excerpt(PADDING, ["absent"], 50)
    assert (start, text) == (0, PADDING[:50].rsplit(" ", 1)[0])


def test_a_match_longer_than_the_excerpt_shows_its_start() -> None:
    content = f"{PADDING} {'k' * 500} {PADDING}"
    at = content.index("kkk")
    start, end, text = excerpt(content, [(at, at + 500)], 50)
    assert (start, end, text) == (at, at + 50, "k" * 50)


def test_no_room_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        excerpt("text", ["text"], 0)


@pytest.mark.parametrize("unit", ["e\u0301", "\ud83d\ude00", "👍🏽", "👩\u200d💻"])
def test_characters_stay_whole(unit: str) -> None:
    content = unit * 300 + " needle " + unit * 300
    for limit in range(8, 60):
        start, end, _ = excerpt(content, ["needle"], limit)
        assert start >= content.index(" needle") or start % len(unit) == 0
        assert (
            end <= content.index("needle") + 7
            or (end - content.index(" needle") - 8) % len(unit) == 0
        )


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=()), max_size=400),
    st.lists(st.text(max_size=5), max_size=4),
    st.integers(1, 120),
)
def test_an_excerpt_is_a_bounded_span(content: str, terms: list[str], limit: int) -> None:
    start, end, text = excerpt(content, terms, limit)
    assert 0 <= start <= end <= len(content)
    assert text == content[start:end]
    assert len(text) <= limit
    assert bool(text) == bool(content)
