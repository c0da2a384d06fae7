"""Claude Code: every record type, typed text that comes late, repeated records."""

from __future__ import annotations

from typing import Any

import pytest
from reader_support import (
    CLAUDE,
    Driver,
    MemoryLedger,
    Side,
    bodies,
    brief,
    claude_attachment,
    claude_said,
    claude_user,
    jsonl,
    queued,
    read,
    result,
    sample,
    text,
    use,
)

from imprintd.model.event import Event
from imprintd.model.recall import RECALL_CLOSE, RECALL_OPEN, RECALL_STUB
from imprintd.model.source import Coverage

SMALL = "claude/projects/*/3f0c8a52*.jsonl"
EVERY = "claude/projects/*/5a7d1c90*.jsonl"


def of(*records: Any, **how: Any) -> list[tuple[str, str, str]]:
    return brief(read(CLAUDE, jsonl(*records), **how))


def test_the_small_sample_to_the_last_field() -> None:
    got = read(CLAUDE, sample(SMALL))

    def stamp(second: int) -> str:
        return f"2026-03-04T09:00:{second:02d}.125Z"

    assert got.events == (
        Event("user", "message", "Why does the shuttle jam — on every third pass?", 1, stamp(7)),
        Event("assistant", "analysis", "The cam may be worn.", 1, stamp(14)),
        Event("assistant", "message", "I will look at the log first.", 1, stamp(21)),
        Event(
            "assistant",
            "tool_call",
            "Bash\ncommand: tail -n 2 loom.log\ndescription: Read the log",
            1,
            stamp(28),
            "toolu_1",
        ),
        Event("tool", "tool_output", "pass 2 ok\npass 3 jam\n", 1, stamp(35), "toolu_1"),
        Event(
            "assistant",
            "message",
            "The third tooth of the cam is worn.\nReplace it. ✔",
            1,
            stamp(42),
        ),
        Event("user", "message", "ok", 2, stamp(49)),
    )
    assert got.coverage == Coverage(omissions={"signature": 1, "second_copy": 1})
    assert (got.project, got.title) == ("/home/ada/loom", None)
    assert got.first_question == "Why does the shuttle jam — on every third pass?"
    assert got.updated == stamp(49)


def test_every_record_type() -> None:
    side = Side({"big1.txt": b"line one of the big log\nline two\nline three"})
    got = read(CLAUDE, sample(EVERY), side=side)
    assert got.coverage == Coverage(
        omissions={
            "metadata": 13,
            "image": 3,
            "signature": 1,
            "empty_thinking": 1,
            "redacted_thinking": 1,
            "second_copy": 5,
            "progress": 1,
            "recalled": 1,
        },
        unknown={"attachment:starlight_digest": 1, "system:comet_tail": 1, "nebula-mark": 1},
    )
    assert got.title == "Blue cloth, second row"
    assert got.first_question == "the blue pattern, twice"
    assert bodies(got, "user") == [
        "the blue pattern, twice",
        "Now weave the second row.",
        "also check the left edge",
        "and the right one",
        "like in this picture",
        "Weft notes\nweft is the crosswise thread",
        "Look at both edges of the cloth.",
        "ls edges",
    ]
    assert bodies(got, "tool") == [
        "Todos kept.\nDarn",
        "Left edge frayed, right edge fine.",
        "line one of the big log\nline two\nline three",
        RECALL_STUB,
    ]
    assert bodies(got, "system") == [
        "API Error: 529 overloaded",
        "error.status: 529\nerror.message: the service is overloaded",
        "<command-name>/cost</command-name>",
        "The loom was updated overnight.",
        "A notice of a kind nobody has seen.",
        "Conversation compacted",
    ]
    assert [one for one in brief(got) if one[1] == "attachment"] == [
        (
            "context",
            "attachment",
            (
                "filename: /home/ada/loom/pattern.txt\ndisplayPath: pattern.txt\n"
                "content.type: text\ncontent.file.filePath: /home/ada/loom/pattern.txt\n"
                "content.file.content:\nover, under\nunder, over\n\ncontent.file.numLines: 2\n"
                "content.file.startLine: 1\ncontent.file.totalLines: 2"
            ),
        ),
        (
            "context",
            "attachment",
            (
                "filename: /home/ada/loom/photo.png\ndisplayPath: photo.png\n"
                "content.type: image\ncontent.file.type: image/png\ncontent.file.originalSize: 5"
            ),
        ),
        (
            "context",
            "attachment",
            (
                "path: /home/ada/loom/CLAUDE.md\ncontent.path: /home/ada/loom/CLAUDE.md\n"
                "content.type: Project\ncontent.content: Always count the warp threads."
            ),
        ),
        ("user", "attachment", "Weft notes\nweft is the crosswise thread"),
    ]
    assert side.asked == [("big1.txt", "toolu_4")]


