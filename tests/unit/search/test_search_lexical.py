"""The index of words alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from imprintd.search.clauses import Filter, language_tags
from imprintd.search.lexical import Lexical
from imprintd.search.records import Entry, Found, State, WordsUnreadable
from imprintd.search.words import ask

BASE = Entry(1, 1, 0, 11, 21, "", "default", "/p", "claude", "d1", None, frozenset(), 0, 0)
ANY = Filter("default")


def entry(row: int, text: str, part: int = 0) -> Entry:
    return replace(BASE, row=row, source_row=row % 2, part=part, fold=row, digest=row, text=text)


def rows(found: list[Found]) -> list[int]:
    return [one.row for one in found]


@pytest.fixture
def words(tmp_path: Path) -> Lexical:
    return Lexical(tmp_path / "g1")


def find(words: Lexical, text: str, wanted: Filter = ANY) -> list[int]:
    return rows(words.search(words.prepare(ask(text), wanted), 10))


def test_words_and_state_move_in_one_commit(words: Lexical, tmp_path: Path) -> None:
    state = State(7, 3, 2, "life")
    words.write([entry(1, "heron"), entry(2, "stork")], [], state)

    again = Lexical(tmp_path / "g1")

    assert (again.state, find(again, "heron"), again.rows()) == (state, [1], {1: 1, 2: 2})


def test_a_write_that_fails_changes_nothing(words: Lexical, tmp_path: Path) -> None:
    words.write([entry(1, "heron")], [], State(1))

    with pytest.raises(WordsUnreadable):
        words.write([entry(2, "stork"), replace(entry(3, "x"), digest=-1)], [1], State(2))

    again = Lexical(tmp_path / "g1")
    assert (again.state, again.rows()) == (State(1), {1: 1})
    again.write([entry(4, "egret")], [], State(3))
    assert again.rows() == {1: 1, 4: 4}


def test_rows_are_dropped_and_replaced(words: Lexical) -> None:
    words.write([entry(n, "heron") for n in range(1, 6)], [], State(1))
    words.write([entry(2, "stork")], [1, 2, 99], State(2))

    assert (sorted(find(words, "heron")), find(words, "stork")) == ([3, 4, 5], [2])
    assert words.rows_of(1) == {3: 3, 5: 5}


def test_windows_carry_row_part_and_fold(words: Lexical) -> None:
    words.write([entry(5, "nothing", 0), entry(5, "heron", 1)], [], State(1))

    (found,) = words.search(words.prepare(ask("heron"), ANY), 10)

    assert (found.row, found.part, found.fold, found.score > 0) == (5, 1, 5, True)


def test_some_rows_are_scored_as_in_the_whole(words: Lexical) -> None:
    words.write([entry(n, "heron " * n) for n in range(1, 6)], [], State(1))
    prepared = words.prepare(ask("heron"), ANY)

    whole = {one.row: one.score for one in words.search(prepared, 10)}

    assert {one.row: one.score for one in words.among(prepared, [2, 4, 77])} == {
        row: whole[row] for row in (2, 4)
    }
    assert words.among(prepared, []) == []


def test_folds_of_rows(words: Lexical) -> None:
    words.write([entry(n, "x") for n in (1, 2, 3)], [], State(1))

    assert words.folds([1, 3, 9]) == {1: 1, 3: 3}
    assert words.folds([]) == {}


def test_rare_words_weigh_more(words: Lexical) -> None:
    words.write(
        [entry(n, "common") for n in range(1, 50)] + [entry(99, "rare common")], [], State(1)
    )

    weights = words.weights(ask("common rare"))

    assert (weights["rare"] > 0.7, weights["common"] < 0.1) == (True, True)


def test_tokens_have_spans_in_the_text(words: Lexical) -> None:
    text = "Überläufer 検索 running \ud800 end"

    spans = {stem: text[a:b] for stem, a, b in words.tokens(text)}

    assert spans == {
        "uberlauf": "Überläufer", "検": "検", "索": "索", "run": "running", "end": "end",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter("default"), [1, 2]),
        (Filter("default", projects=()), []),
        (Filter("default", projects=("/p", "/x")), [1]),
        (Filter("default", event="user"), [1]),
        (Filter("default", event="/tool_output"), [2]),
        (Filter("default", event="tool/tool_output"), [2]),
        (Filter("default", event="user/tool_output"), []),
        (Filter("default", language="de"), [2]),
        (Filter("default", since_ms=0), [2]),
        (Filter("default", until_ms=0), [1]),
        (Filter("default", since_ms=-100, until_ms=100), [1, 2]),
    ],
)
def test_filters(words: Lexical, wanted: Filter, expected: list[int]) -> None:
    first = replace(
        entry(1, "heron"), events=frozenset({"user", "/message", "user/message"}),
        first_ms=-50, last_ms=-10,
    )  # fmt: skip
    second = replace(
        entry(2, "heron"), project="/q", language="de-AT", first_ms=10, last_ms=50,
        events=frozenset({"tool", "/tool_output", "tool/tool_output"}),
    )  # fmt: skip
    other = replace(entry(3, "heron"), workspace="other")
    words.write([first, second, other], [], State(1))

    assert sorted(find(words, "heron", wanted)) == expected


def test_every_flipped_byte_is_seen(words: Lexical, tmp_path: Path) -> None:
    words.write([entry(n, f"heron number{n}") for n in range(1, 40)], [], State(1))
    assert words.damaged() == []

    for file in sorted((tmp_path / "g1").glob("*.*")):
        if file.suffix in {".json", ".lock"} or file.name.startswith("."):
            continue
        sound = file.read_bytes()
        for at in (0, len(sound) // 2, len(sound) - 1, len(sound) - 12):
            data = bytearray(sound)
            data[at] ^= 0x10
            file.write_bytes(data)
            if at != len(sound) - 1:
                assert words.damaged() == [file.name], (file.name, at)
                with pytest.raises(WordsUnreadable):
                    Lexical(tmp_path / "g1")
        file.write_bytes(sound)


def test_a_word_of_a_hundred_letters_is_no_word(words: Lexical) -> None:
    words.write([entry(1, "x" * 100 + " heron"), entry(2, "f" * 64)], [], State(1))

    assert find(words, "x" * 100) == []
    assert find(words, "f" * 64) == [2]


def test_language_tags() -> None:
    assert language_tags("zh-Hant-TW") == ["zh", "zh-hant", "zh-hant-tw"]
    assert language_tags(None) == []
