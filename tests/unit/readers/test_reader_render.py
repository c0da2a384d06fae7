"""Decoded values as text: every readable string verbatim, cost bounded."""

from __future__ import annotations

from typing import Any

import pytest

from imprintd.readers.render import call_body, parsed, value_text
from imprintd.readers.tally import Tally


def shown(value: Any, **how: Any) -> tuple[str, dict[str, int]]:
    tally = Tally()
    return value_text(value, tally, **how), tally.omissions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"command": "ls -l", "description": "List"}, "command: ls -l\ndescription: List"),
        ({"content": "a\nb"}, "content:\na\nb"),
        ({"n": 1, "f": 1.5, "t": True, "o": None}, "n: 1\nf: 1.5\nt: true\no: null"),
        ({"list": ["a", 2, "c\nd"]}, "list:\n- a\n- 2\n- c\nd"),
        ({"todos": [{"c": "x"}, {"c": "y"}]}, "todos[0].c: x\ntodos[1].c: y"),
        ({"a": {"b": {"c": "d"}}}, "a.b.c: d"),
        ({"a": {}, "b": []}, "a: {}\nb: []"),
        ([["a"], {"b": 1}], "[0]:\n- a\n[1].b: 1"),
        ("words", "words"),
        (["a", "b"], "- a\n- b"),
        ({}, ""),
        (7, "7"),
    ],
)
def test_values(value: Any, expected: str) -> None:
    assert shown(value) == (expected, {})


def test_a_call_is_its_name_and_its_input() -> None:
    tally = Tally()
    assert call_body("Bash", {"command": 'echo "a\tb"'}, tally) == 'Bash\ncommand: echo "a\tb"'
    assert call_body("apply_patch", "*** Begin", tally) == "apply_patch\n*** Begin"
    assert call_body("Stop", {}, tally) == "Stop"
    assert call_body("Stop", None, tally) == "Stop\nnull"
    assert tally.omissions == {}


@pytest.mark.parametrize(
    ("value", "expected", "omitted"),
    [
        (
            {"type": "base64", "media_type": "image/png", "data": "QUJD"},
            "type: base64\nmedia_type: image/png",
            {"image": 1},
        ),
        ({"mimeType": "audio/wav", "data": "QUJD"}, "mimeType: audio/wav", {"audio": 1}),
        (
            {"mimeType": "application/pdf", "blob": "QUJD"},
            "mimeType: application/pdf",
            {"document": 1},
        ),
        ({"file": {"base64": "QUJD", "type": "image/png"}}, "file.type: image/png", {"image": 1}),
        ({"url": "data:image/png;base64,QUJD"}, "url: [image]", {"image": 1}),
        ({"urls": ["data:application/pdf;base64,QUJD"]}, "urls:\n- [document]", {"document": 1}),
        (
            {"type": "text", "media_type": "text/plain", "data": "words"},
            "type: text\nmedia_type: text/plain\ndata: words",
            {},
        ),
        ({"data": "words"}, "data: words", {}),
        (
            {"mimeType": "application/json", "data": '{"a": 1}'},
            'mimeType: application/json\ndata: {"a": 1}',
            {},
        ),
        ({"url": "data:,hello"}, "url: data:,hello", {}),
        ({"signature": "QUJD", "encrypted_content": "x"}, "", {"signature": 1, "encrypted": 1}),
    ],
)
def test_declared_media_is_left_out(value: Any, expected: str, omitted: dict[str, int]) -> None:
    assert shown(value) == (expected, omitted)


def test_an_input_may_have_a_field_named_signature() -> None:
    assert shown({"signature": "fn f(a)", "n": 1}, opaque=False) == ("signature: fn f(a)\nn: 1", {})


def test_metadata_fields_are_skipped_at_the_top_only() -> None:
    assert shown({"type": "x", "a": {"type": "y"}}, skip={"type"}) == ("a.type: y", {})


def test_a_long_key_is_not_repeated_before_every_leaf() -> None:
    key = "k" * 100_000
    got, _ = shown({key: {f"leaf {n}": n for n in range(1000)}})
    assert key in got
    assert len(got) < 300_000
    assert got.endswith("k.leaf 999: 999")


def test_deep_values_keep_their_words_at_linear_cost() -> None:
    deep: Any = "at the bottom"
    for _ in range(100_000):
        deep = {"key": [deep, 1]}
    got, _ = shown(deep)
    assert "at the bottom" in got
    assert len(got) < 100_000 * 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        (" [1]", [1]),
        ('"a"', None),
        ("1", None),
        ("{a}", None),
        ("", None),
        ('{"a":"\ud800"}', None),
        ('{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a":' + "9" * 5000 + "}", None),
    ],
)
def test_json_inside_strings(text: str, value: Any) -> None:
    assert parsed(text) == value
