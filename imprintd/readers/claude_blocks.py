"""
The readable text inside Claude Code's blocks, results and attachments.
"""

from __future__ import annotations

import re
from typing import Any, Final

from imprintd.readers.base import SideFiles
from imprintd.readers.memory import digest, record_digest
from imprintd.readers.render import media_free, media_kind, parsed, value_text
from imprintd.readers.tally import Tally, word

_PERSISTED: Final = re.compile(
    r"\s*<persisted-output>.{0,200}?saved to: ([^\n]{1,4096})\n.*</persisted-output>\s*\Z",
    re.DOTALL,
)
_FILES: Final = frozenset(
    {
        "file",
        "selected_lines_in_ide",
        "opened_file_in_ide",
        "directory",
        "edited_text_file",
        "edited_image_file",
        "nested_memory",
        "plan_file_reference",
        "compact_file_reference",
        "pdf_reference",
        "mcp_resource",
        "already_read_file",
    }
)
_KNOWN: Final = frozenset(
    {
        "hook_success",
        "hook_non_blocking_error",
        "hook_blocking_error",
        "hook_error_during_execution",
        "hook_additional_context",
        "hook_cancelled",
        "hook_system_message",
        "hook_stopped_continuation",
        "hook_permission_decision",
        "async_hook_response",
        "total_tokens_reminder",
        "task_reminder",
        "task_status",
        "todo",
        "todo_reminder",
        "skill_listing",
        "dynamic_skill",
        "invoked_skills",
        "deferred_tools_delta",
        "mcp_instructions_delta",
        "agent_listing_delta",
        "agent_mention",
        "command_permissions",
        "date_change",
        "structured_output",
        "companion_intro",
        "goal_status",
        "read_truncation_notice",
        "diagnostics",
        "critical_system_reminder",
        "output_style",
        "token_usage",
        "budget_usd",
        "compaction_reminder",
        "background_task_status",
        "teammate_mailbox",
        "team_context",
    }
)
_FAMILIES: Final = ("auto_mode", "plan_mode", "ultra")
_ATTACHMENT_METADATA: Final = frozenset(
    {
        "type",
        "toolUseID",
        "durationMs",
        "exitCode",
        "origin",
        "imagePasteIds",
        "isInitial",
        "isSubAgent",
        "itemCount",
        "skillCount",
        "showConcurrencyNote",
        "command",
        "hookName",
        "hookEvent",
        "processId",
        "names",
        "addedNames",
        "addedTypes",
        "removedNames",
        "readdedNames",
        "removedTypes",
        "pendingMcpServers",
        "needsAuthMcpServers",
        "reminderType",
    }
)
"""Fields beside the text of an attachment; docs/readers.md lists them."""


def block_keys(message: dict[str, Any], keys: list[bytes]) -> None:
    """Add one ledger key for each block that can be told again by content."""
    content = message.get("content")
    if type(content) is not list:
        return
    name = message.get("id")
    name = name if type(name) is str else ""
    for block in content:
        kind = word(block.get("type")) if type(block) is dict else None
        if kind == "tool_result":
            call = block.get("tool_use_id")
            text = block.get("content")
            if type(call) is str and type(text) is str:
                keys.append(digest(f"result\0{call}\0{text}"))
            elif type(call) is str:
                keys.append(record_digest(b"result" + call.encode(errors="replace"), text))
            else:
                keys.append(record_digest(b"block", block))
        elif not name:
            # a typed text without a message id may well be said twice
            if len(keys) > 1:
                del keys[1:]
            return
        elif kind == "tool_use" and type(block.get("id")) is str:
            keys.append(digest(f"call\0{name}\0{block['id']}"))
        elif kind == "text" and type(block.get("text")) is str:
            keys.append(digest(f"text\0{name}\0{block['text']}"))
        elif kind == "thinking" and type(block.get("thinking")) is str:
            signature = block.get("signature")
            mark = signature if type(signature) is str else ""
            keys.append(digest(f"thinking\0{name}\0{block['thinking']}\0{mark}"))
        else:
            keys.append(record_digest(b"block" + name.encode(errors="replace"), block))


