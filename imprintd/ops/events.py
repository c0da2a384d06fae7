"""
The event stream's memory: a ring whose ids show what was lost.

Ids count up by one without a gap. Who reads from an id and gets a larger one
than the next has lost what lies between (the ring is bounded); who sees another
`life` knows that the daemon was started anew and counts from one again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from imprintd.clock import Clock

EVENTS_MAX: Final = 1024
"""Events kept for late readers."""


@dataclass(frozen=True, slots=True)
class OpsEvent:
    """
    Something that happened in the daemon; never holds transcript text.

    Attributes:
        id: Counts up by one.
        at_ms: Wall time.
        kind: A stable word, e.g. `source-learned`.
        data: Plain JSON values.
    """

    id: int
    at_ms: int
    kind: str
    data: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """As it appears in the stream."""
        return {"id": self.id, "at_ms": self.at_ms, "event": self.kind, "data": dict(self.data)}


class EventRing:
    """The last events, for any number of readers; belongs to one event loop."""

    def __init__(self, clock: Clock, *, life: str, events_max: int = EVENTS_MAX) -> None:
        self.life = life
        self._clock = clock
        self._events: deque[OpsEvent] = deque(maxlen=events_max)
        self._last = 0
        self._news = asyncio.Event()

    @property
    def last_id(self) -> int:
        """Id of the latest event; 0: there was none."""
        return self._last

    def publish(self, kind: str, **data: Any) -> int:
        """Add an event; returns its id."""
        self._last += 1
        self._events.append(OpsEvent(self._last, self._clock.wall_ms(), kind, data))
        self._news.set()
        self._news = asyncio.Event()
        return self._last

    def since(self, after: int) -> list[OpsEvent]:
        """Events with larger ids, oldest first, as far as they are kept."""
        return [event for event in self._events if event.id > after]

    async def follow(self, after: int, *, idle_s: float = 15.0) -> AsyncIterator[dict[str, Any]]:
        """
        Events after an id, then new ones as they come, without end.

        The first item names the life and the newest id. After `idle_s`
        without news a `beat` comes, so that a dead reader is noticed.
        """
        if after > self._last:  # an id of an earlier life
            after = 0
        yield {"life": self.life, "last": self._last}
        while True:
            news = self._news
            for event in self.since(after):
                after = event.id
                yield event.as_json()
            if self._last > after:
                continue
            # not wait_for: until Python 3.12 it can swallow a cancellation
            try:
                async with asyncio.timeout(idle_s):
                    await news.wait()
            except TimeoutError:
                yield {"beat": self._clock.wall_ms(), "last": self._last}
