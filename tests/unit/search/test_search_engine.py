"""Questions through all caches, against a store in memory."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search_fake import RULES, FakeArchive, Row, said, toy_vector

from imprintd.errors import ModelError, UsageError
from imprintd.search.engine import Search
from imprintd.search.ports import Held, Query, Results


@pytest.fixture
def archive() -> FakeArchive:
    return FakeArchive()


@pytest.fixture
def search(archive: FakeArchive, tmp_path: Path) -> Iterator[Search]:
    with contextlib.closing(Search(archive, tmp_path, toy_vector, RULES)) as opened:
        yield opened


def keys(results: Results) -> list[str]:
    return [hit.source for hit in results.hits]


def find(search: Search, text: str, **wanted: Any) -> list[str]:
    return keys(search.query(Query(text, **wanted)))


# -- finding as people type


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("snake_case_name", ["snake"]),
        ("getUserName", ["camel"]),
        ("getusername", ["camel"]),
        ("get user name", ["camel"]),
        ("src/shop/cart.py", ["path"]),
        ("cart.py", ["path"]),
        ("E1234", ["code"]),
        ('"exactly these words"', ["phrase"]),
        ("検索エンジン", ["cjk"]),
        ("索エ", ["cjk"]),
        ("café", ["accent"]),
        ("cafe", ["accent"]),
        ("deploying", ["stem"]),
    ],
)
def test_words_are_found_as_people_type_them(
    archive: FakeArchive, search: Search, question: str, expected: list[str]
) -> None:
    for key, text in {
        "snake": "the variable snake_case_name is unused",
        "camel": "call getUserName() before login",
        "path": "edited src/shop/cart.py today",
        "code": "compiler says error E1234 here",
        "phrase": "we need exactly these words together",
        "words": "these words exactly, but in another order",
        "cjk": "新しい検索エンジンを試す",
        "accent": "meet at the café",
        "stem": "it was deployed on friday",
        "noise": "nothing of interest",
    }.items():
        archive.add(key, [said(text)])

    assert find(search, question, mode="lexical")[: len(expected)] == expected


@pytest.mark.parametrize(
    "question",
    [
        'a:b AND "c OR (d^2 [x TO y] ~3 * ?',
        "\\",
        "+must -not",
        '"',
        "field:",
        "\ud800 lone",
        "\x00",
        "/regex.*/",
        "((((",
        "*",
        "\u0131" * 5000,
        "🙂",
    ],
)
def test_no_question_is_a_query_language(
    archive: FakeArchive, search: Search, question: str
) -> None:
    archive.add("one", [said("some text")])

    assert search.query(Query(question, mode="lexical")).mode == "lexical"


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.text(min_size=1, max_size=60))
def test_whatever_is_asked_is_answered_or_refused_by_name(
    archive: FakeArchive, search: Search, question: str
) -> None:
    if not archive.live():
        archive.add("one", [said("some text 検索 snake_case")])

    with contextlib.suppress(UsageError):
        search.query(Query(question))


def test_an_empty_question_and_an_impossible_limit_are_refused(search: Search) -> None:
    with pytest.raises(UsageError):
        search.query(Query("  "))
    with pytest.raises(UsageError):
        search.query(Query("x", limit=0))
    with pytest.raises(UsageError):
        search.query(Query("x", limit=101))


def test_quoted_words_that_stand_nowhere_together_are_asked_apart(
    archive: FakeArchive, search: Search
) -> None:
    archive.add("apart", [said("jitter after every retry")])

    results = search.query(Query('"retry jitter"', mode="lexical"))

    assert (keys(results), results.notes) == (
        ["apart"],
        ("nothing holds the quoted words together",),
    )


# -- filters


@pytest.fixture
def mixed(archive: FakeArchive) -> FakeArchive:
    archive.add("s1", [said("apple pie")], project="/home/a/shop", client="claude", device="d1",
                first_ms=1000, last_ms=2000)  # fmt: skip
    archive.add("s2", [said("apple tart")], project="/home/a/shop/sub", client="codex",
                device="d2", language="de-CH", first_ms=3000, last_ms=4000)  # fmt: skip
    archive.add("s3", [said("apple cake")], project="/home/a/shopping", client="codex",
                device="d1", language="de", first_ms=5000, last_ms=6000)  # fmt: skip
    archive.add("s4", [said("apple jam")], workspace="other")
    for row in archive.live().values():
        archive.embed(row)
    return archive


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, {"s1", "s2", "s3"}),
        ({"workspace": "other"}, {"s4"}),
        ({"workspace": "none"}, set()),
        ({"project": "/home/a/shop"}, {"s1", "s2"}),
        ({"project": "shopping"}, {"s3"}),
        ({"project": "hopping"}, set()),
        ({"client": "codex"}, {"s2", "s3"}),
        ({"device": "d1"}, {"s1", "s3"}),
        ({"language": "de"}, {"s2", "s3"}),
        ({"language": "DE-ch"}, {"s2"}),
        ({"since_ms": 2001}, {"s2", "s3"}),
        ({"until_ms": 2999}, {"s1"}),
        ({"since_ms": 3500, "until_ms": 3600}, {"s2"}),
        ({"client": "codex", "device": "d1"}, {"s3"}),
    ],
)
def test_filters_hold_on_every_side(
    mixed: FakeArchive, search: Search, mode: str, wanted: dict[str, Any], expected: set[str]
) -> None:
    assert set(find(search, "apple", mode=mode, **wanted)) == expected


def test_a_filter_finds_what_is_far_down_without_it(archive: FakeArchive, search: Search) -> None:
    for n in range(400):
        archive.embed(archive.add(f"many{n}", [said(f"banana split {n}")], project="/a"))
    archive.embed(archive.add("rare", [said("a banana among other fruit and words")], project="/b"))

    assert find(search, "banana split", project="/b") == ["rare"]


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_a_role_or_kind_is_that_of_the_event_under_the_match(
    archive: FakeArchive, search: Search, mode: str
) -> None:
    archive.embed(
        archive.add(
            "talk",
            [
                said("please run the zebra migration"),
                said("running it", "assistant"),
                said("walrus: permission denied", "tool", "tool_output"),
            ],
        )
    )

    asked_by_user = search.query(Query("zebra migration", role="user", mode=mode))  # type: ignore[arg-type]
    hit = asked_by_user.hits[0]

    assert (hit.role, hit.kind) == ("user", "message")
    assert "zebra" in hit.excerpt
    assert find(search, "walrus", role="user", mode="lexical") == []
    assert find(search, "walrus", kind="tool_output", mode=mode) == ["talk"]
    assert find(search, "walrus", role="tool", kind="message", mode=mode) == []


# -- one text, one hit


def test_the_same_text_in_several_sources_is_one_hit_with_places(
    archive: FakeArchive, search: Search
) -> None:
    rows = [archive.add(f"copy{n}", [said("the quick brown fox")]) for n in range(3)]
    archive.add("other", [said("a slow fox")])
    for row in rows:
        archive.embed(row)

    results = search.query(Query("quick brown fox"))

    assert [len(hit.places) for hit in results.hits] == [3, 1]
    assert {place["memory_id"] for place in results.hits[0].places} == {r.memory_id for r in rows}
    assert results.hits[0].places[0]["memory_id"] == results.hits[0].memory_id


def test_the_same_words_at_another_time_are_one_hit(archive: FakeArchive, search: Search) -> None:
    archive.add("a", [said("rotate the keys monthly", timestamp="2026-01-01T00:00:00Z")])
    archive.add("b", [said("rotate the keys monthly", timestamp="2026-03-01T00:00:00Z")])

    results = search.query(Query("rotate keys"))

    assert [sorted(p["source"] for p in hit.places) for hit in results.hits] == [["a", "b"]]


def test_a_thousand_copies_do_not_crowd_out_the_rest(archive: FakeArchive, search: Search) -> None:
    for n in range(1000):
        archive.add(f"copy{n:04d}", [said("disk full on build host")])
    archive.add("answer", [said("the build host: we enlarged the volume on its disk")])

    found = search.query(Query("disk full build host", limit=2))

    assert [hit.source for hit in found.hits][1:] == ["answer"]
    assert len(found.hits[0].places) == 20


# -- long chunks


def test_a_long_chunk_neither_crowds_nor_buries(archive: FakeArchive, search: Search) -> None:
    filler = "".join(f"line {n} of a build log with nothing special\n" for n in range(5000))
    middle = len(filler) // 2
    text = filler[:middle] + "the ostrich exploded in module seven\n" + filler[middle:]
    archive.add("long", [said(text, "tool", "tool_output")])
    archive.add("short", [said("a build log is attached")])

    found = search.query(Query("ostrich exploded"))
    crowd = search.query(Query("build log"))

    assert keys(found) == ["long"]
    assert "ostrich exploded" in found.hits[0].excerpt
    assert len(found.hits[0].excerpt) <= 400
    assert sorted(keys(crowd)) == ["long", "short"]


def test_start_and_end_are_those_of_the_excerpt_in_the_source(
    archive: FakeArchive, search: Search
) -> None:
    row = archive.add("s", [said("x " * 900), said("here sits the heron " * 3)], start=1000)

    hit = search.query(Query("heron")).hits[0]

    assert row.content is not None
    assert row.content[hit.start - 1000 : hit.end - 1000] == hit.excerpt


# -- vectors


def test_without_a_model_it_says_words_only(archive: FakeArchive, tmp_path: Path) -> None:
    archive.embed(archive.add("a", [said("solar panel")]))
    search = Search(archive, tmp_path)

    results = search.query(Query("solar panel"))

    assert (results.mode, keys(results), results.notes) == (
        "lexical",
        ["a"],
        ("no embedding model is ready: words only",),
    )


def test_a_model_that_fails_does_not_fail_the_search(archive: FakeArchive, tmp_path: Path) -> None:
    def broken(_: str) -> None:
        raise ModelError("no")

    archive.add("a", [said("solar panel")])

    results = Search(archive, tmp_path, broken, RULES).query(Query("solar", mode="vector"))

    assert (results.mode, keys(results)) == ("lexical", ["a"])


def test_vectors_still_owed_are_named(archive: FakeArchive, search: Search) -> None:
    archive.embed(archive.add("a", [said("solar panel")]))
    archive.add("b", [said("wind turbine")])

    assert search.query(Query("turbine")).notes == ("1 chunks have no vector yet",)


def test_vectors_find_what_words_do_not(archive: FakeArchive, search: Search) -> None:
    row = archive.add("meaning", [said("completely different wording")])
    archive.add_vector(row, toy_vector("how do I bake bread"))
    archive.embed(archive.add("other", [said("unrelated things entirely")]))

    assert find(search, "how do I bake bread")[0] == "meaning"
    assert find(search, "how do I bake bread", mode="lexical") == []


def test_the_best_window_of_a_chunk_counts(archive: FakeArchive, search: Search) -> None:
    row = archive.add("deep", [said("w " * 3000)])
    archive.add_vector(row, toy_vector("nothing at all"), 0, 2)
    archive.add_vector(row, toy_vector("purple elephant"), 1, 2)
    archive.embed(archive.add("flat", [said("purple something else here")]))

    assert find(search, "purple elephant", mode="vector")[0] == "deep"


def test_vectors_of_other_rules_do_not_count(archive: FakeArchive, search: Search) -> None:
    archive.embed(archive.add("old", [said("green apple")]), rules="older")

    assert find(search, "green apple", mode="vector") == []
    search.use_model(toy_vector, "older")
    assert find(search, "green apple", mode="vector") == ["old"]


def test_a_peers_vectors_count_for_their_source_only(archive: FakeArchive, search: Search) -> None:
    theirs = archive.add("theirs", [said("shared text")])
    archive.add("mine", [said("shared text")])
    archive.embed(theirs, scope=theirs.source_row)

    hit = search.query(Query("shared text", mode="vector")).hits[0]

    assert hit.source == "theirs"


def test_a_short_turn_is_found_by_what_was_said_before_it(
    archive: FakeArchive, search: Search
) -> None:
    for n, text in enumerate(
        ["how are you", "which city hosts the spring regatta", "Lucerne, as always", "thanks"]
    ):
        archive.embed(archive.add(f"t{n}", [said(text)], updated_ms=1000 + n))
    for n in range(30):
        archive.embed(archive.add(f"noise{n}", [said(f"note {n}")], updated_ms=9000 + n))

    found = find(search, "city spring regatta", limit=5)

    assert (found[0], sorted(found[1:3])) == ("t1", ["t0", "t2"])


# -- following the store


def test_an_unchanged_store_costs_no_rows(archive: FakeArchive, search: Search) -> None:
    archive.add("a", [said("one")])
    search.refresh()
    archive.calls.clear()

    search.refresh()

    assert dict(archive.calls) == {"change": archive.calls["change"], "points": 1}


def test_what_is_new_is_found_and_what_died_is_not(archive: FakeArchive, search: Search) -> None:
    first = archive.add("a", [said("alpha")])
    assert find(search, "alpha") == ["a"]

    archive.kill(first)
    archive.add("a", [said("alpha beta")])

    assert find(search, "alpha") == ["a"]
    assert len(search.query(Query("alpha")).hits[0].places) == 1
    archive.kill(next(iter(archive.live().values())))
    assert find(search, "alpha") == []


def test_caches_are_reopened_where_they_stand(archive: FakeArchive, tmp_path: Path) -> None:
    for n in range(5):
        archive.add(f"s{n}", [said(f"topic number{n}")])
    first = Search(archive, tmp_path)
    first.refresh()
    first.close()
    archive.add("late", [said("topic later")])
    archive.calls.clear()

    second = Search(archive, tmp_path)

    assert set(find(second, "topic")) == {"s0", "s1", "s2", "s3", "s4", "late"}
    assert archive.calls["born with text"] == 1
    assert second.change == archive.change()


@pytest.mark.parametrize("damage", ["meta.json", "*.idx", "*.term", "*.fast", "*.pos", "*.store"])
def test_a_damaged_index_of_words_is_built_anew(
    archive: FakeArchive, tmp_path: Path, damage: str
) -> None:
    for n in range(50):
        archive.add(f"s{n}", [said(f"subject {n} in hand")])
    first = Search(archive, tmp_path)
    first.refresh()
    for file in (tmp_path / "cache" / "lexical" / "g1").glob(damage):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    second = Search(archive, tmp_path)

    assert len(find(second, "subject", limit=50)) == 50


def test_a_deleted_cache_folder_is_built_anew(archive: FakeArchive, tmp_path: Path) -> None:
    archive.add("a", [said("pelican")])
    Search(archive, tmp_path).refresh()
    shutil.rmtree(tmp_path / "cache")

    assert find(Search(archive, tmp_path), "pelican") == ["a"]


def test_another_life_of_the_store_starts_the_caches_anew(
    archive: FakeArchive, search: Search
) -> None:
    archive.add("a", [said("pelican")])
    search.refresh()
    other = FakeArchive()
    other.index_id = "life-2"
    other.add("b", [said("pelican two")])
    archive.__dict__.update(other.__dict__)

    assert find(search, "pelican") == ["b"]


def terms_of(search: Search) -> list[str]:
    """Every word in the files, those of deleted documents included."""
    words = search.caches.words
    return [term for term, _ in words._searcher.terms_with_prefix("body", "", limit=1000)]


def test_a_plain_deletion_alone_would_leave_its_words(archive: FakeArchive, search: Search) -> None:
    archive.add("b", [said("harmless words")])
    row = archive.add("a", [said("the xyzzyplugh is out")])
    search.refresh()
    archive.kill(row)
    search.refresh()

    assert set(search.caches.words.rows()) == {1}
    assert "xyzzyplugh" in terms_of(search)


@pytest.mark.parametrize("erase", ["purge", "scrub"])
def test_erased_words_leave_the_disk(
    archive: FakeArchive, search: Search, tmp_path: Path, erase: str
) -> None:
    secret = archive.add("a", [said("the xyzzyplugh is out")])
    archive.embed(secret)
    archive.add("b", [said("harmless words")])
    search.refresh()
    assert "xyzzyplugh" in terms_of(search)
    assert len(search.caches.vectors) == 1

    if erase == "purge":
        archive.purge(secret)
    else:
        archive.scrub(secret, "the [redacted] is out")
    search.refresh()

    assert "xyzzyplugh" not in terms_of(search)
    assert len(search.caches.vectors) == 0
    assert [path.name for path in (tmp_path / "cache" / "lexical").iterdir()] == ["g2"]
    assert find(search, "harmless", mode="lexical") == ["b"]


def test_while_erased_words_leave_the_rest_is_still_found(
    archive: FakeArchive, search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = archive.add("a", [said("the xyzzyplugh entry")])
    for n in range(60):
        archive.add(f"s{n:02d}", [said(f"entry {n} " + "pad " * 50)])
    search.refresh()
    archive.purge(secret)
    monkeypatch.setattr("imprintd.search.engine.QUESTION_REFRESH_CHARS", 2000)

    first = search.query(Query("entry", limit=100, mode="lexical"))
    folders = {path.name for path in (tmp_path / "cache" / "lexical").iterdir()}

    assert (len(first.hits), find(search, "xyzzyplugh", mode="lexical")) == (60, [])
    assert first.notes == ("the index is catching up: the newest text may be missing",)
    assert folders == {"g1", "g2"}
    search.refresh()
    assert [path.name for path in (tmp_path / "cache" / "lexical").iterdir()] == ["g2"]
    assert len(find(search, "entry", limit=100, mode="lexical")) == 60
    assert "xyzzyplugh" not in terms_of(search)


def test_a_second_erasure_on_the_way_begins_again(
    archive: FakeArchive, search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [archive.add(f"s{n}", [said(f"xyzzyplugh{n} " + "pad " * 99)]) for n in range(40)]
    search.refresh()
    monkeypatch.setattr("imprintd.search.engine.QUESTION_REFRESH_CHARS", 2000)
    archive.purge(rows[39])
    find(search, "pad")
    archive.purge(rows[0])

    search.refresh()

    left = [term for term in terms_of(search) if term.startswith("xyzzy")]
    assert left == sorted(f"xyzzyplugh{n}" for n in range(1, 39))
    assert len(list((tmp_path / "cache" / "lexical").iterdir())) == 1


def test_files_and_folders_are_the_owners_only(
    archive: FakeArchive, search: Search, tmp_path: Path
) -> None:
    archive.add("a", [said("text")])
    search.refresh()
    entries = list((tmp_path / "cache").rglob("*"))

    assert {p.stat().st_mode & 0o777 for p in entries if p.is_dir()} == {0o700}
    assert {p.stat().st_mode & 0o777 for p in entries if p.is_file()} == {0o600}


def test_a_long_catch_up_answers_from_what_is_there(
    archive: FakeArchive, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imprintd.search.engine.QUESTION_REFRESH_CHARS", 1000)
    for n in range(300):
        archive.add(f"s{n:03d}", [said(f"entry {n} " + "pad " * 50)])

    results = search.query(Query("entry", limit=100))

    assert results.notes[0] == "the index is catching up: the newest text may be missing"
    assert 0 < len(results.hits) < 20
    search.refresh()
    assert len(find(search, "entry", limit=100)) == 100


def test_a_damaged_text_in_the_store_stops_neither_indexing_nor_answers(
    archive: FakeArchive, search: Search
) -> None:
    early = archive.add("early", [said("subject one")])
    for n in range(5):
        archive.add(f"s{n}", [said(f"subject {n}")])
    archive.damaged = {early.row}
    search.refresh()
    later = list(archive.live().values())[2]
    archive.damaged.add(later.row)

    results = search.query(Query("subject", mode="lexical"))

    assert sorted(keys(results)) == ["s0", "s2", "s3", "s4"]
    assert results.notes == ("some stored text is damaged: run `imprintd verify --all`",)


# -- membership


def expected_of(*rows: Row) -> dict[str, bytes]:
    return {row.memory_id: row.content_digest for row in rows}


def test_membership_of_a_sound_source(archive: FakeArchive, search: Search) -> None:
    row = archive.add("a", [said("one")])
    archive.embed(row)

    assert search.membership(row.source, expected_of(row)) == Held()


def lose_words(search: Search, row: Row) -> None:
    search.caches.words.write([], [row.row], search.caches.words.state)


def lose_vector(search: Search, row: Row) -> None:
    search.caches.vectors.remove(np.array([1], np.int64))


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (lose_words, ("missing", ())),
        (lose_vector, ("", ("1 vectors are not in the index",))),
    ],
)
def test_membership_sees_what_is_lost_and_repair_mends_it(
    archive: FakeArchive,
    search: Search,
    break_it: Callable[[Search, Row], None],
    expected: tuple[str, tuple[str, ...]],
) -> None:
    row = archive.add("a", [said("one")])
    archive.embed(row)
    search.refresh()

    break_it(search, row)
    held = search.membership(row.source, expected_of(row))

    assert held.reasons == expected[1]
    assert held.missing == ({row.memory_id} if expected[0] else frozenset())
    search.repair()
    assert search.membership(row.source, expected_of(row)) == Held()


def test_membership_sees_other_contents_and_rows_too_many(
    archive: FakeArchive, search: Search
) -> None:
    row, other = archive.add("a", [said("one")]), archive.add("a", [said("two")], start=100)

    held = search.membership(row.source, {row.memory_id: b"\1" * 32, "mgone": b"\2" * 32})

    assert held == Held(
        missing=frozenset({"mgone"}),
        changed=frozenset({row.memory_id}),
        extra=frozenset({other.memory_id}),
    )


def test_membership_of_an_unknown_source_is_all_missing(
    archive: FakeArchive, search: Search
) -> None:
    row = archive.add("a", [said("one")])
    archive.kill(row)

    assert search.membership(row.source, expected_of(row)) == Held(
        missing=frozenset({row.memory_id})
    )