def test_a_moved_result_that_is_gone_keeps_its_preview() -> None:
    got = read(CLAUDE, sample(EVERY))
    assert got.coverage.omissions["persisted_output"] == 1
    assert "line one of the big log" in bodies(got, "tool")[2]


def test_a_moved_result_in_json_is_its_text() -> None:
    moved = "<persisted-output>\nOutput too large. Full output saved to: C:\\x\\tool-results\\r.json\n\nPreview:\n[\n</persisted-output>"
    side = Side({"r.json": b'[{"type":"text","text":"all\\nof it"}]'})
    data = jsonl(claude_user(1, [result("t", moved)]))
    assert bodies(read(CLAUDE, data, side=side)) == ["all\nof it"]
    # once read again, the stored body comes back and stays as it is
    stored = Side({"r.json": b"all\nof it"})
    assert bodies(read(CLAUDE, data, side=stored)) == ["all\nof it"]


class TestTypedWhileWorking:
    """Text typed mid-turn appears exactly once, at first sight."""

    def test_queued_then_repeated_as_the_users_line(self) -> None:
        got = read(CLAUDE, jsonl(queued("mind the gap"), claude_user(1, "mind the gap")))
        assert brief(got) == [("user", "message", "mind the gap")]
        assert got.coverage.omissions == {"second_copy": 1}
        assert got.events[0].timestamp == "2026-03-04T09:01:00.000Z"

    def test_queued_then_attached(self) -> None:
        late = claude_attachment(
            1, type="queued_command", prompt=[text("mind the gap")], commandMode="prompt"
        )
        assert of(queued("mind the gap"), late) == [("user", "message", "mind the gap")]

    def test_attached_only(self) -> None:
        late = claude_attachment(
            1, type="queued_command", prompt="mind the gap", commandMode="prompt"
        )
        assert of(late) == [("user", "message", "mind the gap")]

    def test_queued_only(self) -> None:
        assert of(queued("mind the gap")) == [("user", "message", "mind the gap")]

    def test_a_genuine_resend_stays(self) -> None:
        records = [
            queued("go on", 1),
            claude_user(1, "go on"),
            claude_said(2, text("gone on")),
            claude_user(3, "go on"),
            queued("go on", 2),
            queued("go on", 3),
            claude_user(4, "go on"),
            claude_user(5, "go on"),
        ]
        assert [words for _, _, words in of(*records)] == [
            "go on",
            "gone on",
            "go on",
            "go on",
            "go on",
        ]

    def test_several_queued_texts_come_back_as_one_line(self) -> None:
        records = [
            queued("first\nof two lines", 1),
            queued("second", 2),
            claude_user(1, "first\nof two lines\nsecond"),
        ]
        assert [words for _, _, words in of(*records)] == ["first\nof two lines", "second"]

    def test_what_the_user_took_back_does_not_swallow_a_later_text(self) -> None:
        records = [
            queued("stop", 1),
            {"type": "queue-operation", "operation": "popAll", "content": "stop"},
            claude_user(1, "stop the loom"),
            claude_user(2, "stop"),
        ]
        assert [words for _, _, words in of(*records)] == ["stop", "stop the loom", "stop"]

    def test_a_copy_with_injected_context_around_it(self) -> None:
        records = [
            queued("mind the gap"),
            claude_user(
                1,
                [text("<ide_selection>gap.txt</ide_selection>"), text("mind the gap")],
                promptId="p",
            ),
        ]
        assert of(*records) == [
            ("user", "message", "mind the gap"),
            ("context", "context", "<ide_selection>gap.txt</ide_selection>"),
        ]

    def test_a_notification_is_context(self) -> None:
        note = "<task-notification>\nspun\n</task-notification>"
        assert of(queued(note), claude_user(1, note)) == [("context", "context", note)]

    def test_across_readings(self) -> None:
        data = jsonl(queued("mind the gap"), claude_user(1, "mind the gap"), claude_user(2, "yes"))
        for cut in range(len(data)):
            assert bodies(read(CLAUDE, data, [cut])) == ["mind the gap", "yes"]


