"""Faults that users of such files have met, each with our own input."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from reader_support import (
    CLAUDE,
    CODEX,
    Driver,
    bodies,
    brief,
    claude_said,
    claude_user,
    codex,
    event,
    item,
    jsonl,
    message,
    read,
    result,
    text,
    use,
)

from imprintd.errors import DamagedLine
from imprintd.readers import lines


def test_a_crash_left_nuls_after_a_record_and_as_the_last_line() -> None:
    data = jsonl(claude_user(1, "a"))[:-1] + b"\0" * 9216 + b"\n"
    data += jsonl(claude_user(2, "b")) + b"\0" * 143_360 + b"\n"
    got = read(CLAUDE, data)
    assert bodies(got) == ["a", "b"]
    assert got.coverage.zero_filled_lines == 2


def test_nuls_in_the_middle_do_not_end_the_file() -> None:
    data = b"".join(
        jsonl(claude_user(n, f"line {n}")) + b"\0" * (200 + n * 50) + b"\n" for n in range(10)
    )
    got = read(CLAUDE, data)
    assert bodies(got) == [f"line {n}" for n in range(10)]
    assert got.coverage.zero_filled_lines == 10


def test_torn_lines_of_two_writers_cost_only_themselves() -> None:
    whole = [jsonl(claude_user(n, f"line {n}")) for n in range(6)]
    data = whole[0] + whole[1][:70] + whole[2] + whole[3][90:] + whole[4][:-1] + whole[5]
    with pytest.raises(DamagedLine):
        read(CLAUDE, data)
    got = read(CLAUDE, data, salvage=True)
    assert bodies(got) == ["line 0", "line 2", "line 4", "line 5"]
    assert got.coverage.omissions["damaged"] == 70 + len(whole[3][90:]) - 1
    assert got.coverage.joined_lines == 1


def test_a_reasoning_record_half_written_and_then_in_full() -> None:
    thought = item("reasoning", summary=[{"type": "summary_text", "text": "**Thinking twice**"}])
    line = jsonl(thought)
    got = read(CODEX, line[:60] + line, salvage=True)
    assert bodies(got) == ["**Thinking twice**"]


def test_power_loss_cuts_the_tail_only() -> None:
    data = jsonl(*(claude_user(n, f"line {n}") for n in range(5)))[:-40]
    assert bodies(read(CLAUDE, data)) == [f"line {n}" for n in range(4)]


def test_one_bad_record_costs_no_other_record() -> None:
    data = jsonl(
        claude_user(1, "a"), {"type": "user", "message": {"0": "x", "1": "y"}}, claude_user(2, "b")
    )
    assert bodies(read(CLAUDE, data)) == ["a", "b"]


def test_progress_lines_are_parsed_but_give_and_cost_nothing() -> None:
    inner = {"message": claude_user(5, "inner words"), "normalizedMessages": ["x" * 500] * 20}
    progress = claude_user(1, None) | {
        "type": "progress",
        "data": {"type": "agent_progress"} | inner,
    }
    del progress["message"]
    data = jsonl(*([progress] * 300), claude_user(2, "outer words"))
    got = read(CLAUDE, data)
    assert bodies(got) == ["outer words"]
    assert got.coverage.omissions == {"progress": 300}
    assert got.coverage.repeated_records == 0


def test_a_record_joined_to_a_progress_line_is_not_lost() -> None:
    progress = {"type": "progress", "data": {}, "uuid": "p"}
    data = jsonl(progress)[:-1] + jsonl(claude_user(1, "kept"))
    assert bodies(read(CLAUDE, data)) == ["kept"]


def test_several_projects_and_sessions_in_one_file() -> None:
    data = jsonl(
        claude_user(1, "a") | {"sessionId": "s-0", "cwd": "/one"},
        claude_user(2, "b") | {"sessionId": "s-1", "cwd": "/two"},
    )
    got = read(CLAUDE, data)
    assert (bodies(got), got.project) == (["a", "b"], "/one")


def test_an_instruction_file_is_no_question() -> None:
    data = jsonl(
        message(
            "user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>"
        ),
        message("user", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        message("user", "<turn_aborted>\nstopped\n</turn_aborted>"),
        message("user", "Paint the fence."),
    )
    got = read(CODEX, data)
    assert got.first_question == "Paint the fence."
    assert [one.role for one in got.events] == ["context", "context", "context", "user"]


def test_a_user_may_speak_of_the_marks() -> None:
    words = "why does <environment_context> appear in <system-reminder> blocks?"
    assert brief(read(CODEX, jsonl(message("user", words)))) == [("user", "message", words)]
    assert brief(read(CLAUDE, jsonl(claude_user(1, words)))) == [("user", "message", words)]


def test_developer_text_is_context() -> None:
    assert brief(read(CODEX, jsonl(message("developer", "be brief")))) == [
        ("context", "context", "be brief")
    ]


def test_a_boundary_without_parent_does_not_end_the_past() -> None:
    boundary = claude_user(2, None) | {
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "logicalParentUuid": "u-1",
    }
    got = read(CLAUDE, jsonl(claude_user(1, "before"), boundary, claude_user(3, "after")))
    assert bodies(got) == ["before", "Conversation compacted", "after"]


def test_output_of_any_shape() -> None:
    shapes: list[Any] = [
        "words",
        [text("words")],
        ["words"],
        [{"type": "resource", "resource": {"uri": "x", "text": "words"}}],
        [],
        None,
        {"text": "words"},
    ]
    data = jsonl(*(claude_user(n, [result(f"t{n}", shape)]) for n, shape in enumerate(shapes)))
    assert bodies(read(CLAUDE, data)) == [
        "words",
        "words",
        "words",
        "resource.uri: x\nresource.text: words",
        "",
        "",
        "text: words",
    ]


def test_tools_of_old_and_new_names() -> None:
    data = jsonl(
        claude_said(1, use("a", "Task", prompt="p")),
        claude_said(2, use("b", "Agent", prompt="p")),
        claude_said(
            3, {"type": "server_tool_use", "id": "c", "name": "web_search", "input": {"query": "q"}}
        ),
        claude_said(
            4,
            {
                "type": "web_search_tool_result",
                "tool_use_id": "c",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "Looms",
                        "url": "https://l.example",
                        "encrypted_content": "x",
                    }
                ],
            },
        ),
    )
    got = read(CLAUDE, data)
    assert bodies(got) == [
        "Task\nprompt: p",
        "Agent\nprompt: p",
        "web_search\nquery: q",
        "title: Looms\nurl: https://l.example",
    ]
    assert got.coverage.omissions == {"encrypted": 1}


def test_ansi_surrogates_and_binary_in_tool_output() -> None:
    words = "\x1b[31mred\x1b[0m \0\0 \ud83d lone \udc00 \u2028 \x07"
    data = jsonl(claude_user(1, [result("t", "X")])).replace(b'"X"', json.dumps(words).encode())
    assert bodies(read(CLAUDE, data)) == [words]


def test_a_pasted_prompt_of_millions_of_characters() -> None:
    words = "the quick shuttle, " * 140_000
    data = jsonl(claude_user(1, words))
    got = read(CLAUDE, data)
    assert bodies(got) == [words]
    assert len(got.first_question or "") == 2000
    assert len(got.state) < 1000


def test_a_compacted_line_of_megabytes_is_one_short_event() -> None:
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 1000}]}
    ] * 4000
    got = read(CODEX, jsonl(codex("compacted", message="in short", replacement_history=history)))
    assert brief(got) == [("context", "context", "in short")]
    assert got.coverage.omissions == {"second_copy": 1}


def test_instructions_repeated_at_every_turn_are_taken_once() -> None:
    contexts = [
        codex("turn_context", n, turn_id=f"t{n}", user_instructions="be kind " * 500)
        for n in range(200)
    ]
    got = read(CODEX, jsonl(*contexts))
    assert bodies(got) == ["be kind " * 500]
    assert got.coverage.omissions == {"metadata": 200, "second_copy": 199}


def test_a_session_of_items_only_is_complete() -> None:
    data = jsonl(
        message("user", "q"),
        item("function_call", name="f", arguments="{}", call_id="c"),
        item("function_call_output", call_id="c", output="o"),
        message("assistant", "a"),
    )
    assert brief(read(CODEX, data)) == [
        ("user", "message", "q"),
        ("assistant", "tool_call", "f"),
        ("tool", "tool_output", "o"),
        ("assistant", "message", "a"),
    ]


def test_exec_output_grammar_is_not_a_rollout() -> None:
    data = jsonl(
        {"type": "thread.started", "thread_id": "x"}, {"type": "item.completed", "item": {}}
    )
    assert CODEX.identify("/tmp/out.jsonl", data) is None
    assert CLAUDE.identify("/tmp/out.jsonl", data) is None


def test_an_append_costs_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0

    def count(line: bytes) -> Any:
        nonlocal parsed
        parsed += 1
        return orjson.loads(line)

    monkeypatch.setattr(
        lines,
        "orjson",
        type("O", (), {"loads": staticmethod(count), "JSONDecodeError": orjson.JSONDecodeError}),
    )
    driver = Driver(CLAUDE)
    data = b""
    for n in range(50):
        data += jsonl(claude_user(n, f"line {n}"))
        driver.feed(data)
    assert (parsed, len(driver.total.events)) == (50, 50)


def test_deep_nesting_is_bounded() -> None:
    deep: Any = "bottom of the well, twenty"
    for _ in range(900):
        deep = {"k": deep}
    got = read(CLAUDE, jsonl(claude_said(1, use("t", "Dig", well=deep))))
    (body,) = bodies(got)
    assert body.endswith("k: bottom of the well, twenty")
    assert len(body) < 20_000


def test_empty_thoughts_are_counted() -> None:
    data = jsonl(
        claude_said(1, {"type": "thinking", "thinking": "", "signature": "s"}),
        event("token_count", info=None),
    )
    assert read(CLAUDE, data[: data.index(b"\n") + 1]).coverage.omissions == {
        "signature": 1,
        "empty_thinking": 1,
    }
