"""
Claude Code's records, type by type; docs/readers.md has the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from imprintd.readers.claude_blocks import (
    attachment_text,
    persisted,
    result_text,
    system_text,
    texts_of,
)
from imprintd.readers.recalled import recalls, without_recalled
from imprintd.readers.render import call_body, media_kind
from imprintd.readers.tally import bounded, word

if TYPE_CHECKING:
    from imprintd.readers.claude_pass import ClaudePass

_SYSTEM_METADATA: Final = frozenset({"stop_hook_summary", "turn_duration"})
_SYSTEM_KNOWN: Final = frozenset(
    {
        None,
        "compact_boundary",
        "microcompact_boundary",
        "local_command",
        "informational",
        "api_error",
        "away_summary",
        "scheduled_task_fire",
        "bridge_status",
        "model_refusal_fallback",
    }
)
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


# what the user's lines hold


def _user(run: ClaudePass, record: dict[str, Any]) -> None:
    content = _content(record)
    if record.get("toolUseResult") is not None:
        run.tally.omit("second_copy")
    origin = record.get("origin")
    injected = (
        record.get("isMeta") is True
        or record.get("isCompactSummary") is True
        or record.get("isVisibleInTranscriptOnly") is True
        or (type(origin) is dict and origin.get("kind") == "task-notification")
    )
    prompt = record.get("promptId")
    if type(content) is str:
        run.said(content, injected, prompt)
        return
    if type(content) is not list:
        run.tally.strange("user:malformed")
        return
    for block in content:
        if type(block) is not dict:
            if type(block) is str:
                run.said(block, injected, prompt)
            else:
                run.tally.strange("user:malformed")
            continue
        kind = word(block.get("type"))
        if kind == "tool_result":
            _result(run, block)
        elif kind == "text" and type(block.get("text")) is str:
            run.said(block["text"], injected, prompt)
        else:
            _attached(run, block, kind, injected=injected)


def _attached(run: ClaudePass, block: dict[str, Any], kind: object, *, injected: bool) -> None:
    if kind in {"image", "document", "audio", "video"}:
        source = block.get("source")
        source = source if type(source) is dict else {}
        readable = texts_of(block, source)
        if word(source.get("type")) not in {"text", "url", "content"}:
            mime = source.get("media_type") or f"{kind}/"
            run.tally.omit("image" if kind == "image" else media_kind(mime))
        if readable:
            run.emit("context" if injected else "user", "attachment", readable)
    else:
        run.tally.strange(f"user:{kind}")


def _result(run: ClaudePass, block: dict[str, Any]) -> None:
    call = block.get("tool_use_id")
    body = result_text(block.get("content"), run.tally)
    body = persisted(body, call, run.side_files, run.tally)
    recalled = type(call) is str and run.recalls.take(call)
    body = without_recalled(body, run.tally, output=True, whole=recalled)
    run.emit("tool", "tool_output", body, bounded(call))


# what the assistant's lines hold


def _assistant(run: ClaudePass, record: dict[str, Any]) -> None:
    content = _content(record)
    message = record.get("message")
    synthetic = (type(message) is dict and message.get("model") == "<synthetic>") or (
        record.get("isApiErrorMessage") is True
    )
    if type(content) is str:
        content = [{"type": "text", "text": content}]
    if type(content) is not list:
        run.tally.strange("assistant:malformed")
        return
    names = run.names
    partly = len(names) > 2
    for index, block in enumerate(content):
        if type(block) is not dict:
            run.tally.strange("assistant:malformed")
            continue
        # a message that grew: only its new blocks are taken
        if partly and index + 1 < len(names) and run.has(names[index + 1]):
            continue
        _block(run, block, synthetic=synthetic)


def _block(run: ClaudePass, block: dict[str, Any], *, synthetic: bool) -> None:
    kind = word(block.get("type"))
    if kind == "text" and type(block.get("text")) is str:
        body = run.cleared(block["text"])
        if synthetic:
            run.emit("system", "context", body)
        elif body:
            run.emit("assistant", "message", body)
    elif kind == "thinking":
        if block.get("signature"):
            run.tally.omit("signature")
        thought = block.get("thinking")
        if type(thought) is str and thought.strip():
            run.emit("assistant", "analysis", run.cleared(thought))
        else:
            run.tally.omit("empty_thinking")
    elif kind == "redacted_thinking":
        run.tally.omit("redacted_thinking")
    elif kind in _CALLS:
        name = block.get("name") if type(block.get("name")) is str else "?"
        call = block.get("id")
        given = block.get("input")
        if type(call) is str and recalls(str(name), given):
            run.recalls.add(call)
        body = run.cleared(call_body(str(name), given, run.tally))
        run.emit("assistant", "tool_call", body, bounded(call))
    elif type(kind) is str and kind.endswith("_tool_result"):
        body = run.cleared(result_text(block.get("content"), run.tally))
        run.emit("tool", "tool_output", body, bounded(block.get("tool_use_id")))
    elif kind in {"image", "document"}:
        run.tally.omit(str(kind))
    else:
        run.tally.strange(f"assistant:{kind}")


# what the client itself writes


def _system(run: ClaudePass, record: dict[str, Any]) -> None:
    subtype = word(record.get("subtype"))
    if subtype in _SYSTEM_METADATA:
        run.tally.omit("metadata")
        return
    if subtype not in _SYSTEM_KNOWN:
        run.tally.strange(f"system:{subtype}")
    body = system_text(record, run.tally)
    if body.strip():
        run.emit("system", "context", run.cleared(body))
    else:
        run.tally.omit("metadata")


def _attachment(run: ClaudePass, record: dict[str, Any]) -> None:
    given = record.get("attachment")
    if type(given) is not dict:
        run.tally.strange("attachment:malformed")
        return
    if given.get("type") == "queued_command":
        _queued_command(run, given)
        return
    body, is_file, known = attachment_text(given, run.tally)
    if not known:
        run.tally.strange(f"attachment:{given.get('type')}")
    if body.strip():
        run.emit("context", "attachment" if is_file else "context", run.cleared(body))
    else:
        run.tally.omit("metadata")


def _queued_command(run: ClaudePass, given: dict[str, Any]) -> None:
    prompt = given.get("prompt")
    injected = word(given.get("commandMode")) not in {"prompt", None}
    blocks = prompt if type(prompt) is list else [{"type": "text", "text": prompt}]
    for block in blocks:
        if type(block) is not dict:
            run.tally.strange("attachment:queued_command")
        elif block.get("type") == "text" and type(block.get("text")) is str:
            run.late(block["text"], injected=injected, expect=False)
        else:
            _attached(run, block, word(block.get("type")), injected=injected)


def _queue(run: ClaudePass, record: dict[str, Any]) -> None:
    content = record.get("content")
    operation = word(record.get("operation"))
    if operation not in {"enqueue", "dequeue", "remove", "popAll"}:
        run.tally.strange(f"queue-operation:{operation}")
    elif operation == "enqueue" and type(content) is str and content.strip():
        run.late(content, injected=False, expect=True)
    else:
        run.tally.omit("second_copy" if type(content) is str else "metadata")


def _content(record: dict[str, Any]) -> Any:
    message = record.get("message")
    if type(message) is dict:
        return message.get("content")
    return message if type(message) is str else None


RULES: Final = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "queue-operation": _queue,
}
"""Records that can hold events, by type."""