class TestRepeatedRecords:
    def test_the_same_uuid_is_taken_once_whatever_else_changed(self) -> None:
        one = claude_user(1, "hello")
        again = one | {
            "gitBranch": "x",
            "timestamp": "2027-01-01T00:00:00.000Z",
            "sessionId": "s-2",
        }
        got = read(CLAUDE, jsonl(one, again))
        assert bodies(got) == ["hello"]
        assert got.coverage.repeated_records == 1

    def test_the_same_uuid_in_a_later_reading(self) -> None:
        data = jsonl(claude_user(1, "hello"), claude_said(2, text("hi")))
        driver = Driver(CLAUDE)
        driver.feed(data)
        got = driver.feed(data + data)
        assert (got.events, got.coverage.repeated_records) == ((), 2)

    def test_a_new_uuid_but_the_same_message_and_block(self) -> None:
        first = claude_said(1, text("hi"), use("t1", "Read", path="a"), message="m")
        again = claude_said(9, text("hi"), use("t1", "Read", path="a"), message="m")
        assert len(read(CLAUDE, jsonl(first, again)).events) == 2

    def test_blocks_of_one_message_are_added_up(self) -> None:
        records = [
            claude_said(1, text("a"), message="m"),
            claude_said(2, use("t1", "Read", path="a"), message="m"),
            claude_said(3, use("t2", "Read", path="b"), message="m"),
            # written again as it stands at its end
            claude_said(
                4,
                text("a"),
                use("t1", "Read", path="a"),
                use("t2", "Read", path="b"),
                use("t3", "Read", path="c"),
                message="m",
            ),
        ]
        assert [body for _, _, body in of(*records)] == [
            "a",
            "Read\npath: a",
            "Read\npath: b",
            "Read\npath: c",
        ]

    def test_the_same_words_in_another_message_are_kept(self) -> None:
        records = [
            claude_said(1, text("ok")),
            claude_said(2, text("ok")),
            claude_user(3, "ok"),
            claude_user(4, "ok"),
        ]
        assert [body for _, _, body in of(*records)] == ["ok"] * 4

    def test_a_repeat_opens_no_turn(self) -> None:
        records = [
            claude_user(1, "a"),
            claude_user(2, "b"),
            claude_user(1, "a"),
            claude_said(3, text("c")),
        ]
        assert [event.turn for event in read(CLAUDE, jsonl(*records)).events] == [1, 2, 2]

    def test_a_fresh_pass_takes_what_a_rewrite_adds(self) -> None:
        ledger = MemoryLedger()
        first = Driver(CLAUDE, ledger=ledger)
        first.feed(jsonl(queued("q"), claude_user(1, "q"), claude_said(2, text("a"))))
        # the queue line is gone, its copy stays
        again = Driver(CLAUDE, ledger=ledger, fresh=True)
        again.feed(jsonl(claude_user(1, "q"), claude_said(2, text("a")), claude_user(3, "new")))
        assert bodies(again) == ["new"]

    def test_records_without_any_id_are_counted_in_a_fresh_pass(self) -> None:
        bare = {"type": "user", "message": {"role": "user", "content": "again"}}
        ledger = MemoryLedger()
        first = Driver(CLAUDE, ledger=ledger)
        first.feed(jsonl(bare, bare))
        assert bodies(first) == ["again", "again"]
        again = Driver(CLAUDE, ledger=ledger, fresh=True)
        data = jsonl(bare, bare, bare)
        for cut in range(0, len(data), 9):
            again.feed(data, cut)
        again.feed(data)
        assert bodies(again) == ["again"]


class TestTurns:
    def test_a_prompt_id_holds_a_turn_together(self) -> None:
        records = [
            claude_said(0, text("before")),
            claude_user(1, "a", promptId="p1"),
            claude_user(2, "b", promptId="p1"),
            claude_user(3, "c", promptId="p2"),
            claude_user(4, "d"),
            claude_user(5, "e"),
        ]
        turns = [event.turn for event in read(CLAUDE, jsonl(*records)).events]
        assert turns == [0, 1, 1, 2, 3, 4]

    def test_a_sub_agents_prompt_inside_the_session_is_no_turn_and_no_question(self) -> None:
        records = [
            claude_said(0, text("before")),
            claude_user(1, "look around", isSidechain=True),
            claude_user(2, "and now"),
        ]
        got = read(CLAUDE, jsonl(*records))
        assert [event.turn for event in got.events] == [0, 0, 1]
        assert got.first_question == "and now"

    def test_in_a_sub_agents_own_file_it_is(self) -> None:
        got = read(CLAUDE, sample("claude/projects/*/agent-a1b2c3d4.jsonl"))
        assert [event.turn for event in got.events] == [1, 1]
        assert got.first_question == "Count the knots on the back."


