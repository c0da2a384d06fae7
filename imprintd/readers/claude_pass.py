"""
Claude Code records to events: one pass over the records of one reading.

The table of record types follows docs/readers.md. File order is the order of
the conversation; every content block is an event of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from imprintd.model.event import Event, Kind, Role
from imprintd.readers.base import SideFiles
from imprintd.readers.claude_blocks import (
    attachment_text,
    block_keys,
    persisted,
    result_text,
    system_text,
    texts_of,
)
from imprintd.readers.context import split_claude
from imprintd.readers.memory import Copies, Occurrences, Seen, digest, record_digest
from imprintd.readers.recalled import recalls, without_recalled
from imprintd.readers.render import call_body, media_kind
from imprintd.readers.tally import Tally, bounded, latest, word

STATE_VERSION: Final = 1
_QUEUED_MAX: Final = 64
_RECALLS_MAX: Final = 64

_METADATA: Final = frozenset(
    {
        "file-history-snapshot",
        "file-history-delta",
        "permission-mode",
        "mode",
        "bridge-session",
        "pr-link",
        "worktree-state",
        "atis-latch",
        "frame-link",
        "fork-context-ref",
    }
)
_TITLES: Final = {
    "custom-title": ("customTitle", 2),
    "ai-title": ("aiTitle", 1),
    "summary": ("summary", 1),
    "agent-name": ("agentName", 0),
}
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


class ClaudePass:
    """
    State and output of one reading.

    Attributes:
        events: So far, in file order.
        keys: Ledger keys of the records that gave them.
        project: First working directory, if it shows in this reading.
        title: Latest title of the highest rank so far.
        question: First typed question, if it shows in this reading.
        updated: Latest timestamp.
    """

    def __init__(
        self, table: Mapping[str, Any], tally: Tally, side: SideFiles, *, fresh: bool
    ) -> None:
        self.events: list[Event] = []
        self.keys: list[bytes] = []
        self.project: str | None = None
        self.title: str | None = None
        self.question: str | None = None
        self.updated: str | None = None
        self._tally = tally
        self._side_files = side
        self._fresh = fresh
        self._turn: int = table.get("turn", 0)
        self._prompt: str = table.get("prompt", "")
        self._has_project: bool = table.get("project", False)
        self._has_question: bool = table.get("question", False)
        self._title_rank: int = table.get("rank", -1)
        self._agent: bool | None = table.get("agent")
        self._queued = Copies(_QUEUED_MAX, table.get("queued", ()))
        self._recalls = Seen(_RECALLS_MAX, table.get("recalls", ()))
        self._occurrences = Occurrences(table.get("pass", "")) if fresh else None
        self._known: Mapping[bytes, int] = {}
        self._taken: set[bytes] = set()
        # of the record at hand
        self._names: list[bytes] = []
        self._stamp: str | None = None
        self._mute = False
        self._copied = False
        self._inline_side = False
        self._rules: dict[str, Callable[[dict[str, Any]], None]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "queue-operation": self._queue,
        }

    def pack(self) -> dict[str, Any]:
        """The continuation: digests, counters and flags, no text."""
        table: dict[str, Any] = {
            "v": STATE_VERSION,
            "turn": self._turn,
            "prompt": self._prompt,
            "project": self._has_project,
            "question": self._has_question,
            "rank": self._title_rank,
            "agent": self._agent,
            "queued": self._queued.pack(),
            "recalls": self._recalls.pack(),
        }
        if self._occurrences is not None:
            table["pass"] = self._occurrences.pack()
        return table

    def keys_of(self, record: Any) -> list[bytes]:
        """Ledger keys of a record: its own first, then one for each block."""
        if type(record) is not dict or word(record.get("type")) not in self._rules:
            return []
        uuid = record.get("uuid")
        if type(uuid) is str and uuid:
            keys = [digest(b"uuid", uuid)]
        else:
            keys = [record_digest(b"record", record)]
        message = record.get("message")
        if type(message) is dict:
            block_keys(message, keys)
        return keys

    def run(self, records: list[Any], keys: list[list[bytes]], known: Mapping[bytes, int]) -> None:
        """Map the records; `known` says what the source has already."""
        self._known = known
        for record, names in zip(records, keys, strict=True):
            self._record(record, names)

    def _record(self, record: Any, names: list[bytes]) -> None:
        if type(record) is not dict:
            self._tally.strange("not-an-object")
            return
        kind = word(record.get("type"))
        if kind == "progress":
            # a passing copy of what other records hold
            self._tally.omit("progress")
            return
        cwd = record.get("cwd")
        if not self._has_project and type(cwd) is str and cwd:
            self.project = cwd[:4096]
            self._has_project = True
        stamp = record.get("timestamp")
        self.updated = latest(self.updated, stamp)
        rule = self._rules.get(kind) if kind is not None else None
        if rule is None:
            self._other(record, kind)
            return
        self._names = names
        self._stamp = bounded(stamp, 64)
        side = record.get("isSidechain")
        if self._agent is None and type(side) is bool:
            self._agent = side
        self._inline_side = side is True and not self._agent
        if not self._repeated(record, names):
            before = len(self.events)
            self._copied = False
            rule(record)
            # a second copy counts as taken: it may be all that a rewrite leaves
            if len(self.events) > before or self._copied:
                self.keys += names
                self._taken.update(names)
            return
        self._tally.repeated += 1
        turn, prompt = self._turn, self._prompt
        tally, self._tally = self._tally, Tally()
        self._mute = True
        rule(record)
        self._mute = False
        self._tally = tally
        if not self._fresh:
            self._turn, self._prompt = turn, prompt

    def _repeated(self, record: dict[str, Any], names: list[bytes]) -> bool:
        own = names[0]
        if "uuid" not in record and self._occurrences is not None:
            return self._occurrences.next(own) <= self._known.get(own, 0)
        if "uuid" not in record and "timestamp" not in record:
            return False
        if own in self._known or own in self._taken:
            return True
        blocks = names[1:]
        return bool(blocks) and all(self._has(name) for name in blocks)

    def _has(self, name: bytes) -> bool:
        return name in self._known or name in self._taken

    def _emit(self, role: Role, kind: Kind, body: str, call_id: str | None = None) -> None:
        if not self._mute:
            self.events.append(Event(role, kind, body, self._turn, self._stamp, call_id))

    def _other(self, record: dict[str, Any], kind: object) -> None:
        if kind in _METADATA:
            self._tally.omit("metadata")
        elif kind == "last-prompt":
            self._tally.omit("second_copy")
        elif type(kind) is str and kind in _TITLES:
            field, rank = _TITLES[kind]
            title = record.get(field)
            if type(title) is str and title.strip() and rank >= self._title_rank:
                self.title, self._title_rank = title[:1000], rank
            self._tally.omit("metadata")
        else:
            self._tally.strange(kind if type(kind) is str else "no-type")

    # what the user's lines hold

    def _user(self, record: dict[str, Any]) -> None:
        content = _content(record)
        if record.get("toolUseResult") is not None:
            self._tally.omit("second_copy")
        injected = (
            record.get("isMeta") is True
            or record.get("isCompactSummary") is True
            or record.get("isVisibleInTranscriptOnly") is True
        )
        prompt = record.get("promptId")
        if type(content) is str:
            self._said(content, injected, prompt)
            return
        if type(content) is not list:
            self._tally.strange("user:malformed")
            return
        for block in content:
            if type(block) is not dict:
                if type(block) is str:
                    self._said(block, injected, prompt)
                else:
                    self._tally.strange("user:malformed")
                continue
            kind = word(block.get("type"))
            if kind == "tool_result":
                self._result(block)
            elif kind == "text" and type(block.get("text")) is str:
                self._said(block["text"], injected, prompt)
            else:
                self._attached(block, kind, injected=injected)

    def _said(self, text: str, injected: bool, prompt: object) -> None:
        if injected:
            if text.strip():
                self._emit("context", "context", self._cleared(text))
            return
        for part in split_claude(text):
            if self._queued.take(part.text) or self._queued.take_run(part.text):
                self._tally.omit("second_copy")
                self._copied = True
                if type(prompt) is str:
                    self._prompt = prompt[:64]
            elif part.typed:
                if part.text.strip():
                    # typed directly: the queue was drained before it
                    self._queued.clear()
                    self._typed(part.text, prompt)
            else:
                self._emit("context", "context", self._cleared(part.text))

    def _typed(self, text: str, prompt: object = None) -> None:
        if not self._inline_side:
            same = type(prompt) is str and prompt[:64] == self._prompt
            if not same or self._turn == 0:
                self._turn += 1
            self._prompt = prompt[:64] if type(prompt) is str else ""
            if not self._has_question:
                self.question = text.strip()[:2000]
                self._has_question = True
        self._emit("user", "message", self._cleared(text))

    def _attached(self, block: dict[str, Any], kind: object, *, injected: bool) -> None:
        if kind in {"image", "document", "audio", "video"}:
            source = block.get("source")
            source = source if type(source) is dict else {}
            readable = texts_of(block, source)
            if word(source.get("type")) not in {"text", "url", "content"}:
                mime = source.get("media_type") or f"{kind}/"
                self._tally.omit("image" if kind == "image" else media_kind(mime))
            if readable:
                self._emit("context" if injected else "user", "attachment", readable)
        else:
            self._tally.strange(f"user:{kind}")

    def _result(self, block: dict[str, Any]) -> None:
        call = block.get("tool_use_id")
        body = result_text(block.get("content"), self._tally)
        body = persisted(body, call, self._side_files, self._tally)
        recalled = type(call) is str and self._recalls.take(call)
        body = without_recalled(body, self._tally, output=True, whole=recalled)
        self._emit("tool", "tool_output", body, bounded(call))

    def _cleared(self, text: str) -> str:
        return without_recalled(text, self._tally, output=False, whole=False)

    # what the assistant's lines hold

    def _assistant(self, record: dict[str, Any]) -> None:
        content = _content(record)
        message = record.get("message")
        synthetic = (type(message) is dict and message.get("model") == "<synthetic>") or (
            record.get("isApiErrorMessage") is True
        )
        if type(content) is str:
            content = [{"type": "text", "text": content}]
        if type(content) is not list:
            self._tally.strange("assistant:malformed")
            return
        names = self._names
        partly = len(names) > 2
        for index, block in enumerate(content):
            if type(block) is not dict:
                self._tally.strange("assistant:malformed")
                continue
            # a message that grew: only its new blocks are taken
            if partly and index + 1 < len(names) and self._has(names[index + 1]):
                continue
            self._block(block, synthetic=synthetic)

    def _block(self, block: dict[str, Any], *, synthetic: bool) -> None:
        kind = word(block.get("type"))
        if kind == "text" and type(block.get("text")) is str:
            body = self._cleared(block["text"])
            if synthetic:
                self._emit("system", "context", body)
            elif body:
                self._emit("assistant", "message", body)
        elif kind == "thinking":
            if block.get("signature"):
                self._tally.omit("signature")
            thought = block.get("thinking")
            if type(thought) is str and thought.strip():
                self._emit("assistant", "analysis", self._cleared(thought))
            else:
                self._tally.omit("empty_thinking")
        elif kind == "redacted_thinking":
            self._tally.omit("redacted_thinking")
        elif kind in _CALLS:
            name = block.get("name") if type(block.get("name")) is str else "?"
            call = block.get("id")
            given = block.get("input")
            if type(call) is str and recalls(str(name), given):
                self._recalls.add(call)
            body = self._cleared(call_body(str(name), given, self._tally))
            self._emit("assistant", "tool_call", body, bounded(call))
        elif type(kind) is str and kind.endswith("_tool_result"):
            body = self._cleared(result_text(block.get("content"), self._tally))
            self._emit("tool", "tool_output", body, bounded(block.get("tool_use_id")))
        elif kind in {"image", "document"}:
            self._tally.omit(str(kind))
        else:
            self._tally.strange(f"assistant:{kind}")

    # what the client itself writes

    def _system(self, record: dict[str, Any]) -> None:
        subtype = word(record.get("subtype"))
        if subtype in _SYSTEM_METADATA:
            self._tally.omit("metadata")
            return
        if subtype not in _SYSTEM_KNOWN:
            self._tally.strange(f"system:{subtype}")
        body = system_text(record, self._tally)
        if body.strip():
            self._emit("system", "context", self._cleared(body))
        else:
            self._tally.omit("metadata")

    def _attachment(self, record: dict[str, Any]) -> None:
        given = record.get("attachment")
        if type(given) is not dict:
            self._tally.strange("attachment:malformed")
            return
        if given.get("type") == "queued_command":
            self._queued_command(given)
            return
        body, is_file, known = attachment_text(given, self._tally)
        if not known:
            self._tally.strange(f"attachment:{given.get('type')}")
        if body.strip():
            self._emit("context", "attachment" if is_file else "context", self._cleared(body))
        else:
            self._tally.omit("metadata")

    def _queued_command(self, given: dict[str, Any]) -> None:
        prompt = given.get("prompt")
        injected = word(given.get("commandMode")) not in {"prompt", None}
        blocks = prompt if type(prompt) is list else [{"type": "text", "text": prompt}]
        for block in blocks:
            if type(block) is not dict:
                self._tally.strange("attachment:queued_command")
            elif block.get("type") == "text" and type(block.get("text")) is str:
                self._late(block["text"], injected=injected, expect=False)
            else:
                self._attached(block, word(block.get("type")), injected=injected)

    def _queue(self, record: dict[str, Any]) -> None:
        content = record.get("content")
        operation = word(record.get("operation"))
        if operation not in {"enqueue", "dequeue", "remove", "popAll"}:
            self._tally.strange(f"queue-operation:{operation}")
        elif operation == "enqueue" and type(content) is str and content.strip():
            self._late(content, injected=False, expect=True)
        else:
            self._tally.omit("second_copy" if type(content) is str else "metadata")

    def _late(self, text: str, *, injected: bool, expect: bool) -> None:
        """Text that came while the assistant worked: taken at first sight."""
        if not expect and (self._queued.take(text) or self._queued.take_run(text)):
            self._tally.omit("second_copy")
            self._copied = True
            return
        for part in split_claude(text):
            if not expect and self._queued.take(part.text):
                self._tally.omit("second_copy")
                self._copied = True
                continue
            if part.typed and not injected:
                self._typed(part.text)
            else:
                self._emit("context", "context", self._cleared(part.text))
            if expect:
                self._queued.put(part.text)


def _content(record: dict[str, Any]) -> Any:
    message = record.get("message")
    if type(message) is dict:
        return message.get("content")
    return message if type(message) is str else None
