"""
One thing that was said or done in a conversation.

A reader turns a client's records into events; the text room writes them down
as canonical text and reads them back unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Role = Literal["user", "assistant", "system", "context", "tool", "speaker"]
Kind = Literal["message", "analysis", "tool_call", "tool_output", "context", "attachment", "speech"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Event:
    """
    One event of a conversation.

    Attributes:
        role: Who speaks. What a client injects has role `context`, not `user`.
        kind: What it is.
        body: The readable text, exactly as the client held it (decoded, not
            JSON-escaped). May hold anything, lone surrogates and NUL included.
        turn: 0 before the first user message, then counting up.
        timestamp: The client's own words (ISO 8601 as written), never parsed.
        call_id: Joins a tool's call with its output.
        language: BCP 47 tag, for speech.
        audio_start: Seconds from the start of the recording, for speech.
        audio_end: Likewise.
    """

    role: Role
    kind: Kind
    body: str
    turn: int = 0
    timestamp: str | None = None
    call_id: str | None = None
    language: str | None = None
    audio_start: float | None = None
    audio_end: float | None = None


@dataclass(frozen=True, slots=True)
class EventSpan:
    """
    Where an event lies in the canonical text: code points, half open.

    `start` is the first character of the header line, `end` is one past the
    newline that closes the body. Inside a chunk the span is clipped to it.
    """

    start: int
    end: int
    role: Role
    kind: Kind
    turn: int
    timestamp: str | None
