"""
Which source a Codex rollout is, told by its names and its first records.

A thread is its UUID: archiving, compressing and reverting keep it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from imprintd.readers.base import Identity
from imprintd.readers.claude_names import first_records
from imprintd.readers.context import working_directory
from imprintd.readers.tally import word

CLIENT: Final = "codex"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ROLLOUT: Final = re.compile(rf"rollout-[\dT-]{{10,30}}-({_UUID})\b|rollout-[\dT-]*?({_UUID})")
_SAFE: Final = re.compile(r"[\w.-]{1,128}", re.ASCII)
_CUT: Final = re.compile(
    rb'[\s\0]*\{"timestamp":"[^"]{10,40}","type":"(?:session_meta|response_item)"'
)
_CUT_ID: Final = re.compile(
    rb'"type":"session_meta","payload":\{"(?:session_id":"[^"]+",")?id":"([^"]+)"'
)
_ENVELOPES: Final = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "token_usage_record",
    }
)
_BARE: Final = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    }
)


def is_record(value: Any) -> bool:
    """Whether a decoded value is a record of this client."""
    if type(value) is not dict:
        return False
    if "payload" in value:
        return type(value.get("type")) is str and "timestamp" in value
    return value.get("record_type") == "state" or is_header(value) or is_bare(value)


def is_header(value: dict[str, Any]) -> bool:
    """The first line of the era without envelopes."""
    return "id" in value and "timestamp" in value and "instructions" in value


def is_bare(value: dict[str, Any]) -> bool:
    """An item of the era without envelopes."""
    kind = word(value.get("type"))
    if kind == "message":
        return word(value.get("role")) in {"user", "assistant", "developer", "system"}
    return kind in _BARE


def identify(path: str, head: bytes) -> Identity | None:
    """Tell which source a file is, or None if it is not a Codex rollout."""
    name = path.rpartition("/")[2]
    plain = name.removesuffix(".zst")
    if not plain.endswith(".jsonl"):
        return None
    stem = plain.removesuffix(".jsonl")
    records = first_records(head)
    ours = [record for record in records if _opens(record)]
    rollout = _ROLLOUT.match(stem)
    if not ours:
        if not _CUT.match(head) and (records or rollout is None):
            return None
        cut = _CUT_ID.search(head)
        found = cut[1].decode(errors="replace") if cut else None
        return _identity(rollout, stem, found, None, None)
    meta = next((_payload(r) for r in ours if r.get("type") == "session_meta"), None)
    if meta is None:
        meta = next((r for r in ours if is_header(r)), {})
    found = meta.get("id") if type(meta.get("id")) is str else None
    return _identity(rollout, stem, found, parent_of(meta), _project(ours))


def _identity(
    rollout: re.Match[str] | None,
    stem: str,
    found: str | None,
    parent: str | None,
    project: str | None,
) -> Identity | None:
    named = rollout is not None
    name = (rollout[1] or rollout[2]) if rollout else None
    if name is None and found is not None and _SAFE.fullmatch(found):
        name = found
    if name is None and _SAFE.fullmatch(stem):
        name, named = stem, True
    if name is None:
        return None
    key = f"{CLIENT}:{name.lower()}"
    above = f"{CLIENT}:{parent.lower()}" if parent else None
    return Identity(key=key, parent=None if above == key else above, project=project, named=named)


def parent_of(meta: dict[str, Any]) -> str | None:
    """The thread that started this one, if it is a sub-agent's."""
    source = meta.get("source")
    sub = source.get("subagent", source.get("subAgent")) if type(source) is dict else None
    if sub is None and meta.get("thread_source") != "subagent":
        return None
    spawn = sub.get("thread_spawn") if type(sub) is dict else None
    candidates = [
        spawn.get("parent_thread_id") if type(spawn) is dict else None,
        meta.get("parent_thread_id"),
        meta.get("forked_from_id"),
    ]
    return next((c for c in candidates if type(c) is str and _SAFE.fullmatch(c)), None)


def is_subagent(meta: dict[str, Any]) -> bool:
    """Whether another thread, not a person, started this one."""
    source = meta.get("source")
    return (type(source) is dict and ("subagent" in source or "subAgent" in source)) or (
        meta.get("thread_source") == "subagent"
    )


def _opens(value: Any) -> bool:
    if not is_record(value):
        return False
    return "payload" not in value or word(value.get("type")) in _ENVELOPES


def _payload(record: dict[str, Any]) -> dict[str, Any]:
    payload = record.get("payload")
    return payload if type(payload) is dict else {}


def _project(records: list[dict[str, Any]]) -> str | None:
    for record in records:
        item = _payload(record) or record
        cwd = item.get("cwd")
        if type(cwd) is str and cwd:
            return cwd
        if item.get("type") == "message" and type(item.get("content")) is list:
            for block in item["content"]:
                text = block.get("text") if type(block) is dict else None
                found = working_directory(text) if type(text) is str else None
                if found:
                    return found
    return None
