"""
Codex records to events: one pass over the records of one reading.

`response_item` records are the conversation; `event_msg` records are mostly a
second copy that comes just before or after. Whichever comes first is taken,
the other is known again by its content, so files that hold only one kind are
read completely. The items themselves are read in `codex_items`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from imprintd.model.event import Event, Kind, Role
from imprintd.readers import codex_events, codex_items
from imprintd.readers.codex_names import is_bare, is_header
from imprintd.readers.codex_replay import Replay, turn_of
from imprintd.readers.context import inner_instructions, split_codex, working_directory
from imprintd.readers.memory import Copies, Occurrences, Seen, digest, record_digest
from imprintd.readers.recalled import without_recalled
from imprintd.readers.render import value_text
from imprintd.readers.tally import Tally, bounded, latest, word

STATE_VERSION: Final = 1
_COPIES_MAX: Final = 64
_CONTEXTS_MAX: Final = 256
_CALLS_MAX: Final = 256


class CodexPass:
    """
    State and output of one reading; the attributes are those of a `Reading`.

    Attributes:
        calls: Tool calls whose output is still to come.
        recalls: Those among them that asked imprintd.
        tally: Counts what is left out.
    """

    def __init__(self, table: Mapping[str, Any], tally: Tally, *, fresh: bool) -> None:
        self.events: list[Event] = []
        self.keys: list[bytes] = []
        self.project: str | None = None
        self.question: str | None = None
        self.updated: str | None = None
        self.tally = tally
        self.calls = Seen(_CALLS_MAX, table.get("calls", ()))
        self.recalls = Seen(_CALLS_MAX, table.get("recalls", ()))
        self._turn: int = table.get("turn", 0)
        self._turn_id: str = table.get("turn_id", "")
        self._turn_open: bool = table.get("turn_open", False)
        self._has_project: bool = table.get("project", False)
        self._has_question: bool = table.get("question", False)
        self._contexts = Seen(_CONTEXTS_MAX, table.get("contexts", ()))
        copies = table.get("copies", {})
        # per kind: taken from an item, its event expected; and the other way
        self._from_items = {
            kind: Copies(_COPIES_MAX, copies.get(f"item:{kind}", ())) for kind in _PAIRED
        }
        self._from_events = {
            kind: Copies(_COPIES_MAX, copies.get(f"event:{kind}", ())) for kind in _PAIRED
        }
        self._replay = Replay(table.get("replay", {}))
        self._occurrences = Occurrences(table.get("pass", "")) if fresh else None
        self._known: Mapping[bytes, int] = {}
        self._stamp: str | None = None
        self._mute = False
        self._copied = False

    def pack(self) -> dict[str, Any]:
        """The continuation: digests, counters and flags, no text."""
        copies = {f"item:{kind}": one.pack() for kind, one in self._from_items.items()}
        copies |= {f"event:{kind}": one.pack() for kind, one in self._from_events.items()}
        table: dict[str, Any] = {
            "v": STATE_VERSION,
            "turn": self._turn,
            "turn_id": self._turn_id,
            "turn_open": self._turn_open,
            "project": self._has_project,
            "question": self._has_question,
            "contexts": self._contexts.pack(),
            "copies": {name: items for name, items in copies.items() if items},
            "calls": self.calls.pack(),
            "recalls": self.recalls.pack(),
            "replay": self._replay.pack(),
        }
        if self._occurrences is not None:
            table["pass"] = self._occurrences.pack()
        return table

    @staticmethod
    def key_of(record: Any) -> bytes:
        """Ledger key of a record: its content without the outer timestamp."""
        if type(record) is dict and "payload" in record:
            return record_digest(
                str(record.get("type")).encode(errors="replace"), record["payload"]
            )
        return record_digest(b"bare", record)

    def run(self, records: list[Any], keys: list[bytes], known: Mapping[bytes, int]) -> None:
        """
        Map the records.

        Args:
            records: Decoded records.
            keys: Their keys in a fresh pass, else empty: they are then made
                for records that give events only.
            known: How often the source has each already (fresh pass).
        """
        self._known = known
        for index, record in enumerate(records):
            if type(record) is not dict:
                self.tally.strange("not-an-object")
            else:
                self._record(record, keys[index] if keys else None)

    def _record(self, record: dict[str, Any], key: bytes | None) -> None:
        stamp = record.get("timestamp")
        self.updated = latest(self.updated, stamp)
        self._stamp = bounded(stamp, 64)
        kind = word(record.get("type"))
        payload = record.get("payload")
        if "payload" not in record:
            payload, kind = record, _bare_kind(record)
            if kind == "bare":
                self._stamp = None
        elif type(payload) is not dict:
            self.tally.strange(f"{kind}:malformed")
            return
        assert type(payload) is dict
        if self._replay.drops(kind, payload, stamp):
            self.tally.repeated += 1
            return
        cwd = payload.get("cwd")
        if kind in {"session_meta", "turn_context"} and type(cwd) is str:
            self._found_project(cwd)
        self._follow_turn(kind, payload)
        repeated = (
            self._occurrences is not None
            and key is not None
            and self._occurrences.next(key) <= self._known.get(key, 0)
        )
        before = len(self.events)
        self._copied = False
        if repeated:
            self.tally.repeated += 1
            tally, self.tally, self._mute = self.tally, Tally(), True
            self._dispatch(kind, payload)
            self.tally, self._mute = tally, False
        else:
            self._dispatch(kind, payload)
            # a second copy counts as taken: it may be all that a rewrite leaves
            if len(self.events) > before or self._copied:
                self.keys.append(self.key_of(record) if key is None else key)

    def _dispatch(self, kind: object, payload: dict[str, Any]) -> None:
        if kind in {"response_item", "bare"}:
            codex_items.item(self, payload)
        elif kind == "event_msg":
            codex_events.event(self, payload)
        elif kind == "turn_context":
            self._turn_context(payload)
        elif kind in {"session_meta", "header"}:
            # its instruction file comes again as the first message in the user's place
            self.tally.omit("metadata")
        elif kind == "world_state":
            state = payload.get("state")
            self.once(value_text(state, self.tally) if type(state) is dict else None)
        elif kind == "compacted":
            message = payload.get("message")
            if type(message) is str and message.strip():
                self.emit("context", "context", message)
            if payload.get("replacement_history"):
                self.tally.omit("second_copy")
        elif kind == "inter_agent_communication":
            self.emit("context", "context", value_text(payload, self.tally))
        elif kind in {"state", "token_usage_record", "inter_agent_communication_metadata"}:
            self.tally.omit("metadata")
        else:
            self.tally.strange(str(kind) if kind else "no-type")

    def _turn_context(self, payload: dict[str, Any]) -> None:
        self.once(payload.get("user_instructions"))
        self.once(payload.get("developer_instructions"))
        mode = payload.get("collaboration_mode")
        if type(mode) is dict:
            self.once(mode.get("developer_instructions"))
            settings = mode.get("settings")
            if type(settings) is dict:
                self.once(settings.get("developer_instructions"))
        self.tally.omit("metadata")

    def _follow_turn(self, kind: object, payload: dict[str, Any]) -> None:
        turn = turn_of(kind, payload)
        if turn is None:
            return
        name = digest("turn\0" + turn).hex()
        if name != self._turn_id:
            self._turn_id = name
            self._turn_open = True
            # what was expected of the last turn comes no more
            for copies in (*self._from_items.values(), *self._from_events.values()):
                copies.clear()

    def _found_project(self, cwd: str) -> None:
        if cwd and not self._has_project:
            self.project = cwd[:4096]
            self._has_project = True

    # used by the item and event rules

    def emit(self, role: Role, kind: Kind, body: str, call_id: object = None) -> None:
        """Add an event; recalled text inside it becomes a stub."""
        whole = False
        if kind == "tool_output" and type(call_id) is str:
            whole = self.recalls.take(call_id)
        body = without_recalled(body, self.tally, output=kind == "tool_output", whole=whole)
        if not self._mute:
            event = Event(role, kind, body, self._turn, self._stamp, bounded(call_id))
            self.events.append(event)

    def once(self, text: object) -> None:
        """Context that is repeated in full at every turn: taken once."""
        if type(text) is not str or not text.strip():
            return
        if self._contexts.add(inner_instructions(text)):
            self.emit("context", "context", text)
        else:
            self.copied()

    def told(self, text: str) -> None:
        """Context in a message of its own: taken once for each wording."""
        if not text.strip():
            return
        wrapped = self._contexts.add(inner_instructions(text))
        if self._contexts.add("message\0" + text) or wrapped:
            self.emit("context", "context", text)
        else:
            self.copied()

    def copied(self) -> None:
        """Count a second copy."""
        self.tally.omit("second_copy")
        self._copied = True

    def is_copy(self, kind: str, texts: tuple[str, ...], *, item: bool) -> bool:
        """
        Whether this is the copy of a text taken before; else expect its copy.

        Args:
            kind: `user`, `assistant`, `analysis` or `call`: only alike pair.
            texts: Spellings of the text.
            item: It stands in a `response_item`, not in an event.
        """
        expected = self._from_events if item else self._from_items
        if expected[kind].take(*texts):
            self.copied()
            return True
        (self._from_items if item else self._from_events)[kind].put(*texts)
        return False

    def said(self, text: str) -> None:
        """A text in the user's place: typed words and injected context."""
        cwd = working_directory(text)
        if cwd:
            self._found_project(cwd)
        for part in split_codex(text):
            if not part.typed:
                self.told(part.text)
            elif part.text.strip():
                self._typed(part.text)

    def _typed(self, text: str) -> None:
        if not self._turn_id or self._turn_open or self._turn == 0:
            self._turn += 1
            self._turn_open = False
        for kind in ("assistant", "analysis"):
            self._from_items[kind].clear()
            self._from_events[kind].clear()
        if not self._has_question:
            self.question = text.strip()[:2000]
            self._has_question = True
        self.emit("user", "message", text)


_PAIRED: Final = ("user", "assistant", "analysis", "call")


def _bare_kind(record: dict[str, Any]) -> str:
    if record.get("record_type") == "state":
        return "state"
    if is_header(record):
        return "header"
    if is_bare(record):
        return "bare"
    kind = record.get("type")
    return kind if type(kind) is str and kind else "no-type"
