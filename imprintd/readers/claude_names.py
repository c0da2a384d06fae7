"""
Which source a Claude Code file is, told by its names and its first records.

A session is its UUID, wherever the file lies; the folder's slug is lossy and
never looked at.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from imprintd.readers.base import Identity
from imprintd.readers.tally import word

CLIENT: Final = "claude"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_UUID_ONLY: Final = re.compile(_UUID)
_AGENT: Final = re.compile(r"agent-([\w.-]{1,120})")
_SAFE: Final = re.compile(r"[\w.-]{1,128}", re.ASCII)
_NOT_TRANSCRIPTS: Final = frozenset({"journal.jsonl", "history.jsonl", "sessions-index.jsonl"})
_TYPES: Final = frozenset({"user", "assistant", "system", "summary", "attachment", "progress"})
_META_TYPES: Final = frozenset(
    {
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "last-prompt",
        "permission-mode",
        "mode",
        "ai-title",
        "custom-title",
        "agent-name",
        "bridge-session",
        "pr-link",
        "worktree-state",
        "atis-latch",
        "frame-link",
        "fork-context-ref",
    }
)
_CUT: Final = re.compile(rb'[\s\0]*\{"(?:parentUuid|isSidechain|logicalParentUuid)"')
"""A first record longer than the head."""
_FIELD: Final = re.compile(rb'"(sessionId|cwd)":"((?:[^"\\]|\\.)*)"')
_RECORDS_MAX: Final = 200
"""First records that are looked at."""


def is_record(value: Any) -> bool:
    """Whether a decoded value is a record of this client."""
    if type(value) is not dict:
        return False
    kind = word(value.get("type"))
    if kind in _META_TYPES:
        return True
    return kind in _TYPES and (
        "uuid" in value or "sessionId" in value or "leafUuid" in value or "parentUuid" in value
    )


def identify(path: str, head: bytes) -> Identity | None:
    """Tell which source a file is, or None if it is not a Claude transcript."""
    folders = path.split("/")
    name = folders.pop()
    if not name.endswith(".jsonl") or name in _NOT_TRANSCRIPTS:
        return None
    stem = name[: -len(".jsonl")]
    records = first_records(head)
    ours = [record for record in records if is_record(record)]
    if not records and _CUT.match(head):
        ours = [_cut_record(head)]
    # right names with nothing readable yet (empty, or NULs after a crash) count
    if not ours and (records or "projects" not in folders):
        return None
    project = next((r["cwd"] for r in ours if type(r.get("cwd")) is str and r["cwd"]), None)
    session = next((r["sessionId"] for r in ours if _is_safe(r.get("sessionId"))), None)
    agent = _AGENT.fullmatch(stem)
    if agent:
        return _agent(agent[1], folders, session, project)
    if _UUID_ONLY.fullmatch(stem):
        return Identity(key=f"{CLIENT}:{stem.lower()}", project=project)
    if session is None:
        return None
    return Identity(key=f"{CLIENT}:{session.lower()}", project=project, named=False)


def _agent(
    agent: str, folders: list[str], session: str | None, project: str | None
) -> Identity | None:
    if "subagents" in folders:
        at = len(folders) - 1 - folders[::-1].index("subagents")
        if at > 0 and _is_safe(folders[at - 1]):
            session = folders[at - 1]
    if session is None:
        return None
    parent = f"{CLIENT}:{session.lower()}"
    return Identity(key=f"{parent}:{agent}", parent=parent, project=project)


def _cut_record(head: bytes) -> dict[str, Any]:
    """Envelope fields of a record whose end is not in the head."""
    envelope = head.partition(b'"message"')[0]
    found: dict[str, Any] = {}
    for match in _FIELD.finditer(envelope):
        try:
            found[match[1].decode()] = orjson.loads(b'"' + match[2] + b'"')
        except orjson.JSONDecodeError:
            continue
    return found


def _is_safe(value: object) -> bool:
    return type(value) is str and _SAFE.fullmatch(value) is not None


def first_records(head: bytes) -> list[Any]:
    """Whole records at the start of a file; what is damaged is passed over."""
    records: list[Any] = []
    for line in head.split(b"\n", _RECORDS_MAX)[:_RECORDS_MAX]:
        bare = line.strip(b" \t\r\0")
        if not bare:
            continue
        try:
            records.append(orjson.loads(bare))
        except orjson.JSONDecodeError:
            continue
    return records
