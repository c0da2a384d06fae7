"""
Supervision: pauses, exhaustion, fatal errors, cancellation from both sides.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from imprintd.clock import ManualClock
from imprintd.errors import SchemaTooNew
from imprintd.ops.supervise import Fatal, GiveUp, Policy, Supervisor


class Bench:
    """A supervisor whose pauses take no time but are written down."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pauses: list[float] = []
        self.states: list[str] = []
        self.supervisor = Supervisor(
            self.clock,
            random.Random(1),
            on_change=lambda _, room: self.states.append(room.state),
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    def run(self, room: Callable[[], Awaitable[None]], policy: Policy | None = None) -> None:
        asyncio.run(self.supervisor.supervise("room", room, policy))


def _failing(*errors: BaseException | None) -> Callable[[], Awaitable[None]]:
    """A room that ends each time as told."""
    turns = iter(errors)

    async def run() -> None:
        error = next(turns)
        if error is not None:
            raise error

    return run


def test_pauses_double_with_jitter_up_to_a_cap() -> None:
    bench = Bench()
    bench.run(_failing(*[OSError(5, "x")] * 8, None), Policy(backoff_s_max=20))
    for pause, nominal in zip(bench.pauses, [1, 2, 4, 8, 16, 20, 20, 20], strict=True):
        assert 0.75 * nominal <= pause <= 1.25 * nominal
    assert len(set(bench.pauses)) == 8
    room = bench.supervisor.rooms["room"]
    assert (room.state, room.restarts) == ("stopped", 8)
    assert {**room.failure, "at": ""} == {"type": "OSError", "errno": "EIO", "at": ""}


def test_old_failures_are_forgiven() -> None:
    bench = Bench()

    async def run() -> None:
        bench.clock.advance(700)
        if len(bench.pauses) < 50:
            raise KeyError

    bench.run(run)
    assert all(0.75 <= pause <= 1.25 for pause in bench.pauses)
    assert len(bench.pauses) == 50


def test_too_many_failures_park_the_room() -> None:
    bench = Bench()
    bench.run(_failing(*[KeyError()] * 4, None), Policy(restarts_max=3, park_s=900))
    assert bench.pauses[-1] == 900
    assert bench.states == [
        *(["running", "restarting"] * 3),
        "running",
        "degraded",
        "running",
        "stopped",
    ]


def test_too_many_failures_of_a_vital_room_are_fatal() -> None:
    bench = Bench()
    with pytest.raises(Fatal, match="4 times") as fatal:
        bench.run(_failing(*[KeyError()] * 4), Policy(restarts_max=3, exhausted="fatal"))
    assert isinstance(fatal.value.__cause__, KeyError)


def test_fatal_errors_go_up_even_from_a_group() -> None:
    bench = Bench()
    with pytest.raises(SchemaTooNew):
        bench.run(_failing(BaseExceptionGroup("x", [KeyError(), SchemaTooNew("newer")])))
    assert bench.pauses == []
    assert bench.states == ["running", "stopped"]


def test_a_room_may_give_up() -> None:
    bench = Bench()
    bench.run(_failing(GiveUp("no such device")))
    assert bench.supervisor.as_json()["room"]["state"] == "degraded"
    assert bench.supervisor.rooms["room"].failure == {
        "code": "gave-up",
        "message": "no such device",
    }
    assert bench.pauses == []


def test_cancelling_the_supervisor_stops_the_room() -> None:
    bench = Bench()

    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(bench.supervisor.supervise("room", forever))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert bench.states == ["running", "stopped"]


def test_a_cancellation_from_inside_is_a_failure() -> None:
    bench = Bench()
    bench.run(_failing(asyncio.CancelledError(), None))
    assert bench.supervisor.rooms["room"].restarts == 1


def test_freshness_needs_a_running_room_and_a_recent_beat() -> None:
    bench = Bench()
    answers: list[bool] = []

    async def run() -> None:
        fresh = bench.supervisor.is_fresh
        answers.append(fresh({"room": 10}))
        bench.clock.advance(11)
        answers.append(fresh({"room": 10}))
        bench.supervisor.beat("room")
        answers.append(fresh({"room": 10}))
        answers.append(fresh({"room": 10, "other": 10}))

    bench.run(run)
    answers.append(bench.supervisor.is_fresh({"room": 10}))
    assert answers == [True, False, True, False, False]