class TestTitles:
    def test_a_summary_of_another_conversation_is_no_title(self) -> None:
        foreign = {"type": "summary", "summary": "foreign", "leafUuid": "u-99"}
        early = {"type": "summary", "summary": "early", "leafUuid": "u-1"}
        own = early | {"summary": "own"}
        data = jsonl(foreign, early, claude_user(1, "a"), foreign)
        assert read(CLAUDE, data).title is None
        data += jsonl(own, foreign)
        for cut in range(len(data)):
            assert read(CLAUDE, data, [cut]).title == "own"

    def test_the_users_own_title_wins_over_later_ones(self) -> None:
        data = jsonl(
            {"type": "agent-name", "agentName": "one"},
            {"type": "custom-title", "customTitle": "two"},
            {"type": "ai-title", "aiTitle": "three"},
        )
        for cut in range(len(data)):
            assert read(CLAUDE, data, [cut]).title == "two"

    def test_the_latest_of_a_kind(self) -> None:
        data = jsonl({"type": "ai-title", "aiTitle": "one"}, {"type": "ai-title", "aiTitle": "two"})
        assert read(CLAUDE, data).title == "two"


class TestRecall:
    def call(self, name: str, **given: Any) -> list[tuple[str, str, str]]:
        records = [
            claude_said(1, use("t1", name, **given)),
            claude_user(2, [result("t1", "what was said once")]),
        ]
        return of(*records)[1:]

    @pytest.mark.parametrize(
        ("name", "command"),
        [
            ("Bash", "imprintd search 'frayed edge' --limit 3"),
            ("Bash", "cd /x && imprintd --json get m123"),
            ("Bash", "uv run imprintd --data-dir /d read claude:1 | head"),
            ("Bash", "IMPRINTD_CONFIG=x ~/.venv/bin/imprintd events claude:1"),
            ("Bash", "python3 -m imprintd chunks claude:1"),
            ("Bash", "bash -lc 'imprintd show m1'"),
        ],
    )
    def test_its_own_answers_are_a_stub(self, name: str, command: str) -> None:
        assert self.call(name, command=command) == [("tool", "tool_output", RECALL_STUB)]

    @pytest.mark.parametrize(
        "command",
        [
            "imprintd status",
            "grep -rn 'imprintd search' docs",
            "cat imprintd/search/index.py",
            "echo imprintd search",
            "pytest tests/imprintd -k search",
        ],
    )
    def test_other_commands_are_kept(self, command: str) -> None:
        assert self.call("Bash", command=command) == [("tool", "tool_output", "what was said once")]

    def test_its_tools_by_name(self) -> None:
        assert self.call("mcp__imprintd__get_memory", id="m") == [
            ("tool", "tool_output", RECALL_STUB)
        ]
        assert self.call("mcp__other__get_memory", id="m") == [
            ("tool", "tool_output", "what was said once")
        ]

    def test_marked_text_anywhere(self) -> None:
        marked = f"see: {RECALL_OPEN}old words{RECALL_CLOSE} and {RECALL_OPEN}more{RECALL_CLOSE}!"
        kept = f"see: {RECALL_STUB} and {RECALL_STUB}!"
        got = read(CLAUDE, jsonl(claude_user(1, marked), claude_user(2, [result("t", marked)])))
        assert bodies(got) == [kept, kept]
        assert got.coverage.omissions["recalled"] == 4

    def test_a_mark_cut_off_by_the_client(self) -> None:
        cut = f"see: {RECALL_OPEN}old words, cut"
        records = [claude_user(1, [result("t", cut)]), claude_said(2, text(cut))]
        # only a tool's output is cut by clients; a message may speak of the mark
        assert [body for _, _, body in of(*records)] == [f"see: {RECALL_STUB}", cut]

    def test_the_answer_may_come_much_later(self) -> None:
        data = jsonl(
            claude_said(1, use("t1", "mcp__imprintd__search", query="q")),
            claude_user(2, [result("t1", "what was said once")]),
        )
        for cut in range(len(data)):
            assert bodies(read(CLAUDE, data, [cut]), "tool") == [RECALL_STUB]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"type": "user", "message": {"0": "h", "1": "i"}, "uuid": "u"}, "user:malformed"),
        ({"type": "assistant", "message": {"0": "h"}, "uuid": "u"}, "assistant:malformed"),
        ({"type": "user", "uuid": "u"}, "user:malformed"),
        (claude_user(1, [7, {"type": "hologram"}]), "user:hologram"),
        (claude_said(1, {"type": ["x"]}), "assistant:None"),
        ({"type": "attachment", "uuid": "u"}, "attachment:malformed"),
        ({"type": "queue-operation", "operation": "shuffle"}, "queue-operation:shuffle"),
        ({"type": ["x"]}, "no-type"),
        ({}, "no-type"),
        (claude_user(1, [result("t", [{"type": "smell", "note": "smoke"}])]), "tool_result:smell"),
    ],
)
def test_wrong_shapes_are_counted(record: dict[str, Any], name: str) -> None:
    assert read(CLAUDE, jsonl(record)).coverage.unknown[name] == 1
