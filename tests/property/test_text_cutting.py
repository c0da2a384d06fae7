"""Blocks and chunks: they rebuild the text and stay as they are under append."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_text_events import CORPUS, corpus_events, events

from imprintd.model.event import Event, EventSpan
from imprintd.model.snapshot import Chunk, Limits
from imprintd.model.source import SourceId
from imprintd.text.blocks import BlockWriter, cut, encode, unpack
from imprintd.text.canonical import render_all
from imprintd.text.chunking import TOOL_KINDS, chunk_events, chunk_plain

SOURCE = SourceId("default", "/home/me/project", "claude:1")
limits_small = st.builds(
    lambda size, code, more, piece, overlap: Limits(
        size_prose=size,
        size_code=code,
        hard_max=size + more,
        piece=size + more + piece,
        overlap=min(overlap, min(size, code) // 2 - 1),
    ),
    st.sampled_from([2, 3]) | st.integers(40, 400),
    st.integers(2, 300),
    st.integers(0, 100),
    st.integers(0, 500),
    st.integers(0, 60),
)


def rebuilt(text: str, chunks: list[Chunk]) -> str:
    """The text again, from the chunks' own contents and spans only."""
    out = ""
    for chunk in chunks:
        assert chunk.start <= len(out) < chunk.end
        out += text[chunk.start : chunk.end][len(out) - chunk.start :]
    return out


def under(spans: Sequence[EventSpan], chunk: Chunk) -> tuple[EventSpan, ...]:
    """The events that overlap a chunk, clipped, the slow way."""
    return tuple(
        replace(s, start=max(s.start, chunk.start), end=min(s.end, chunk.end))
        for s in spans
        if s.start < chunk.end and s.end > chunk.start
    )


def check_chunks(text: str, chunks: list[Chunk], limits: Limits) -> None:
    assert rebuilt(text, chunks) == text
    for chunk in chunks:
        content = text[chunk.start : chunk.end]
        assert chunk.content_digest == hashlib.sha256(encode(content)).digest()
        assert len(content) <= (limits.piece if chunk.long_event else limits.hard_max)
        assert len(chunk.memory_id) == 26
    assert len({c.memory_id for c in chunks}) == len(chunks)


@settings(deadline=None)
@given(events, limits_small)
def test_chunks_rebuild_the_text_and_name_their_events(
    conversation: list[Event], limits: Limits
) -> None:
    text, spans = render_all(conversation)
    chunks = chunk_events(text, 0, spans, SOURCE, limits)
    check_chunks(text, chunks, limits)
    for chunk in chunks:
        assert chunk.events == under(spans, chunk)
    is_long = [s.end - s.start > limits.hard_max and s.kind in TOOL_KINDS for s in spans]
    for span, long_event in zip(spans, is_long, strict=True):
        over = [c for c in chunks if c.start < span.end and c.end > span.start]
        if long_event:
            assert all(c.long_event and len(c.events) == 1 for c in over)
            assert (over[0].start, over[-1].end) == (span.start, span.end)
            assert all(a.end == b.start for a, b in pairwise(over))
            if span.end - span.start <= limits.piece:
                assert len(over) == 1
        else:
            assert not any(c.long_event for c in over)
            if span.end - span.start <= limits.size_prose:
                assert len(over) == 1


@settings(deadline=None)
@given(events, limits_small, st.data())
def test_chunking_goes_on_from_its_last_chunk(
    conversation: list[Event], limits: Limits, data: st.DataObject
) -> None:
    text, spans = render_all(conversation)
    whole = chunk_events(text, 0, spans, SOURCE, limits)
    early = data.draw(st.integers(0, len(spans)))
    end = spans[early - 1].end if early else 0
    before = chunk_events(text[:end], 0, spans[:early], SOURCE, limits)
    assert before[:-1] == whole[: max(0, len(before) - 1)]
    start = before[-1].start if before else 0
    rest = [s for s in spans if s.end > start]
    assert before[:-1] + chunk_events(text[start:], start, rest, SOURCE, limits) == whole


