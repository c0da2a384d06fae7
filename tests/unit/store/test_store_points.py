"""Vectors and what is owed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_support import SOURCE, append_of, point_of, update_of

from imprintd.model.source import SourceId
from imprintd.store import Store

OTHER = SourceId("default", "/q", "codex:2")


def owed(
    store: Store, rules: str = "r1", limit: int = 100
) -> list[tuple[str, int, frozenset[int]]]:
    return [(o.content, o.stage, o.have) for o in store.take_owed(rules, limit)]


def test_what_a_publication_lacks_is_owed_in_order(store: Store) -> None:
    none: frozenset[int] = frozenset()
    tools = update_of("tool output here", source=OTHER, kind="tool_output")
    store.publish([tools, update_of("first message 00second message 1", chunk_chars=16)], "r1")
    # messages before tools, the newest first
    assert owed(store) == [
        ("second message 1", 0, none),
        ("first message 00", 0, none),
        ("tool output here", 0, none),
    ]
    assert owed(store, limit=1) == [("second message 1", 0, none)]
    assert store.owed_count() == 3


def test_points_settle_what_is_owed_window_by_window(store: Store) -> None:
    text = "a long one......"
    store.publish([update_of(text)], "r1")
    store.add_points([point_of(text, 0, 3)])
    assert owed(store) == [(text, 1, frozenset({0}))]
    store.add_points([point_of(text, 2, 3)])
    assert owed(store) == [(text, 1, frozenset({0, 2}))]
    store.add_points([point_of(text, 1, 3), point_of(text, 1, 3)])
    assert owed(store) == []
    assert [(p.window, p.windows, p.rules) for p in store.points_after(0, 10)] == [
        (0, 3, "r1"),
        (2, 3, "r1"),
        (1, 3, "r1"),
    ]
    statistics = store.statistics()
    assert (statistics.points, statistics.vector_bytes, statistics.owed) == (3, 24, 0)
    first = store.points_after(0, 10)[0]
    assert store.points_after(first.id, 1, "r1")[0].window == 2
    assert store.points_after(0, 10, "r2") == []
    assert store.points_by_id([first.id, 999]) == [first]


def test_first_windows_come_before_all_others(store: Store) -> None:
    store.publish([update_of("one.............two.............")], "r1")
    store.add_points([point_of("two.............", 0, 2)])
    assert [(o.content, o.stage) for o in store.take_owed("r1", 9)] == [
        ("one.............", 0),
        ("two.............", 1),
    ]


def test_points_that_come_with_the_text_leave_nothing_owed(store: Store) -> None:
    text = "small enough...."
    store.publish([update_of(text, points=(point_of(text),))], "r1")
    assert owed(store) == []
    # the same words elsewhere are embedded already
    store.publish([update_of(text, source=OTHER)], "r1")
    assert owed(store) == []
    assert len(store.points_of(OTHER, "r1")) == 1


def test_without_a_model_nothing_owed_is_lost(store: Store) -> None:
    text = "said before any "
    store.publish([update_of(text)], None)
    assert store.owed_count() == 1
    assert owed(store, "r1") == [(text, 0, frozenset())]
    store.add_points([point_of(text)])
    assert store.owed_count() == 0


def test_a_new_model_owes_everything_once_more_and_keeps_the_old_vectors(store: Store) -> None:
    text = "one.............two............."
    store.publish([update_of(text)], "r1")
    store.add_points([point_of(text[:16]), point_of(text[16:])])
    assert owed(store, "r1") == []
    assert [content for content, _, _ in owed(store, "r2")] == [text[16:], text[:16]]
    store.add_points([point_of(text[:16], rules="r2")])
    assert len(owed(store, "r2")) == 1
    # and back: what is there is not made again
    assert owed(store, "r1") == []
    assert len(owed(store, "r2")) == 1
    assert store.drop_rules("r1") == 2
    assert [p.rules for p in store.points_after(0, 9)] == ["r2"]


def test_contents_without_vectors_can_be_settled(store: Store) -> None:
    update = update_of("................")
    store.publish([update], "r1")
    store.settle_owed([update.chunks[0].content_digest, b"unknown"])
    assert owed(store) == []


def test_points_of_unknown_contents_are_passed_over(store: Store) -> None:
    store.add_points([point_of("nobody said this")])
    assert store.points_after(0, 9) == []


def test_points_and_debts_go_with_their_content(store: Store) -> None:
    first = update_of("kept............gone")
    store.publish([first], "r1")
    store.add_points([point_of("gone"), point_of("kept............")])
    store.publish([append_of(first, "kept............gone", " and on")], "r1")
    assert [p.content_digest for p in store.points_after(0, 9)] == [
        point_of("kept............").content_digest
    ]
    assert [content for content, _, _ in owed(store)] == ["gone and on"]
    store.delete_source(SOURCE)
    assert (store.points_after(0, 9), store.owed_count()) == ([], 0)


def test_a_peers_points_count_for_their_own_source_only(store: Store) -> None:
    text = "the same words.."
    theirs = replace(update_of(text, points=(point_of(text),)), origin="dpeer")
    store.publish([theirs], "r1")
    assert owed(store) == []
    assert [p.scope for p in store.points_of(SOURCE, "r1")] == [1]
    store.publish([update_of(text, source=OTHER)], "r1")
    assert store.points_of(OTHER, "r1") == []
    assert [content for content, _, _ in owed(store)] == [text]
    # what is computed here takes their place
    store.add_points([point_of(text)])
    assert [p.scope for p in store.points_after(0, 9)] == [0]
    assert owed(store) == []


def test_a_peers_late_points_do_not_settle_other_sources(store: Store) -> None:
    text = "the same words.."
    store.publish([update_of(text, source=OTHER)], "r1")
    theirs = replace(update_of(text, points=(point_of(text),)), origin="dpeer")
    store.publish([theirs], "r1")
    assert [content for content, _, _ in owed(store)] == [text]
    store.delete_source(SOURCE)
    assert store.points_after(0, 9) == []


@pytest.mark.parametrize("count", [1, 7])
def test_a_point_leads_to_every_place_of_its_content(store: Store, count: int) -> None:
    text = "again and again."
    for number in range(count):
        store.publish([update_of(text, source=SourceId("default", "", f"c:{number}"))], "r1")
    store.add_points([point_of(text)])
    (point,) = store.points_after(0, 9)
    places = store.chunks_of_contents([point.content], content=True)
    assert sorted(p.key for p in places) == [f"c:{n}" for n in range(count)]
    assert {p.content for p in places} == {text}
