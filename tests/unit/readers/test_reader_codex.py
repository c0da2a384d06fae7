"""Codex: every record type, second copies, replays, fresh passes."""

from __future__ import annotations

from typing import Any

import pytest
from reader_support import (
    CODEX,
    Driver,
    MemoryLedger,
    bodies,
    brief,
    codex,
    event,
    item,
    jsonl,
    message,
    read,
    sample,
)

from imprintd.model.event import Event
from imprintd.model.recall import RECALL_STUB
from imprintd.model.source import Coverage


def of(*records: Any, **how: Any) -> list[tuple[str, str, str]]:
    return brief(read(CODEX, jsonl(*records), **how))


def user(words: str, second: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """A user's message as both records."""
    return (
        message("user", words, second=second),
        event("user_message", second, message=words, images=[]),
    )


def test_the_small_sample_to_the_last_field() -> None:
    got = read(CODEX, sample("codex/**/rollout-2026-03-05T11*.jsonl"))

    def stamp(second: int) -> str:
        return f"2026-03-05T10:00:{second:02d}.250Z"

    environment = "<environment_context>\n  <cwd>/home/ada/kiln</cwd>\n</environment_context>"
    call = "shell\ncommand:\n- bash\n- -lc\n- cat kiln.log\nworkdir: /home/ada/kiln"
    output = "cone 6 reached\nmetadata.exit_code: 0\nmetadata.duration_seconds: 0.1"
    assert got.events == (
        Event("context", "context", environment, 0, stamp(9)),
        Event("user", "message", "Is the glaze dry?", 1, stamp(12)),
        Event("assistant", "analysis", "**Checking the kiln log**", 1, stamp(18)),
        Event("assistant", "tool_call", call, 1, stamp(21), "call_1"),
        Event("tool", "tool_output", output, 1, stamp(24), "call_1"),
        Event("assistant", "message", "Yes, since noon — ✔", 1, stamp(27)),
    )
    assert got.coverage == Coverage(omissions={"metadata": 2, "second_copy": 3, "encrypted": 1})
    assert (got.project, got.first_question) == ("/home/ada/kiln", "Is the glaze dry?")
    assert got.updated == stamp(33)


def test_every_record_type() -> None:
    got = read(CODEX, sample("codex/**/rollout-2026-03-05T12*.jsonl"))
    assert got.coverage == Coverage(
        omissions={
            "metadata": 9,
            "second_copy": 14,
            "image": 3,
            "encrypted": 2,
            "empty_thinking": 1,
            "recalled": 2,
        },
        unknown={
            "event_msg:comet_event": 1,
            "response_item:comet_item": 1,
            "comet_envelope": 1,
        },
    )
    assert bodies(got, "context") == [
        (
            "<permissions instructions>\nThe kiln may be opened below 100 degrees.\n"
            "</permissions instructions>"
        ),
        (
            "# AGENTS.md instructions for /home/ada/kiln\n\n<INSTRUCTIONS>\n"
            "Never open a hot kiln.\n</INSTRUCTIONS>"
        ),
        "<environment_context>\n  <cwd>/home/ada/kiln</cwd>\n</environment_context>",
        "environments.timezone: Europe/Berlin\nhost_skills.body:\n## Skills\nglazing: covers a pot",
        "Work calmly.",
        "# Context from my IDE setup:\n\n## Active file: glaze.md\n\n## My request for Codex:",
        "So far: the glaze is mixed.",
    ]
    assert [(one.turn, one.body) for one in got.events if one.role == "user"] == [
        (1, "Mix the celadon glaze."),
        (2, "continue"),
        (3, "continue"),
    ]
    assert [(one.kind, one.body) for one in got.events if one.role == "assistant"] == [
        ("analysis", "**Weighing the oxides**"),
        (
            "tool_call",
            "apply_patch\n*** Begin Patch\n*** Add File: glaze.md\n+iron oxide 2 %\n*** End Patch",
        ),
        ("tool_call", "exec_command\nimprintd search celadon"),
        ("tool_call", "exec_command\ncmd: imprintd search celadon"),
        ("tool_call", "view_image\npath: pot.png"),
        ("tool_call", "web_search\ntype: search\nquery: celadon recipes with wood ash"),
        ("tool_call", "local_shell\ntype: exec\ncommand:\n- ls\n- shelf\ntimeout_ms: 1000"),
        ("tool_call", "image_generation\na celadon bowl in morning light"),
        ("message", "1. weigh\n2. mix\n3. sieve twice"),
        ("message", "Mixed and sieved."),
        ("message", "Done."),
        ("message", "Done."),
    ]
    assert bodies(got, "tool") == [
        "Success. Updated glaze.md\nmetadata.exit_code: 0",
        RECALL_STUB,
        RECALL_STUB,
        "a green pot",
        "celadon tenmoku",
    ]
    assert bodies(got, "system") == ["The stream was cut, trying again."]


def test_the_era_without_envelopes() -> None:
    got = read(CODEX, sample("codex/**/rollout-2025-09-01*.jsonl"))
    assert got.project == "/home/ada/forge"
    assert [one.timestamp for one in got.events] == [None] * 7
    assert bodies(got, "user", "assistant") == [
        "Temper the blade.",
        "**Choosing a temperature**",
        "shell\ncommand:\n- cat\n- heat.txt",
        "Temper it at 230 degrees.",
    ]
    assert got.coverage == Coverage(omissions={"metadata": 3, "encrypted": 1})


ONCE = [
    ("user", "message", "go"),
    ("assistant", "analysis", "**Going**"),
    ("assistant", "message", "gone"),
]


class TestSecondCopies:
    ITEMS = (
        message("user", "go"),
        item("reasoning", summary=[{"type": "summary_text", "text": "**Going**"}]),
        message("assistant", "gone"),
    )
    EVENTS = (
        event("user_message", message="go"),
        event("agent_reasoning", text="**Going**"),
        event("agent_message", message="gone"),
    )

    def test_items_only(self) -> None:
        assert of(*self.ITEMS) == ONCE

    def test_events_only(self) -> None:
        assert of(*self.EVENTS) == ONCE

    def test_event_after_item(self) -> None:
        both = [one for pair in zip(self.ITEMS, self.EVENTS, strict=True) for one in pair]
        assert of(*both) == ONCE

    def test_event_before_item(self) -> None:
        both = [one for pair in zip(self.EVENTS, self.ITEMS, strict=True) for one in pair]
        assert of(*both) == ONCE

    def test_all_events_of_a_turn_before_its_items(self) -> None:
        count = event("token_count", info=None)
        order = [self.ITEMS[0], *self.EVENTS, count, count, *self.ITEMS[1:]]
        assert of(*order) == ONCE

    def test_a_mixed_file(self) -> None:
        records = [*user("a"), message("user", "b"), event("user_message", message="c")]
        assert bodies(read(CODEX, jsonl(*records))) == ["a", "b", "c"]

    def test_a_genuine_resend_stays(self) -> None:
        for pairs in (3, 5):
            data = jsonl(*(one for second in range(pairs) for one in user("continue", second)))
            assert bodies(read(CODEX, data)) == ["continue"] * pairs

    def test_equal_words_of_other_turns_are_no_copies(self) -> None:
        records = [
            message("user", "one"),
            message("assistant", "Done."),
            message("user", "two"),
            event("agent_message", message="Done."),
        ]
        assert bodies(read(CODEX, jsonl(*records)), "assistant") == ["Done.", "Done."]

    def test_a_message_of_several_texts(self) -> None:
        records = [
            message("user", "look", "<image name=[Image #1]>", "at this"),
            event("user_message", message="lookat this", images=[]),
        ]
        assert bodies(read(CODEX, jsonl(*records))) == ["look", "at this"]

    def test_copies_are_found_across_readings(self) -> None:
        data = jsonl(*user("hello there"), *self.EVENTS, *self.ITEMS[1:])
        whole = read(CODEX, data)
        for cut in range(len(data)):
            assert read(CODEX, data, [cut]) == whole


class TestTools:
    def test_an_ended_command_is_a_copy_while_its_output_is_awaited(self) -> None:
        records = [
            item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
            event("exec_command_end", call_id="c1", command=["ls"], aggregated_output="a b"),
            item("function_call_output", call_id="c1", output="Output:\na b"),
        ]
        assert of(*records) == [
            ("assistant", "tool_call", "exec_command\ncmd: ls"),
            ("tool", "tool_output", "Output:\na b"),
        ]

    def test_an_ended_command_alone_is_call_and_output(self) -> None:
        ended = event("exec_command_end", call_id="c1", command=["ls"], aggregated_output="a b")
        assert of(ended) == [
            ("assistant", "tool_call", "exec_command\ncommand:\n- ls"),
            ("tool", "tool_output", "a b"),
        ]

    def test_arguments_that_are_no_json_stand_as_they_are(self) -> None:
        call = item("function_call", name="f", arguments="{not json: 'at all", call_id="c")
        assert of(call) == [("assistant", "tool_call", "f\n{not json: 'at all")]

    def test_arguments_are_decoded(self) -> None:
        arguments = '{"cmd":"printf \\"a\\\\nb\\"\\necho ü","justification":null,"n":[1,{"k":"v"}]}'
        call = item(
            "function_call", name="f", namespace="mcp__x__", arguments=arguments, call_id="c"
        )
        assert of(call) == [
            (
                "assistant",
                "tool_call",
                'mcp__x__f\ncmd:\nprintf "a\\nb"\necho ü\njustification: null\nn[0]: 1\nn[1].k: v',
            )
        ]

    def test_an_output_that_is_an_object(self) -> None:
        output = {"content": "plain", "success": True}
        assert of(item("function_call_output", call_id="c", output=output)) == [
            ("tool", "tool_output", "plain")
        ]

    def test_an_output_that_only_looks_wrapped(self) -> None:
        output = '{"output":"x","other":1}'
        assert of(item("function_call_output", call_id="c", output=output)) == [
            ("tool", "tool_output", output)
        ]

    def test_inline_pictures_are_counted(self) -> None:
        uri = "data:image/png;base64," + "QUJD" * 1000
        output = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": uri}]
        records = [
            item("function_call_output", call_id="c", output=output),
            item("function_call_output", call_id="d", output=uri),
        ]
        got = read(CODEX, jsonl(*records))
        assert bodies(got) == ["see", "[image]"]
        assert got.coverage.omissions == {"image": 2}


OWN = "019c0a20-1111-7d00-8e1f-a0b1c2d3e4f6"
PARENT = "019c0a00-0000-7d00-8e1f-a0b1c2d3e4f5"
OLD_TURN = "019c0a00-2222-7000-8000-000000000001"
NEW_TURN = "019c0a20-1112-7000-8000-000000000001"


def meta(name: str, version: str = "0.104.0", **more: Any) -> dict[str, Any]:
    return codex(
        "session_meta",
        0,
        id=name,
        timestamp="2026-03-05T10:00:00.000Z",
        cwd="/home/ada/kiln",
        cli_version=version,
    ) | (
        {}
        if not more
        else {
            "payload": {
                "id": name,
                "timestamp": "2026-03-05T10:00:00.000Z",
                "cwd": "/home/ada/kiln",
                "cli_version": version,
            }
            | more
        }
    )


def turn(name: str, second: int = 0) -> dict[str, Any]:
    return event("task_started", second, turn_id=name)


class TestReplays:
    PARENTS = (
        turn(OLD_TURN),
        message("developer", "old rules"),
        *user("old question"),
        message("assistant", "old answer"),
    )

    def both(self, *records: Any) -> Any:
        data = jsonl(*records)
        whole = read(CODEX, data)
        for cut in range(0, len(data), 7):
            assert read(CODEX, data, [cut]) == whole
        return whole

    def test_a_fork_begins_where_its_own_turn_begins(self) -> None:
        got = self.both(
            meta(OWN, forked_from_id=PARENT),
            meta(PARENT),
            *self.PARENTS,
            turn(NEW_TURN),
            *user("new question"),
        )
        assert bodies(got) == ["new question"]
        assert got.coverage.repeated_records == 1 + len(self.PARENTS)
        assert got.events[0].turn == 1

    def test_a_sub_agents_prompt_at_the_same_moment_is_kept(self) -> None:
        spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
        got = self.both(
            meta(OWN, source=spawn), meta(PARENT), *self.PARENTS, turn(NEW_TURN), *user("the task")
        )
        assert bodies(got) == ["the task"]

    def test_a_replay_without_the_parents_meta_is_told_by_its_turns(self) -> None:
        got = self.both(meta(OWN), *self.PARENTS, turn(NEW_TURN), *user("new question"))
        assert bodies(got) == ["new question"]

    def test_before_turn_ids_a_pause_ends_the_replay(self) -> None:
        old = [record for record in self.PARENTS if record["payload"].get("turn_id") is None]
        got = self.both(
            meta(OWN, "0.80.0"), meta(PARENT, "0.80.0"), *old, *user("new question", 60)
        )
        assert bodies(got) == ["new question"]

    def test_what_cannot_be_told_is_kept(self) -> None:
        old = [record for record in self.PARENTS if record["payload"].get("turn_id") is None]
        got = self.both(
            meta(OWN, "0.80.0", source={"subagent": "review"}),
            meta(PARENT, "0.80.0"),
            *old,
            *user("the task"),
        )
        assert bodies(got) == ["old rules", "old question", "old answer", "the task"]
        assert got.coverage.repeated_records == 0

    def test_a_resumed_thread_repeats_its_own_meta_and_drops_nothing(self) -> None:
        got = self.both(
            meta(OWN), turn(NEW_TURN), *user("a"), meta(OWN), meta(OWN), turn("t-2"), *user("b")
        )
        assert bodies(got) == ["a", "b"]
        assert got.coverage.repeated_records == 0

    def test_a_turn_id_that_never_comes_loses_no_more_than_the_burst(self) -> None:
        got = self.both(meta(OWN), meta(PARENT), *self.PARENTS, *user("later", 50))
        assert bodies(got) == ["later"]


class TestFreshPass:
    def test_equal_records_are_told_apart_by_count(self) -> None:
        ledger = MemoryLedger()
        data = jsonl(*(one for second in range(3) for one in user("continue", second)))
        Driver(CODEX, ledger=ledger).feed(data)
        more = data + jsonl(*user("continue", 9))
        for step in (1, 50, len(more)):
            again = Driver(CODEX, ledger=MemoryLedger(ledger.taken.copy()), fresh=True)
            for cut in range(0, len(more), step):
                again.feed(more, cut)
            again.feed(more)
            assert bodies(again) == ["continue"]

    def test_timestamps_of_a_rewrite_do_not_matter(self) -> None:
        ledger = MemoryLedger()
        Driver(CODEX, ledger=ledger).feed(jsonl(*user("a", 1), message("assistant", "b", second=2)))
        again = Driver(CODEX, ledger=ledger, fresh=True)
        again.feed(jsonl(*user("a", 70), message("assistant", "b", second=71)))
        assert bodies(again) == []

    def test_either_copy_alone_is_known(self) -> None:
        ledger = MemoryLedger()
        Driver(CODEX, ledger=ledger).feed(jsonl(*user("a")))
        for one in user("a"):
            again = Driver(CODEX, ledger=MemoryLedger(ledger.taken.copy()), fresh=True)
            again.feed(jsonl(one))
            assert bodies(again) == []


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"timestamp": "x", "type": "response_item", "payload": 7}, "response_item:malformed"),
        (item("message", role="user", content={"0": "h"}), "message:malformed"),
        (item("message", role="user", content=[7, {"type": "hologram"}]), "message:hologram"),
        (event("user_message", message=7), "user_message:malformed"),
        (event("agent_message", message=None), "assistant:malformed"),
        (event("item_completed", item={"type": "Comet"}), "item_completed:Comet"),
        ({"type": ["x"], "timestamp": "x", "payload": {}}, "no-type"),
        ({"type": "comet"}, "comet"),
        ({}, "no-type"),
    ],
)
def test_wrong_shapes_are_counted(record: dict[str, Any], name: str) -> None:
    assert read(CODEX, jsonl(record)).coverage.unknown[name] == 1


def test_paginated_items() -> None:
    records = [
        event(
            "item_completed",
            item={"type": "UserMessage", "content": [{"type": "text", "text": "hi"}]},
        ),
        event("item_completed", item={"type": "Reasoning", "summary_text": ["**Thinking**"]}),
        event(
            "item_completed",
            item={"type": "AgentMessage", "content": [{"type": "Text", "text": "ho"}]},
        ),
        message("assistant", "ho"),
        event(
            "item_completed",
            item={
                "type": "CommandExecution",
                "id": "c",
                "command": ["ls"],
                "aggregated_output": "a",
            },
        ),
    ]
    assert of(*records) == [
        ("user", "message", "hi"),
        ("assistant", "analysis", "**Thinking**"),
        ("assistant", "message", "ho"),
        ("assistant", "tool_call", "exec_command\ncommand:\n- ls"),
        ("tool", "tool_output", "a"),
    ]


def test_a_review_that_ended_is_readable() -> None:
    review = {"overall_explanation": "the cam is worn", "findings": [{"title": "worn cam"}]}
    assert of(event("exited_review_mode", review_output=review)) == [
        ("system", "context", "overall_explanation: the cam is worn\nfindings[0].title: worn cam")
    ]