def result_text(content: Any, tally: Tally) -> str:
    """What a tool gave back: a string, or the text of its blocks."""
    if type(content) is str:
        return media_free(content, tally)
    if content is None:
        return ""
    if type(content) is not list:
        return value_text(content, tally)
    texts: list[str] = []
    for block in content:
        if type(block) is str:
            texts.append(media_free(block, tally))
            continue
        kind = word(block.get("type")) if type(block) is dict else None
        if kind == "text" and type(block.get("text")) is str:
            texts.append(media_free(block["text"], tally))
        elif kind in {"image", "document", "audio"}:
            source = block.get("source")
            source = source if type(source) is dict else block
            readable = texts_of(block, source)
            if word(source.get("type")) not in {"text", "url", "content"}:
                mime = source.get("media_type") or source.get("mimeType") or f"{kind}/"
                tally.omit("image" if kind == "image" else media_kind(mime))
            if readable:
                texts.append(readable)
        elif kind == "tool_reference":
            texts.append(str(block.get("tool_name", "")))
        elif kind in _PLAIN_RESULTS:
            texts.append(value_text(block, tally, skip={"type"}))
        else:
            tally.strange(f"tool_result:{kind}")
            if kind is not None:
                texts.append(value_text(block, tally, skip={"type"}))
    return "\n".join(texts)


_PLAIN_RESULTS: Final = frozenset(
    {
        "resource",
        "resource_link",
        "search_result",
        "web_search_result",
        "web_search_tool_result_error",
        "web_fetch_result",
        "code_execution_result",
        "code_execution_output",
        "bash_code_execution_result",
        "text_editor_code_execution_view_result",
    }
)


def texts_of(block: dict[str, Any], source: dict[str, Any]) -> str:
    """The readable side of an image or document: title, context, text, URL."""
    texts = [block.get("title"), block.get("context"), source.get("url")]
    if source.get("type") == "text":
        texts.append(source.get("data"))
    return "\n".join(text for text in texts if type(text) is str and text)


def persisted(body: str, call: Any, side: SideFiles, tally: Tally) -> str:
    """A result that the client moved to a file of its own, put back in its place."""
    if "<persisted-output>" not in body[:200]:
        return body
    match = _PERSISTED.match(body)
    if match is None:
        return body
    name = re.split(r"[/\\]", match[1].strip())[-1]
    stored = side.read(name, call if type(call) is str else None) if name else None
    if stored is None:
        tally.omit("persisted_output")
        return body
    try:
        # what was stored before may hold lone surrogates
        text = stored.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        text = stored.decode(errors="replace")
    if name.endswith(".json"):
        blocks = parsed(text)
        if type(blocks) is list and all(type(one) is dict and "type" in one for one in blocks):
            return result_text(blocks, tally)
    return text


def system_text(record: dict[str, Any], tally: Tally) -> str:
    """A client's notice: its content, or the error it reports."""
    content = record.get("content")
    if type(content) is str:
        return content
    parts = {name: record[name] for name in ("content", "error", "cause") if record.get(name)}
    return value_text(parts, tally) if parts else ""


def attachment_text(given: dict[str, Any], tally: Tally) -> tuple[str, bool, bool]:
    """
    An attachment's text, whether it is a file, and whether its type is known.

    Hooks repeat their output in several fields; equal texts are taken once.
    """
    kind = word(given.get("type"))
    is_file = kind in _FILES
    skip = {"type"} if is_file else _ATTACHMENT_METADATA
    rest: dict[str, Any] = {}
    seen: list[Any] = []
    for name, value in given.items():
        if name in skip or not value:
            continue
        if type(value) is str:
            if value in seen:
                continue
            seen.append(value)
        elif type(value) is bool or type(value) is int or type(value) is float:
            continue
        rest[name] = value
    known = is_file or kind in _KNOWN or (kind is not None and kind.startswith(_FAMILIES))
    if not rest:
        return "", is_file, known
    if len(rest) == 1:
        only = next(iter(rest.values()))
        if type(only) is str:
            return media_free(only, tally), is_file, known
    return value_text(rest, tally), is_file, known
