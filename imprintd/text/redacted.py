"""
Events with every part that reaches the text redacted.

Which parts those are is known here, beside the writing of the text: the body
and each header field that is free text. Nothing is written before it went
through this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from imprintd.errors import IntegrityError
from imprintd.model.event import Event

_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)
"""Times that need no look from the redactor: there is no room in them for a secret."""


class Redacted(Protocol):
    """A redacted text; the pipeline needs no more of it."""

    @property
    def text(self) -> str: ...


class RedactPort(Protocol):
    """What the pipeline needs from redaction."""

    @property
    def profile(self) -> str:
        """Version word of the rules."""
        ...

    def redact_many(self, texts: Sequence[str], /) -> Sequence[Redacted]:
        """One result for each text, in order; redacting a result changes nothing."""
        ...


def redacted_events(events: Sequence[Event], redactor: RedactPort) -> list[Event]:
    """
    The events as they may be written, redacted in one batch.

    Raises:
        IntegrityError: The redactor gave another number of texts than it got.
    """
    values = dict.fromkeys(
        value
        for e in events
        for value in (e.timestamp, e.call_id, e.language)
        if value and not _ISO.fullmatch(value)
    )
    given = [e.body for e in events]
    given += values
    results = redactor.redact_many(given)
    if len(results) != len(given):
        raise IntegrityError("redaction gave another number of texts than it was given")
    changed = zip(values, results[len(events) :], strict=True)
    clean: dict[str | None, str] = {v: r.text for v, r in changed if r.text != v}

    redacted = []
    for event, result in zip(events, results[: len(events)], strict=True):
        if result.text != event.body or not clean.keys().isdisjoint(
            (event.timestamp, event.call_id, event.language)
        ):
            event = replace(  # noqa: PLW2901 - the redacted event takes its place
                event,
                body=result.text,
                timestamp=clean.get(event.timestamp, event.timestamp),
                call_id=clean.get(event.call_id, event.call_id),
                language=clean.get(event.language, event.language),
            )
        redacted.append(event)
    return redacted
