"""
Rooms fail, the daemon goes on: restarts with backoff, and knowing when to stop.

A room is a coroutine that runs for ever. One that raises is started again
after a growing, uneven pause; one that fails too often is parked as degraded
(and tried again much later) or takes the process down, as its policy says.
What ends the process is restarted by the service manager.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from imprintd.clock import Clock
from imprintd.errors import ConfigError, ImprintdError, SchemaTooNew
from imprintd.ops.log import Log, described

RoomState = Literal["starting", "running", "restarting", "degraded", "stopped"]


class Fatal(ImprintdError):
    """The process must end; the service manager starts it anew."""

    code = "fatal"


class GiveUp(ImprintdError):
    """A room says itself that starting it again is no use."""

    code = "gave-up"


@dataclass(frozen=True, slots=True)
class Policy:
    """
    How a room is restarted.

    Attributes:
        backoff_s: First pause; doubles with each failure within the window.
        backoff_s_max: Longest pause.
        restarts_max: So many failures within the window are one too many.
        window_s: Failures older than this are forgiven.
        exhausted: `degraded` parks the room, `fatal` ends the process.
        park_s: A parked room is tried again after this.
        fatal: Exceptions that end the process at once.
    """

    backoff_s: float = 1.0
    backoff_s_max: float = 60.0
    restarts_max: int = 10
    window_s: float = 600.0
    exhausted: Literal["degraded", "fatal"] = "degraded"
    park_s: float = 900.0
    fatal: tuple[type[BaseException], ...] = (Fatal, SchemaTooNew, ConfigError, MemoryError)


@dataclass(slots=True)
class RoomStatus:
    """
    One room in the status.

    Attributes:
        state: What it is doing.
        restarts: How often it was started again since the daemon began.
        failure: What it failed with last, in fields that may be shown.
        beat_at: Monotonic time of its last sign of life.
        since_ms: Wall time of the last change of state.
    """

    state: RoomState = "starting"
    restarts: int = 0
    failure: dict[str, Any] = field(default_factory=dict)
    beat_at: float = 0.0
    since_ms: int = 0


class Supervisor:
    """
    Keeps rooms running and knows how they are.

    Args:
        clock: The time.
        rng: Jitter of the pauses.
        on_change: Called with a room's name after its state changed.
        sleep: How to wait; tests replace it.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        on_change: Callable[[str, RoomStatus], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._on_change = on_change
        self._sleep = sleep
        self._log = Log("supervise")
        self.rooms: dict[str, RoomStatus] = {}

    async def supervise(
        self, name: str, run: Callable[[], Awaitable[None]], policy: Policy | None = None
    ) -> None:
        """
        Run a room until it ends by itself, gives up or is cancelled.

        Args:
            name: In the status; one a room.
            run: Starts the room; called again for each restart.
            policy: None: the default one.

        Raises:
            Fatal: It failed beyond repair; the cause is attached.
            ImprintdError: One that the policy lists as fatal, as it came.
        """
        rules = policy or Policy()
        failures: deque[float] = deque()
        while True:
            self._becomes(name, "running")
            self.beat(name)
            try:
                await run()
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    self._becomes(name, "stopped")
                    raise
                failure: BaseException = error  # cancelled from inside: a failure like others
            except Exception as error:
                failure = error
            else:
                self._becomes(name, "stopped")
                return
            pause_s = self._judge(name, failure, rules, failures)
            if pause_s is None:
                return
            await self._sleep(pause_s)
            self.rooms[name].restarts += 1

    def beat(self, name: str) -> None:
        """A sign of life from a room."""
        self.rooms.setdefault(name, RoomStatus()).beat_at = self._clock.monotonic()

    def is_fresh(self, limits_s: dict[str, float]) -> bool:
        """Whether each of these rooms runs and has beaten within its limit."""
        now = self._clock.monotonic()
        return all(
            name in self.rooms
            and self.rooms[name].state == "running"
            and now - self.rooms[name].beat_at <= limit_s
            for name, limit_s in limits_s.items()
        )

    def as_json(self) -> dict[str, dict[str, Any]]:
        """All rooms, as they appear in the status."""
        now = self._clock.monotonic()
        return {
            name: {
                "state": room.state,
                "restarts": room.restarts,
                "failure": room.failure,
                "beat_age_s": round(max(0.0, now - room.beat_at), 3),
                "since_ms": room.since_ms,
            }
            for name, room in tuple(self.rooms.items())
        }

    def _judge(
        self, name: str, failure: BaseException, rules: Policy, failures: deque[float]
    ) -> float | None:
        """How long to wait before the next start; None: there is none."""
        room = self.rooms[name]
        leaves = list(_leaves(failure))
        room.failure = dict(described(leaves[0]))
        for leaf in leaves:
            if isinstance(leaf, rules.fatal):
                self._becomes(name, "stopped")
                raise leaf
        if any(isinstance(leaf, GiveUp) for leaf in leaves):
            self._log.failure("room-gave-up", leaves[0], room=name)
            self._becomes(name, "degraded")
            return None
        now = self._clock.monotonic()
        failures.append(now)
        while failures and now - failures[0] > rules.window_s:
            failures.popleft()
        self._log.failure("room-failed", leaves[0], room=name)
        if len(failures) > rules.restarts_max:
            if rules.exhausted == "fatal":
                self._becomes(name, "stopped")
                raise Fatal(f"the room {name} failed {len(failures)} times in a row") from failure
            failures.clear()
            self._becomes(name, "degraded")
            return rules.park_s
        self._becomes(name, "restarting")
        pause_s = min(rules.backoff_s * 2.0 ** (len(failures) - 1), rules.backoff_s_max)
        return pause_s * self._rng.uniform(0.75, 1.25)

    def _becomes(self, name: str, state: RoomState) -> None:
        room = self.rooms.setdefault(name, RoomStatus())
        if room.state != state:
            room.state, room.since_ms = state, self._clock.wall_ms()
            if self._on_change is not None:
                self._on_change(name, room)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
