"""
Time as an argument.

Pure rooms never ask what time it is; whoever drives them passes it in.
`SystemClock` is the only place that reads the machine's clocks, `ManualClock`
is for tests and simulations.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the driving code needs to know about time."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC. May jump either way."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards; stops while the machine sleeps."""
        ...

    def boottime(self) -> float:
        """Seconds that never go backwards and go on while the machine sleeps."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._elapsed = 0.0

    def advance(self, seconds: float) -> None:
        """Move wall and monotonic time forward together."""
        self._elapsed += seconds
        self._wall_ms += round(seconds * 1000)

    def step_wall(self, ms: int) -> None:
        """Set the wall clock forward or back, as an NTP step does."""
        self._wall_ms += ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._elapsed

    def boottime(self) -> float:
        return self._elapsed
