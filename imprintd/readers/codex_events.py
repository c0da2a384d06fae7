"""
Codex's event messages: second copies of items, and what only they tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from imprintd.readers.render import call_body, value_text
from imprintd.readers.tally import word

if TYPE_CHECKING:
    from imprintd.readers.codex_pass import CodexPass

_METADATA: Final = frozenset(
    {
        "token_count",
        "task_started",
        "task_complete",
        "turn_started",
        "turn_complete",
        "turn_aborted",
        "thread_settings_applied",
        "context_compacted",
        "thread_name_updated",
        "thread_goal_updated",
        "thread_rolled_back",
        "session_configured",
        "shutdown_complete",
        "view_image_tool_call",
        "entered_review_mode",
        "undo_started",
        "undo_completed",
        "mcp_startup_complete",
        "collab_agent_spawn_end",
        "collab_agent_interaction_end",
        "collab_waiting_end",
        "collab_close_end",
        "collab_resume_end",
        "sub_agent_activity",
        "dynamic_tool_call_request",
        "item_started",
        "guardian_assessment",
    }
)
_NOTICES: Final = frozenset(
    {
        "error",
        "stream_error",
        "warning",
        "guardian_warning",
        "background_event",
        "deprecation_notice",
    }
)
_RESULT_METADATA: Final = frozenset(
    {
        "type",
        "id",
        "call_id",
        "turn_id",
        "process_id",
        "status",
        "duration",
        "source",
        "cwd",
        "parsed_cmd",
        "exit_code",
        "success",
        "started_at",
        "completed_at",
        "started_at_ms",
        "completed_at_ms",
        "thread_id",
    }
)


def event(run: CodexPass, given: dict[str, Any]) -> None:
    """Take one event message."""
    kind = word(given.get("type"))
    if kind == "user_message":
        _user(run, given, given.get("message"))
    elif kind == "agent_message":
        _text(run, "assistant", given.get("message"))
    elif kind in {"agent_reasoning", "agent_reasoning_raw_content"}:
        _text(run, "analysis", given.get("text"))
    elif kind == "item_completed":
        _item(run, given.get("item"))
    elif kind in {"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "web_search_end"}:
        _ended(run, str(kind).removesuffix("_end"), given)
    elif kind == "dynamic_tool_call_response":
        _ended(run, "dynamic_tool", given)
    elif kind == "image_generation_end":
        if given.get("result"):
            run.tally.omit("image")
        run.copied()
    elif kind == "exited_review_mode":
        review = given.get("review_output")
        if review:
            run.emit("system", "context", value_text(review, run.tally))
        else:
            run.tally.omit("metadata")
    elif kind in _NOTICES:
        message = given.get("message")
        if type(message) is str and message.strip():
            run.emit("system", "context", message)
        else:
            run.tally.omit("metadata")
    elif kind in _METADATA:
        if kind == "thread_settings_applied":
            _settings(run, given)
        if given.get("last_agent_message"):
            run.copied()
        else:
            run.tally.omit("metadata")
    else:
        run.tally.strange(f"event_msg:{kind}")


def _settings(run: CodexPass, given: dict[str, Any]) -> None:
    table: Any = given
    for name in ("thread_settings", "collaboration_mode", "settings"):
        table = table.get(name) if type(table) is dict else None
    if type(table) is dict:
        run.once(table.get("developer_instructions"))


def _user(run: CodexPass, given: dict[str, Any], message: Any) -> None:
    for field, kind in (("images", "image"), ("audio", "audio")):
        inline = given.get(field)
        if type(inline) is list and inline:
            run.tally.omit(kind, len(inline))
    if type(message) is not str:
        run.tally.strange("user_message:malformed")
    elif message.strip() and not run.is_copy("user", (message,), item=False):
        run.said(message)


def _text(run: CodexPass, kind: str, text: Any) -> None:
    if type(text) is not str:
        run.tally.strange(f"{kind}:malformed")
    elif text.strip() and not run.is_copy(kind, (text,), item=False):
        run.emit("assistant", "analysis" if kind == "analysis" else "message", text)


def _item(run: CodexPass, item: Any) -> None:
    """An item of the paginated history: the only record of plans, else a copy."""
    kind = item.get("type") if type(item) is dict else None
    kind = kind.replace("_", "").lower() if type(kind) is str else None
    if kind == "plan":
        text = item.get("text")
        if type(text) is str and text.strip():
            run.emit("assistant", "message", text)
    elif kind in {"usermessage", "agentmessage"}:
        texts = _texts(item)
        if kind == "usermessage":
            _user(run, {}, "".join(texts))
        else:
            for text in texts:
                _text(run, "assistant", text)
    elif kind == "reasoning":
        for field in ("summary_text", "summary", "raw_content"):
            for text in _texts({"content": item.get(field)}):
                _text(run, "analysis", text)
    elif kind in _ITEM_TOOLS:
        _ended(run, _ITEM_TOOLS[kind], item)
    elif kind in {"contextcompaction", "imageview", "imagegeneration", "enteredreviewmode"}:
        run.tally.omit("metadata")
    else:
        name = item.get("type") if type(item) is dict else None
        run.tally.strange(f"item_completed:{name}")


_ITEM_TOOLS: Final = {
    "commandexecution": "exec_command",
    "filechange": "patch_apply",
    "mcptoolcall": "mcp_tool_call",
    "websearch": "web_search",
    "dynamictoolcall": "dynamic_tool",
}


def _texts(item: dict[str, Any]) -> list[str]:
    content = item.get("content", item.get("text"))
    if type(content) is str:
        return [content]
    texts = []
    for block in content if type(content) is list else ():
        text = block.get("text") if type(block) is dict else block
        if type(text) is str:
            texts.append(text)
    return texts


def _ended(run: CodexPass, name: str, given: dict[str, Any]) -> None:
    """
    A finished tool: a copy while its call awaits an output in the items.

    Where no item told of the call (files of events only, and calls inside
    other calls) this is the only record, and both sides are taken from it.
    """
    call = given.get("call_id", given.get("id"))
    if type(call) is str and call in run.calls:
        run.copied()
        return
    wanted: Any = {
        field: given[field]
        for field in ("command", "query", "action", "invocation", "changes", "tool", "arguments")
        if given.get(field)
    }
    if name == "web_search":
        action = given.get("action")
        body = call_body(name, action if action is not None else wanted, run.tally)
        if run.is_copy("call", (body,), item=False):
            return
    else:
        body = call_body(name, wanted, run.tally)
    run.emit("assistant", "tool_call", body, call)
    output = given.get("aggregated_output") or given.get("formatted_output")
    if type(output) is not str:
        rest = {
            field: value
            for field, value in given.items()
            if field not in wanted and field not in _RESULT_METADATA and value
        }
        output = value_text(rest, run.tally) if rest else ""
    if output:
        run.emit("tool", "tool_output", output, call)