@settings(deadline=None)
@given(events, limits_small, st.integers(0, 5000))
def test_long_event_rules_touch_only_long_tool_events(
    conversation: list[Event], limits: Limits, piece: int
) -> None:
    text, spans = render_all(conversation)
    other = replace(limits, piece=limits.hard_max + piece)
    longest = max((s.end - s.start for s in spans if s.kind in TOOL_KINDS), default=0)
    if longest <= limits.hard_max:
        assert chunk_events(text, 0, spans, SOURCE, limits) == chunk_events(
            text, 0, spans, SOURCE, other
        )
    # every stretch between long events is cut as if it stood alone
    chunks = chunk_events(text, 0, spans, SOURCE, limits)
    stretch: list[EventSpan] = []
    expected: list[tuple[int, int]] = []
    for span in [*spans, None]:
        if span and not (span.end - span.start > limits.hard_max and span.kind in TOOL_KINDS):
            stretch.append(span)
            continue
        if stretch:
            start = stretch[0].start
            expected += [
                (c.start, c.end)
                for c in chunk_events(text[start : stretch[-1].end], start, stretch, SOURCE, limits)
            ]
        stretch = []
    assert [(c.start, c.end) for c in chunks if not c.long_event] == expected


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "long line here\n", "b" * 30, "\n"]), max_size=80), st.data())
def test_long_events_are_cut_at_line_ends(parts: list[str], data: st.DataObject) -> None:
    limits = Limits(
        size_prose=40, size_code=40, hard_max=60, overlap=0, piece=data.draw(st.integers(90, 200))
    )
    text, spans = render_all([Event("tool", "tool_output", "".join(parts))])
    chunks = chunk_events(text, 0, spans, SOURCE, limits)
    for chunk in chunks[:-1]:
        if chunk.long_event and text[chunk.end - 1] != "\n":
            line_start = text.rfind("\n", 0, chunk.end) + 1
            assert text.find("\n", chunk.end) + 1 - max(line_start, chunk.start) > limits.piece


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["# Title\n", "text of a line\n", "\n", "def f():\n", "    x = 1\n", "w " * 30]
        )
        | st.text(max_size=20),
        max_size=120,
    ).map("".join),
    limits_small,
    st.sampled_from(["prose", "code"]),
    st.data(),
)
def test_files_rebuild_and_grow(text: str, limits: Limits, kind: str, data: st.DataObject) -> None:
    cut_as: Literal["prose", "code"] = "prose" if kind == "prose" else "code"
    chunks = chunk_plain(text, SOURCE, limits, cut_as)
    assert rebuilt(text, chunks) == text
    size = limits.size_prose if kind == "prose" else limits.size_code
    assert all(c.end - c.start <= size and c.code == (kind == "code") for c in chunks)
    before = chunk_plain(text[: data.draw(st.integers(0, len(text)))], SOURCE, limits, cut_as)
    assert before[:-1] == chunks[: max(0, len(before) - 1)] or len(text) == 0
    start = before[-1].start if before else 0
    assert before[:-1] + chunk_plain(text[start:], SOURCE, limits, cut_as, start) == chunks


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=300), st.integers(4, 64), st.data())
def test_blocks_rebuild_the_bytes_and_keep_their_places(
    text: str, size_max: int, data: st.DataObject
) -> None:
    plain = encode(text)
    pieces = cut(plain, size_max)
    assert b"".join(pieces) == plain
    assert all(0 < len(p) <= size_max for p in pieces)
    # greedy: the first character of the next block would not have fitted
    for piece, after in pairwise(pieces):
        first = after.decode("utf-8", "surrogatepass")[0]
        assert len(piece) + len(encode(first)) > size_max
    at = data.draw(st.integers(0, len(text)))
    shorter = cut(encode(text[:at]), size_max)
    assert shorter[:-1] == pieces[: max(0, len(shorter) - 1)]
    writer = BlockWriter(size_max=size_max)
    for part in (text[:at], text[at:]):
        writer.write(encode(part))
    written = [unpack(b.packed, b.digest) for b in writer.closed]
    assert written + ([writer.open_block] if writer.open_block else []) == pieces
    assert len(writer.open_block) < size_max


@pytest.mark.skipif(not CORPUS.exists(), reason="no collection of transcripts here")
def test_real_texts_are_cut_and_rebuilt() -> None:
    limits = Limits()
    for conversation in corpus_events():
        text, spans = render_all(conversation)
        check_chunks(text, chunk_events(text, 0, spans, SOURCE, limits), limits)
        assert b"".join(cut(encode(text))) == encode(text)
