"""Columns of live chunks, against a plain model of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fake import RULES, FakeArchive, Row, said

from imprintd.search import filters
from imprintd.search.ports import Query
from imprintd.search.table import Table


def filled(archive: FakeArchive) -> Table:
    table = Table()
    for row in archive.live().values():
        table.add(row)
    for point in archive.points_after(0, 10_000):
        table.add_point(point)
    return table


def key_of(table: Table, slot: int | None) -> str | None:
    return None if slot is None else table.key[table.place[slot]]


def slot(table: Table, row: Row) -> int:
    found = table.slot_of(row.row)
    assert found is not None
    return found


def test_rows_are_known_once_and_until_they_die() -> None:
    archive = FakeArchive()
    row = archive.add("a", "text")
    table = filled(archive)

    table.add(row)
    assert (len(table), table.slot_of(row.row), table.slot_of(77)) == (1, 0, None)
    table.kill(row.row)
    table.kill(row.row)
    table.kill(77)

    assert (len(table), table.slot_of(row.row), table.dead) == (0, None, 1)


def test_a_content_stands_in_every_live_slot() -> None:
    archive = FakeArchive()
    first, second, third = (archive.add(key, "same") for key in "abc")
    table = filled(archive)
    table.kill(second.row)

    assert list(table.slots_of_code(table.code[0])) == [slot(table, third), slot(table, first)]


def test_points_count_for_their_scope() -> None:
    archive = FakeArchive()
    mine, theirs = archive.add("a", "same"), archive.add("b", "same")
    archive.embed(mine)
    archive.embed(theirs, scope=theirs.source_row)
    table = filled(archive)

    assert list(table.slots_of_point(0)) == [slot(table, theirs), slot(table, mine)]
    assert list(table.slots_of_point(1)) == [slot(table, theirs)]
    assert list(table.points_of(slot(table, mine))) == [0]
    assert list(table.points_of(slot(table, theirs))) == [1, 0]


def test_points_without_a_chunk_are_dropped_once() -> None:
    archive = FakeArchive()
    kept, gone = archive.add("a", "kept"), archive.add("b", "gone")
    archive.embed(kept)
    archive.embed(gone)
    table = filled(archive)
    assert table.unembedded() == 0

    table.kill(gone.row)

    assert table.drop_orphans().tolist() == [2]
    again = archive.add("c", "gone")
    table.add(again)
    assert list(table.points_of(slot(table, again))) == []
    assert table.unembedded() == 1


def test_neighbours_within_a_source_are_by_place() -> None:
    archive = FakeArchive()
    last = archive.add("a", "third", start=200)
    first = archive.add("a", "first", start=0)
    middle = archive.add("a", "second", start=100)
    table = filled(archive)

    assert table.neighbours(slot(table, middle), 600) == (slot(table, first), slot(table, last))
    assert table.neighbours(slot(table, first), 600) == (None, slot(table, middle))
    table.kill(middle.row)
    assert table.neighbours(slot(table, first), 600) == (None, slot(table, last))


def test_neighbours_of_single_short_sources_are_by_time_in_their_project() -> None:
    archive = FakeArchive()
    for n, key in enumerate(["early", "late", "middle"]):
        archive.add(key, "text " + key, first_ms=[10, 30, 20][n], last_ms=99)
    archive.add("long", "x" * 700, first_ms=15, last_ms=99)
    archive.add("elsewhere", "text", project="/q", first_ms=16, last_ms=99)
    archive.add("two", "a", first_ms=17, last_ms=99)
    archive.add("two", "b", start=1, first_ms=18, last_ms=99)
    table = filled(archive)

    around = {
        key_of(table, s): tuple(key_of(table, n) for n in table.neighbours(s, 600))
        for s in range(len(table.row))
        if table.is_short(s, 600)
    }

    assert around == {
        "early": (None, "middle"),
        "middle": ("early", "late"),
        "late": ("middle", None),
        "elsewhere": (None, None),
        "two": ("two", None),
    }


@pytest.mark.parametrize(
    ("project", "asked", "inside"),
    [
        ("/home/a/shop", "/home/a/shop", True),
        ("/home/a/shop/sub", "/home/a/shop/", True),
        ("/home/a/shopping", "/home/a/shop", False),
        ("/home/a/shop", "shop", True),
        ("/home/a/shop", "a/shop", True),
        ("C:\\work\\shop", "shop", True),
        ("/home/a/workshop", "shop", False),
        ("", "shop", False),
    ],
)
def test_projects_are_folders(project: str, asked: str, inside: bool) -> None:
    assert filters.in_project(project, asked) is inside


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "kill"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from(["/p", "/q"]),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(steps)
def test_any_history_leaves_what_a_fresh_table_has(
    history: list[tuple[str, str, str, str]],
) -> None:
    archive, table = FakeArchive(), Table()
    for what, key, text, project in history:
        if what == "add":
            table.add(archive.add(key, [said(text)], project=project, start=len(archive.live())))
        elif archive.live():
            row = next(iter(archive.live().values()))
            archive.kill(row)
            table.kill(row.row)
    fresh = filled(archive)
    query = Query("any", project="/p", role="user")

    def seen(one: Table, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[object]:
        return [
            (
                one.row[s],
                one.key[one.place[s]],
                [one.row[o] for o in one.slots_of_code(one.code[s])],
                [None if n is None else one.row[n] for n in one.neighbours(s, 600)],
            )
            for s in np.flatnonzero(mask).tolist()
        ]

    assert seen(table, table.living()) == seen(fresh, fresh.living())
    assert seen(table, filters.mask(table, query)) == seen(fresh, filters.mask(fresh, query))
    assert (len(table), table.unembedded()) == (len(fresh), fresh.unembedded())


def test_points_under_a_mask() -> None:
    archive = FakeArchive()
    for key, project in (("a", "/p"), ("b", "/q"), ("c", "/p")):
        archive.embed(archive.add(key, key * 9, project=project), 2, rules=RULES)
    table = filled(archive)

    mask = filters.mask(table, Query("any", project="/p"))

    assert filters.points_under(table, mask).tolist() == [1, 2, 5, 6]
