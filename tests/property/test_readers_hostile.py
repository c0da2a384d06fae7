"""Whatever bytes and shapes come: a reading or a named error, nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "readers"))

from reader_support import CLAUDE, CODEX, SAMPLES, jsonl, read

from imprintd.errors import DamagedLine
from imprintd.readers import identify
from imprintd.readers.context import split_claude, split_codex
from imprintd.readers.render import value_text
from imprintd.readers.tally import Tally

SLOWLY = settings(max_examples=200, deadline=None)
READERS = st.sampled_from([CLAUDE, CODEX])
LINES = [
    line
    for path in sorted(SAMPLES.glob("*/**/*.jsonl"))
    for line in path.read_bytes().splitlines(keepends=True)
]
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@SLOWLY
@given(READERS, st.lists(st.binary(max_size=40) | st.sampled_from(LINES), max_size=8))
def test_any_bytes_are_read_or_refused(reader: Any, parts: list[bytes]) -> None:
    data = b"\n".join(parts)
    try:
        line = read(reader, data).lines
    except DamagedLine as error:
        line = error.line or 0
        assert line > 0
    assert line <= data.count(b"\n")
    salvaged = read(reader, data, salvage=True)
    assert salvaged.consumed >= data.rfind(b"\n") + 1


@SLOWLY
@given(READERS, st.sampled_from(LINES), st.data())
def test_a_flipped_byte_is_read_or_refused(reader: Any, line: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(line) - 2))
    byte = draw.draw(st.integers(0, 255))
    data = line[:at] + bytes([byte]) + line[at + 1 :]
    try:
        read(reader, data)
    except DamagedLine:
        assert read(reader, data, salvage=True).consumed == len(data)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A real record with one value, somewhere, of another shape."""
    import orjson

    record: Any = orjson.loads(draw(st.sampled_from(LINES)))
    node: Any = record
    for _ in range(draw(st.integers(0, 5))):
        children = list(node) if isinstance(node, dict) else range(len(node))
        inner = [key for key in children if isinstance(node[key], dict | list) and node[key]]
        if not inner:
            break
        node = node[draw(st.sampled_from(inner))]
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    node[draw(st.sampled_from(keys))] = draw(VALUES)
    return dict(record)


@settings(max_examples=600, deadline=None)
@given(READERS, mutated())
def test_values_of_another_shape_are_read(reader: Any, record: dict[str, Any]) -> None:
    got = read(reader, jsonl(record))
    assert got.consumed == len(jsonl(record))
    for event in got.events:
        assert isinstance(event.body, str)
        assert event.call_id is None or isinstance(event.call_id, str)
        assert event.timestamp is None or isinstance(event.timestamp, str)


@SLOWLY
@given(st.text(max_size=30), st.binary(max_size=60) | st.sampled_from(LINES))
def test_any_name_and_head_is_told_or_not(path: str, head: bytes) -> None:
    found = identify(path, head)
    if found is not None:
        key = found[1].key
        assert "/" not in key
        assert len(key) < 400


@SLOWLY
@given(VALUES)
def test_every_string_of_a_value_is_in_its_text(value: Any) -> None:
    tally = Tally()
    got = value_text(value, tally, opaque=False)

    def strings(node: Any) -> list[str]:
        if isinstance(node, str):
            return [node]
        if isinstance(node, dict):
            return [*node, *(s for child in node.values() for s in strings(child))]
        return [s for child in node for s in strings(child)] if isinstance(node, list) else []

    assert [words for words in strings(value) if words not in got] == []


TAGS = st.sampled_from(
    [
        "<system-reminder>",
        "</system-reminder>",
        "<command-args>",
        "</command-args>",
        "<command-name>",
        "</command-name>",
        "\n",
        "words",
        " ",
        "# Context from my IDE setup:",
        "## My request for Codex:",
    ]
)


@pytest.mark.parametrize("split", [split_claude, split_codex])
@SLOWLY
@given(parts=st.lists(TAGS, max_size=12))
def test_splitting_loses_no_word(split: Any, parts: list[str]) -> None:
    text = "".join(parts)
    got = split(text)
    assert sum(part.text.count("words") for part in got) == text.count("words")
    at = 0
    for part in got:
        # in order, and each as it stood
        at = text.index(part.text, at) + len(part.text)
