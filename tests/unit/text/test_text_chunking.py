"""Where conversations and files are cut."""

from itertools import pairwise

import pytest

from imprintd.model.event import Event, EventSpan, Kind, Role
from imprintd.model.snapshot import Chunk, Limits
from imprintd.model.source import SourceId
from imprintd.text.canonical import render, render_all
from imprintd.text.chunking import ChunkNamer, chunk_events, chunk_plain

SOURCE = SourceId("default", "/p", "claude:1")
LIMITS = Limits()
LINE = "the quick brown fox jumps over the lazy dog again and again\n"


def chunked(events: list[Event], limits: Limits = LIMITS) -> tuple[str, list[Chunk]]:
    text, spans = render_all(events)
    return text, chunk_events(text, 0, spans, SOURCE, limits)


def sized(span: int, role: Role = "assistant", kind: Kind = "message", line: str = LINE) -> Event:
    """An event whose span has exactly that many characters."""
    body = (line * (span // len(line) + 1))[: span - len(render(Event(role, kind, "", 1)))]
    while len(render(Event(role, kind, body, 1))) > span:
        body = body[:-1]
    body += "." * (span - len(render(Event(role, kind, body, 1))))
    return Event(role, kind, body, 1)


def spans_of(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(c.start, c.end) for c in chunks]


def test_whole_events_are_packed() -> None:
    events = [sized(n) for n in (2000, 2500, 1500)]
    assert spans_of(chunked(events)[1]) == [(0, 6000)]
    assert spans_of(chunked([*events, sized(100)])[1]) == [(0, 6000), (6000, 6100)]
    assert spans_of(chunked([sized(3000), sized(5999), sized(40)])[1]) == [
        (0, 3000),
        (3000, 8999),
        (8999, 9039),
    ]


def test_a_chunk_names_its_events() -> None:
    _, (first, second) = chunked([sized(2000), sized(1000, "user"), sized(5000)])
    assert first.events == (
        EventSpan(0, 2000, "assistant", "message", 1, None),
        EventSpan(2000, 3000, "user", "message", 1, None),
    )
    assert second.events == (EventSpan(3000, 8000, "assistant", "message", 1, None),)


def test_a_long_message_is_cut_at_paragraphs_with_overlap() -> None:
    paragraph = LINE * 20 + "\n"
    text, chunks = chunked([Event("assistant", "message", paragraph * 12, 1)])
    assert len(chunks) == 3
    for before, after in pairwise(chunks):
        assert text[: before.end].endswith("\n\n")
        repeated = text[after.start : before.end]
        assert 200 <= len(repeated) <= 400
        assert text[after.start - 1] == "\n"
    assert all(c.end - c.start <= 6000 and not c.long_event for c in chunks)
    assert chunks[1].events == (
        EventSpan(chunks[1].start, chunks[1].end, "assistant", "message", 1, None),
    )


@pytest.mark.parametrize(
    ("body", "ends"),
    [(LINE * 300, "\n"), ("word " * 4000, " "), ("語" * 20_000, "語")],
    ids=["lines", "words", "neither"],
)
def test_without_paragraphs_a_message_is_cut_at_lines_then_words(body: str, ends: str) -> None:
    text, chunks = chunked([Event("assistant", "message", body, 1)])
    assert {text[c.end - 1] for c in chunks[:-1]} == {ends}
    assert all(3000 < c.end - c.start <= 6000 for c in chunks[:-1])


def test_a_rest_that_would_be_mostly_overlap_stays_whole() -> None:
    assert spans_of(chunked([sized(6400)])[1]) == [(0, 6400)]
    assert len(chunked([sized(6401)])[1]) == 2


def test_the_rest_of_a_cut_message_is_packed_with_what_follows() -> None:
    text, chunks = chunked([sized(9000), sized(500), sized(500)])
    assert len(chunks) == 2
    assert chunks[1].end == len(text)
    assert [e.end - e.start for e in chunks[1].events][1:] == [500, 500]


@pytest.mark.parametrize("kind", ["tool_output", "tool_call"])
def test_a_long_tool_event_is_one_chunk(kind: Kind) -> None:
    events = [sized(500), sized(8001, "tool", kind), sized(500), sized(20_000, "tool", kind)]
    _, chunks = chunked(events)
    assert [(c.start, c.end, c.long_event) for c in chunks] == [
        (0, 500, False),
        (500, 8501, True),
        (8501, 9001, False),
        (9001, 29_001, True),
    ]


def test_a_tool_event_up_to_the_limit_is_an_ordinary_one() -> None:
    _, chunks = chunked([sized(8000, "tool", "tool_output")])
    assert [c.long_event for c in chunks] == [False, False]


def test_a_long_message_is_prose_whatever_its_length() -> None:
    _, chunks = chunked([sized(300_000)])
    assert all(not c.long_event and c.end - c.start <= 8000 for c in chunks)


def test_an_event_longer_than_a_piece_is_cut_at_line_ends() -> None:
    text, chunks = chunked([sized(700_000, "tool", "tool_output")])
    assert [c.start for c in chunks[1:]] == [c.end for c in chunks[:-1]]
    assert all(c.long_event and text[c.end - 1] == "\n" for c in chunks)
    assert all(262_144 - len(LINE) < c.end - c.start <= 262_144 for c in chunks[:-1])
    assert chunks[-1].end == len(text)


def test_only_a_line_longer_than_a_piece_is_cut_inside() -> None:
    limits = Limits(size_prose=50, size_code=50, hard_max=60, overlap=0, piece=100)
    body = "a" * 40 + "\n" + "b" * 98 + "\n" + "c" * 250 + "\n" + "d" * 30
    text, chunks = chunked([Event("tool", "tool_output", body, 1)], limits)
    header = text.index("\n") + 1
    contents = [text[c.start : c.end] for c in chunks]
    assert contents == [
        text[:header] + "a" * 40 + "\n",
        # the b line fits into a piece, the c line fits into none
        "b" * 98 + "\n" + "c",
        "c" * 100,
        "c" * 100,
        "c" * 49 + "\n" + "d" * 30 + "\n",
    ]


@pytest.mark.parametrize("unit", ["e\u0301", "\ud83d\ude00", "👍🏽", "a\r\n"])
def test_no_cut_splits_what_a_reader_sees_as_one(unit: str) -> None:
    text, chunks = chunked([Event("assistant", "message", unit * 9000, 1)])
    first = text.index(unit)
    for chunk in chunks[:-1]:
        assert (chunk.end - first) % len(unit) == 0
    for chunk in chunks[1:]:
        assert (chunk.start - first) % len(unit) == 0


def test_an_endless_run_of_marks_is_cut_all_the_same() -> None:
    _, chunks = chunked([Event("assistant", "message", "e" + "\u0301" * 50_000, 1)])
    assert max(c.end - c.start for c in chunks) <= 8000


def test_ids_differ_by_source_and_span() -> None:
    ids = {
        ChunkNamer(SourceId(workspace, project, key)).memory_id(start, end, b"d" * 32)
        for workspace in ("default", "other")
        for project, key in (("/p", "k"), ("/pk", ""), ("", "/pk"), ("/p\ud800", "k"))
        for start, end in ((0, 1), (1, 2), (0, 2))
    }
    # a workspace is a world of its own: the same text has the same ids there
    assert len(ids) == 12


def test_prose_files_are_cut_before_headings() -> None:
    section = LINE * 30
    text = "".join(f"## Part {i}\n\n{section}\n" for i in range(10))
    chunks = chunk_plain(text, SOURCE, LIMITS, "prose")
    assert all(text.startswith("## Part", c.start) for c in chunks)
    assert [c.start for c in chunks[1:]] == [c.end for c in chunks[:-1]]


def test_code_files_are_cut_before_definitions() -> None:
    function = "@cached\ndef name(x):\n" + "    y = x + 1\n\n" * 40 + "    return y\n\n\n"
    text = function * 20
    chunks = chunk_plain(text, SOURCE, LIMITS, "code")
    assert len(chunks) > 2
    assert all(c.code and text.startswith("@cached", c.start) for c in chunks)
    dense = "".join(f"fn f{i}() {{\n" + "  x;\n" * 50 + "}\n" for i in range(60))
    assert all(
        dense.startswith("fn f", c.start) for c in chunk_plain(dense, SOURCE, LIMITS, "code")
    )


def test_an_empty_file_has_no_chunks() -> None:
    assert chunk_plain("", SOURCE, LIMITS, "prose") == []
