"""Canonical text and its reading back, whatever the events hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprintd.errors import IntegrityError
from imprintd.model.event import KINDS, ROLES, Event, EventSpan
from imprintd.text.canonical import header_at, parse, parse_spans, render, render_all

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
hostile = st.sampled_from(
    [
        "",
        "\n",
        "\x00",
        '"',
        "\\22;",
        " · call x",
        "»\n«",
        "\ud83d\ude00",
        "\ud83d",
        "é\u0301",
        "🏳️‍🌈",
        "\r\n",
        "«user message · turn 1 · 3 chars»\nabc\n",
        "a b",
        "2026-01-02T03:04:05Z",
    ]
)
value = st.none() | any_text | hostile
seconds = st.none() | st.floats(allow_nan=False) | st.sampled_from([0.0, 1.5, 1e22, 1e-9])
filler = st.builds(
    lambda unit, times: unit * times,
    st.sampled_from(
        ["word ", "a longer line of text\n", "x", "par\n\n", "ü", "漢字", "12:03 ok\n", "\ud800"]
    ),
    st.sampled_from([1, 3, 20, 400]),
)
body = st.lists(any_text | hostile | filler, max_size=4).map("".join)


def events_of(bodies: st.SearchStrategy[str]) -> st.SearchStrategy[Event]:
    """Events of every role and kind."""
    return st.builds(
        Event,
        role=st.sampled_from(ROLES),
        kind=st.sampled_from(KINDS),
        body=bodies,
        turn=st.integers(0, 10**15),
        timestamp=value,
        call_id=value,
        language=value,
        audio_start=seconds,
        audio_end=seconds,
    )


events = st.lists(events_of(body), max_size=12)


def corpus_events(limit: int = 4000) -> list[list[Event]]:
    """Conversations made of the strings in real transcripts; empty without them."""
    found = []
    for path in sorted(CORPUS.glob("c*/**/*.jsonl"))[::7]:
        conversation: list[Event] = []
        for line in path.read_text("utf-8", "replace").split("\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            _strings(record, "", conversation)
        found.append(conversation[:limit])
    return found


def _strings(node: object, key: str, out: list[Event]) -> None:
    if isinstance(node, dict):
        for name, child in node.items():
            _strings(child, name, out)
    elif isinstance(node, list):
        for child in node:
            _strings(child, key, out)
    elif isinstance(node, str) and key not in {"uuid", "parentUuid", "type", "sessionId"}:
        if key in {"output", "content", "stdout"}:
            out.append(Event("tool", "tool_output", node, len(out)))
        else:
            out.append(Event("assistant", "message", node, len(out)))


@settings(deadline=None)
@given(events)
def test_events_round_trip(given_events: list[Event]) -> None:
    text, spans = render_all(given_events, 7)
    assert text == "".join(map(render, given_events))
    assert parse(text) == given_events
    found = parse_spans(text)
    assert tuple(
        EventSpan(s.start + 7, s.end + 7, s.role, s.kind, s.turn, s.timestamp) for _, s in found
    ) == tuple(spans)
    assert [text[s.start : s.end] for _, s in found] == [render(e) for e in given_events]


@settings(deadline=None)
@given(events_of(body))
def test_a_header_stands_alone_on_its_line(event: Event) -> None:
    text = render(event)
    header = header_at("…" + text, 1)
    assert header is not None
    assert text[header.length] == "\n"
    assert "\n" not in text[: header.length]
    assert header.span_chars == len(text)
    assert header.body_chars == len(event.body)


@settings(deadline=None)
@given(events, st.data())
def test_a_changed_text_never_reads_back_as_another_of_the_same_spelling(
    given_events: list[Event], data: st.DataObject
) -> None:
    text, _ = render_all(given_events)
    at = data.draw(st.integers(0, len(text)))
    drop = data.draw(st.integers(0, 3))
    changed = text[:at] + data.draw(any_text | hostile) + text[at + drop :]
    try:
        read = parse(changed)
    except IntegrityError:
        return
    assert render_all(read)[0] == changed


@pytest.mark.skipif(not CORPUS.exists(), reason="no collection of transcripts here")
def test_real_texts_round_trip() -> None:
    for conversation in corpus_events():
        text, _ = render_all(conversation)
        assert parse(text) == conversation
