"""Any split gives the same events, whatever a conversation is made of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "readers"))

from reader_support import (
    CLAUDE,
    CODEX,
    MAKERS,
    Driver,
    MemoryLedger,
    bodies,
    claude_attachment,
    claude_said,
    claude_user,
    codex,
    event,
    item,
    jsonl,
    message,
    queued,
    read,
    result,
    text,
    use,
)

from imprintd.model.recall import RECALL_CLOSE, RECALL_OPEN

# few words, so that copies, resends and repeats meet
WORDS = st.sampled_from(
    ["go on", "ok", "a\nb", "<system-reminder>\nx\n</system-reminder>", "é漢\ud800\0", "yes "]
)
NUMBERS = st.integers(0, 6)


def claude_records() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(claude_user, NUMBERS, WORDS),
        st.builds(lambda n, w: claude_user(n, w, promptId=f"p{n % 2}"), NUMBERS, WORDS),
        st.builds(lambda n, w: claude_user(n, [text(w), text("tail")]), NUMBERS, WORDS),
        st.builds(lambda n, w: claude_user(n, w, isSidechain=True), NUMBERS, WORDS),
        st.builds(lambda n, w: claude_said(n, text(w), message=f"m{n % 3}"), NUMBERS, WORDS),
        st.builds(
            lambda n, w: claude_said(n, use(f"t{n}", "mcp__imprintd__search", query=w)),
            NUMBERS,
            WORDS,
        ),
        st.builds(lambda n, w: claude_user(n + 10, [result(f"t{n}", w)]), NUMBERS, WORDS),
        st.builds(queued, WORDS, NUMBERS),
        st.builds(
            lambda n, w: claude_attachment(
                n, type="queued_command", prompt=w, commandMode="prompt"
            ),
            NUMBERS,
            WORDS,
        ),
        st.builds(lambda w: {"type": "ai-title", "aiTitle": w}, WORDS),
        st.builds(lambda w: {"type": "custom-title", "customTitle": w}, WORDS),
        st.just({"type": "progress", "data": {}}),
        st.just({"type": "queue-operation", "operation": "popAll"}),
    )


THREADS = ["019c0a20-1111-7d00-8e1f-a0b1c2d3e4f6", "019c0a00-0000-7d00-8e1f-a0b1c2d3e4f5"]
TURNS = ["019c0a20-1112-7000-8000-000000000001", "019c0a00-2222-7000-8000-000000000001", "t-1"]


def codex_records() -> st.SearchStrategy[dict[str, Any]]:
    seconds = st.integers(0, 90)
    return st.one_of(
        st.builds(lambda w, s: message("user", w, second=s), WORDS, seconds),
        st.builds(lambda w, s: message("assistant", w, second=s), WORDS, seconds),
        st.builds(lambda w, s: event("user_message", s, message=w), WORDS, seconds),
        st.builds(lambda w, s: event("agent_message", s, message=w), WORDS, seconds),
        st.builds(lambda w, s: event("agent_reasoning", s, text=w), WORDS, seconds),
        st.builds(
            lambda w: item("reasoning", summary=[{"type": "summary_text", "text": w}]), WORDS
        ),
        st.builds(
            lambda w, n: item(
                "function_call", name="mcp__imprintd__x", arguments=w, call_id=f"c{n}"
            ),
            WORDS,
            NUMBERS,
        ),
        st.builds(
            lambda w, n: item("function_call_output", call_id=f"c{n}", output=w), WORDS, NUMBERS
        ),
        st.builds(
            lambda w, n: event("exec_command_end", call_id=f"c{n}", aggregated_output=w),
            WORDS,
            NUMBERS,
        ),
        st.builds(
            lambda t, s: event("task_started", s, turn_id=t), st.sampled_from(TURNS), seconds
        ),
        st.builds(
            lambda t, w: codex("turn_context", turn_id=t, user_instructions=w),
            st.sampled_from(TURNS),
            WORDS,
        ),
        st.builds(
            lambda i, v: codex("session_meta", id=i, cli_version=v),
            st.sampled_from(THREADS),
            st.sampled_from(["0.80.0", "0.120.1"]),
        ),
    )


def pieces(draw: st.DataObject, data: bytes) -> list[int]:
    return draw.draw(st.lists(st.integers(0, len(data)), max_size=6), label="cuts")


SLOWLY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)


@SLOWLY
@given(st.lists(claude_records(), max_size=14), st.data())
def test_claude_in_pieces(records: list[dict[str, Any]], draw: st.DataObject) -> None:
    data = jsonl(*records)
    assert read(CLAUDE, data, pieces(draw, data)) == read(CLAUDE, data)


@SLOWLY
@given(st.lists(codex_records(), max_size=14), st.data())
def test_codex_in_pieces(records: list[dict[str, Any]], draw: st.DataObject) -> None:
    data = jsonl(*records)
    assert read(CODEX, data, pieces(draw, data)) == read(CODEX, data)


@SLOWLY
@given(st.lists(codex_records(), max_size=12), st.data())
def test_a_fresh_pass_in_pieces_takes_nothing_twice(
    records: list[dict[str, Any]], draw: st.DataObject
) -> None:
    data = jsonl(*records)
    first = Driver(CODEX)
    first.feed(data)
    again = Driver(CODEX, ledger=MemoryLedger(first.ledger.taken.copy()), fresh=True)
    for cut in sorted(pieces(draw, data)):
        again.feed(data, cut)
    again.feed(data)
    assert again.total.events == ()


@SLOWLY
@given(
    st.sampled_from(["claude", "codex"]),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=20),
    st.data(),
)
def test_a_rewrite_gives_exactly_its_new_records(
    client: str, plan: list[tuple[bool, bool]], draw: st.DataObject
) -> None:
    # each line is in the old file, in the new one, or in both
    make = MAKERS[client]
    lines = [jsonl(make(n, f"words of line {n}")) for n in range(len(plan))]
    old = b"".join(line for line, (was, _) in zip(lines, plan, strict=True) if was)
    new = b"".join(line for line, (_, now) in zip(lines, plan, strict=True) if now)
    reader = {"claude": CLAUDE, "codex": CODEX}[client]
    first = Driver(reader)
    first.feed(old)
    again = Driver(reader, ledger=first.ledger, fresh=True)
    for cut in sorted(pieces(draw, new)):
        again.feed(new, cut)
    again.feed(new)
    assert bodies(again) == [
        f"words of line {n}" for n, (was, now) in enumerate(plan) if now and not was
    ]


@SLOWLY
@given(st.lists(st.sampled_from([RECALL_OPEN, RECALL_CLOSE, "new", "\n", " "]), max_size=9))
def test_recalled_text_never_passes(parts: list[str]) -> None:
    body = "".join(parts)
    kept, inside = [], False
    for at, part in enumerate(parts):
        if part == RECALL_OPEN:
            inside = True
        elif part == RECALL_CLOSE and inside:
            inside = False
        elif not inside:
            kept.append(part)
        del at
    (got,) = bodies(read(CLAUDE, jsonl(claude_user(1, [result("t", body)]))))
    assert got.replace("[recalled from memory]", "") == "".join(kept)
