"""
Canonical text: events written down, and read back unchanged.

An event is a header line, its body and a newline:

    «assistant message · turn 3 · 2026-11-08T10:00:00Z · 812 chars»
    …812 characters of body…

The header carries the length of the body, so a body may hold anything, lines
that look like headers included. Optional fields stand in a fixed order; a
value that is not plainly one word is quoted, with every unusual character as
`\\hex;`. There is one way to write an event: what reads back differently is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from imprintd.errors import IntegrityError
from imprintd.model.event import KINDS, ROLES, Event, EventSpan, Kind, Role

MARK: Final = "«"
"""First character of every header; rare at the start of a line of prose."""

TURN_MAX: Final = 10**15
"""Turns are counted, so a larger number is a mistake and not a conversation."""

_OPENINGS: Final = {(role, kind): f"«{role} {kind} · turn " for role in ROLES for kind in KINDS}
_WORD: Final = re.compile(r"[0-9A-Za-z_.:+/-]+")
_UNUSUAL: Final = re.compile(r"[^ !#-\[\]-~]")
_ESCAPE: Final = re.compile(r"\\([0-9a-f]{1,6});")

_VALUE: Final = r'[0-9A-Za-z_.:+/-]+|"[ !#-~]*"'
_NUMBER: Final = r"-?(?:[0-9][0-9.e+-]{0,40}?|inf)|nan"
_HEADER: Final = re.compile(
    rf"«({'|'.join(ROLES)}) ({'|'.join(KINDS)}) · turn ([0-9]{{1,16}})"
    rf"(?: · ({_VALUE}))?"
    rf"(?: · call ({_VALUE}))?"
    rf"(?: · language ({_VALUE}))?"
    rf"(?: · audio ({_NUMBER})?\.\.({_NUMBER})?)?"
    r" · ([0-9]{1,12}) chars»\n"
)


@dataclass(frozen=True, slots=True)
class Header:
    """
    A header line as read: the event without its body.

    Attributes:
        event: The event with an empty body.
        length: Characters of the line without its newline.
        body_chars: Length of the body that follows.
    """

    event: Event
    length: int
    body_chars: int

    @property
    def span_chars(self) -> int:
        """Characters of the whole event: header, newline, body, newline."""
        return self.length + self.body_chars + 2


def render(event: Event) -> str:
    """
    Write one event down.

    Raises:
        IntegrityError: Role, kind or turn is none that an event can have.
    """
    return f"{_header(event, len(event.body))}\n{event.body}\n"


def render_all(events: Iterable[Event], start: int = 0) -> tuple[str, tuple[EventSpan, ...]]:
    """
    Write events one after the other.

    Args:
        events: In order.
        start: Position of the first header in the whole text.

    Returns:
        The text and one span for each event, counted from `start`.

    Raises:
        IntegrityError: As `render`.
    """
    parts: list[str] = []
    spans: list[EventSpan] = []
    at = start
    for event in events:
        body = event.body
        header = _header(event, len(body))
        end = at + len(header) + len(body) + 2
        parts += (header, "\n", body, "\n")
        spans.append(EventSpan(at, end, event.role, event.kind, event.turn, event.timestamp))
        at = end
    return "".join(parts), tuple(spans)


def parse(text: str) -> list[Event]:
    """
    Read canonical text back: the exact inverse of `render_all`.

    Raises:
        IntegrityError: The text is not what `render_all` writes.
    """
    return [event for event, _ in parse_spans(text)]


def parse_spans(text: str) -> list[tuple[Event, EventSpan]]:
    """
    Read canonical text back, each event with its place in `text`.

    Raises:
        IntegrityError: The text is not what `render_all` writes.
    """
    found: list[tuple[Event, EventSpan]] = []
    at = 0
    while at < len(text):
        read = _read(text, at)
        if read is None:
            raise IntegrityError(f"no event header at character {at} of the canonical text")
        event, body_start, chars = read
        end = body_start + chars + 1
        if text[end - 1 : end] != "\n":
            raise IntegrityError(f"the event at character {at} does not end where its header says")
        whole = Event(
            event.role,
            event.kind,
            text[body_start : end - 1],
            event.turn,
            event.timestamp,
            event.call_id,
            event.language,
            event.audio_start,
            event.audio_end,
        )
        span = EventSpan(at, end, event.role, event.kind, event.turn, event.timestamp)
        found.append((whole, span))
        at = end
    return found


def header_at(text: str, position: int) -> Header | None:
    """
    The header that begins exactly at `position`, or None.

    A body can hold a line that looks like a header, so only a position that is
    known to begin an event (the start of a text, the end of a span) proves one.
    """
    read = _read(text, position)
    if read is None:
        return None
    event, body_start, chars = read
    return Header(event, body_start - position - 1, chars)


def _read(text: str, position: int) -> tuple[Event, int, int] | None:
    """The event without its body, where the body starts and how long it is."""
    match = _HEADER.match(text, position)
    if match is None:
        return None
    role, kind, turn, timestamp, call, language, audio_start, audio_end, chars = match.groups()
    try:
        event = Event(
            cast("Role", role),
            cast("Kind", kind),
            "",
            int(turn),
            _value(timestamp),
            _value(call),
            _value(language),
            None if audio_start is None else float(audio_start),
            None if audio_end is None else float(audio_end),
        )
        written = _header(event, int(chars))
    except (ValueError, IntegrityError):
        return None
    # one spelling for one event: leading zeros or needless quotes are no header
    if match[0][:-1] != written:
        return None
    return event, match.end(), int(chars)


def _header(event: Event, chars: int) -> str:
    opening = _OPENINGS.get((event.role, event.kind))
    if opening is None:
        raise IntegrityError("an event has a role or kind that is not in the model")
    if not 0 <= event.turn <= TURN_MAX:
        raise IntegrityError("an event has an impossible turn number")
    line = f"{opening}{event.turn}"
    if event.timestamp is not None:
        line += f" · {_word(event.timestamp)}"
    if event.call_id is not None:
        line += f" · call {_word(event.call_id)}"
    if event.language is not None:
        line += f" · language {_word(event.language)}"
    if event.audio_start is not None or event.audio_end is not None:
        line += f" · audio {_number(event.audio_start)}..{_number(event.audio_end)}"
    return f"{line} · {chars} chars»"


def _word(value: str) -> str:
    if _WORD.fullmatch(value):
        return value
    return '"' + _UNUSUAL.sub(lambda m: f"\\{ord(m[0]):x};", value) + '"'


def _value(written: str | None) -> str | None:
    if written is None or not written.startswith('"'):
        return written
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), written[1:-1])


def _number(seconds: float | None) -> str:
    return "" if seconds is None else repr(float(seconds))
