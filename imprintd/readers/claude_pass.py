"""
Claude Code records to events: one pass over the records of one reading.

The table of record types follows docs/readers.md. File order is the order of
the conversation; every content block is an event of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from imprintd.model.event import Event, Kind, Role
from imprintd.readers.base import SideFiles
from imprintd.readers.claude_blocks import block_keys
from imprintd.readers.claude_records import RULES
from imprintd.readers.context import split_claude
from imprintd.readers.memory import Copies, Occurrences, Seen, digest, record_digest
from imprintd.readers.recalled import without_recalled
from imprintd.readers.tally import Tally, bounded, latest

STATE_VERSION: Final = 1
_QUEUED_MAX: Final = 64
_RECALLS_MAX: Final = 64

COUNTED: Final = {
    # a passing copy of what other records hold
    "progress": "progress",
    "file-history-snapshot": "metadata",
    "file-history-delta": "metadata",
}
"""Records of which nothing is looked at, and what they are counted as."""

_METADATA: Final = frozenset(
    {
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


class ClaudePass:
    """
    State and output of one reading.

    Attributes:
        events: So far, in file order.
        keys: Ledger keys of the records that gave them.
        project: First working directory, if it shows in this reading.
        title: Latest title of the highest rank so far.
        leaves: Ledger keys of the records that summaries speak of.
        question: First typed question, if it shows in this reading.
        updated: Latest timestamp.
    """

    def __init__(
        self, table: Mapping[str, Any], tally: Tally, side: SideFiles, *, fresh: bool
    ) -> None:
        self.events: list[Event] = []
        self.keys: list[bytes] = []
        self.leaves: list[bytes] = []
        self.project: str | None = None
        self.title: str | None = None
        self.question: str | None = None
        self.updated: str | None = None
        self.tally = tally
        self.side_files = side
        self._fresh = fresh
        self._turn: int = table.get("turn", 0)
        self._prompt: str = table.get("prompt", "")
        self._has_project: bool = table.get("project", False)
        self._has_question: bool = table.get("question", False)
        self._title_rank: int = table.get("rank", -1)
        self._agent: bool | None = table.get("agent")
        self._queued = Copies(_QUEUED_MAX, table.get("queued", ()))
        self.recalls = Seen(_RECALLS_MAX, table.get("recalls", ()))
        self._occurrences = Occurrences(table.get("pass", "")) if fresh else None
        self._known: Mapping[bytes, int] = {}
        self._taken: set[bytes] = set()
        # of the record at hand
        self.names: list[bytes] = []
        self._stamp: str | None = None
        self._mute = False
        self._copied = False
        self._inline_side = False

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
            "recalls": self.recalls.pack(),
        }
        if self._occurrences is not None:
            table["pass"] = self._occurrences.pack()
        return table

    def keys_of(self, record: Any) -> list[bytes]:
        """Ledger keys of a record: its own first, then one for each block."""
        if type(record) is not dict:
            return []
        kind = record.get("type")
        if type(kind) is not str or kind not in RULES:
            self.leaves += self.leaf_of(record)
            return []
        uuid = record.get("uuid")
        keys = [digest("uuid\0" + uuid) if type(uuid) is str else record_digest(b"record", record)]
        message = record.get("message")
        if type(message) is dict and type(message.get("content")) is list:
            block_keys(message, keys)
        return keys

    @staticmethod
    def leaf_of(record: dict[str, Any]) -> list[bytes]:
        """Ledger key of the record that a summary speaks of."""
        if record.get("type") != "summary":
            return []
        leaf = record.get("leafUuid")
        return [digest("uuid\0" + leaf)] if type(leaf) is str else []

    def run(self, records: list[Any], keys: list[list[bytes]], known: Mapping[bytes, int]) -> None:
        """Map the records; `known` says what the source has already."""
        self._known = known
        for record, names in zip(records, keys, strict=True):
            self._record(record, names)

    def _record(self, record: Any, names: list[bytes]) -> None:
        if type(record) is not dict:
            self.tally.strange("not-an-object")
            return
        kind = record.get("type")
        if type(kind) is str and kind in COUNTED:
            # not let go by the framing: it shared its line with another record
            self.tally.omit(COUNTED[kind])
            return
        if not self._has_project:
            cwd = record.get("cwd")
            if type(cwd) is str and cwd:
                self.project = cwd[:4096]
                self._has_project = True
        stamp = record.get("timestamp")
        self.updated = latest(self.updated, stamp)
        if not names:
            self._other(record, kind)
            return
        rule = RULES[str(kind)]
        self.names = names
        self._stamp = bounded(stamp, 64)
        side = record.get("isSidechain")
        if self._agent is None and type(side) is bool:
            self._agent = side
        self._inline_side = side is True and not self._agent
        if not self._repeated(record, names):
            before = len(self.events)
            self._copied = False
            rule(self, record)
            # a second copy counts as taken: it may be all that a rewrite leaves
            if self._copied or len(self.events) > before:
                self.keys += names
                self._taken.update(names)
            return
        self.tally.repeated += 1
        turn, prompt = self._turn, self._prompt
        tally, self.tally, self._mute = self.tally, Tally(), True
        rule(self, record)
        self.tally, self._mute = tally, False
        if not self._fresh:
            self._turn, self._prompt = turn, prompt

    def _repeated(self, record: dict[str, Any], names: list[bytes]) -> bool:
        own = names[0]
        if type(record.get("uuid")) is not str:
            if self._occurrences is not None:
                return self._occurrences.next(own) <= self._known.get(own, 0)
            if "timestamp" not in record:
                return False
        if own in self._taken or own in self._known:
            return True
        return len(names) > 1 and all(self.has(name) for name in names[1:])

    def has(self, name: bytes) -> bool:
        return name in self._known or name in self._taken

    def emit(self, role: Role, kind: Kind, body: str, call_id: str | None = None) -> None:
        if not self._mute:
            self.events.append(Event(role, kind, body, self._turn, self._stamp, call_id))

    def _other(self, record: dict[str, Any], kind: object) -> None:
        if type(kind) is not str:
            self.tally.strange("no-type")
        elif kind in _METADATA:
            self.tally.omit("metadata")
        elif kind == "last-prompt":
            self.tally.omit("second_copy")
        elif kind in _TITLES:
            field, rank = _TITLES[kind]
            title = record.get(field)
            if kind == "summary" and not any(self.has(leaf) for leaf in self.leaf_of(record)):
                # files begin with summaries of other conversations
                title = None
            if type(title) is str and title.strip() and rank >= self._title_rank:
                self.title, self._title_rank = title[:1000], rank
            self.tally.omit("metadata")
        else:
            self.tally.strange(kind)

    # used by the rules

    def said(self, text: str, injected: bool, prompt: object) -> None:
        if injected:
            if text.strip():
                self.emit("context", "context", self.cleared(text))
            return
        for part in split_claude(text):
            if self._queued.take(part.text) or self._queued.take_run(part.text):
                self.tally.omit("second_copy")
                self._copied = True
                self._prompt = _prompt_name(prompt)
            elif part.typed:
                if part.text.strip():
                    if not self._inline_side:
                        # typed directly: the queue was drained before it
                        self._queued.clear()
                    self.typed(part.text, prompt)
            else:
                self.emit("context", "context", self.cleared(part.text))

    def typed(self, text: str, prompt: object = None) -> None:
        if not self._inline_side:
            name = _prompt_name(prompt)
            if not name or name != self._prompt or self._turn == 0:
                self._turn += 1
            self._prompt = name
            if not self._has_question:
                self.question = text.strip()[:2000]
                self._has_question = True
        self.emit("user", "message", self.cleared(text))

    def cleared(self, text: str) -> str:
        return without_recalled(text, self.tally, output=False, whole=False)

    def late(self, text: str, *, injected: bool, expect: bool) -> None:
        """Text that came while the assistant worked: taken at first sight."""
        if not expect and (self._queued.take(text) or self._queued.take_run(text)):
            self.tally.omit("second_copy")
            self._copied = True
            return
        for part in split_claude(text):
            if not expect and self._queued.take(part.text):
                self.tally.omit("second_copy")
                self._copied = True
                continue
            if part.typed and not injected:
                self.typed(part.text)
            else:
                self.emit("context", "context", self.cleared(part.text))
            if expect:
                self._queued.put(part.text)


def _prompt_name(prompt: object) -> str:
    """A prompt's id as it is kept in the state; empty where there is none."""
    return digest("prompt\0" + prompt).hex() if type(prompt) is str and prompt else ""
