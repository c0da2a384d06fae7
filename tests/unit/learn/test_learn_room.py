"""The queue's order and the room's behaviour when workers die or results are stale."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from imprintd.clock import ManualClock
from imprintd.errors import VersionReplaced
from imprintd.learn.crew import Worker, WorkerDied, WorkerUnusable
from imprintd.learn.messages import EmbedBatch, Embedded, Owed
from imprintd.learn.ports import Job, Outcome
from imprintd.learn.queue import LearnQueue, Waiting
from imprintd.learn.room import LearnRoom
from imprintd.model.snapshot import Head, Point, SnapshotUpdate


def waiting(path: str, mtime_ns: int = 0, *, asked: bool = False, **job: bool) -> Waiting:
    return Waiting(Job(path, **job), mtime_ns, 100, asked)


def test_newest_first_but_what_a_person_waits_for_before_all() -> None:
    queue = LearnQueue()
    for item in (waiting("old", 1), waiting("new", 3), waiting("asked", 0, asked=True)):
        queue.add(item)

    order = [queue.take(), queue.take(), queue.take(), queue.take()]

    assert [item.job.path if item else None for item in order] == ["asked", "new", "old", None]


def test_a_file_in_work_waits_for_its_end_and_wishes_add_up() -> None:
    queue = LearnQueue()
    queue.add(waiting("a"))
    taken = queue.take()
    assert taken is not None
    queue.add(waiting("a", final=True))
    queue.add(waiting("a", salvage=True))

    busy = queue.take()
    queue.done(taken)
    again = queue.take()

    assert busy is None
    assert again is not None
    assert again.job == Job("a", final=True, salvage=True)
    assert (len(queue), queue.backlog_bytes, queue.is_idle) == (1, 100, False)


class FakeWorker(Worker):
    """Answers from a script: exceptions are raised, everything else returned."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__(("none",), None, {})
        self.answers = answers
        self.asked: list[Any] = []

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    async def ask(self, message: object) -> Any:
        self.asked.append(message)
        name = message.path if isinstance(message, Job) else "embed"
        answer = self.answers[name].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(message) if callable(answer) else answer


class FakeShelf:
    """Remembers what it was given; refuses as often as told."""

    def __init__(self) -> None:
        self.published: list[str] = []
        self.refusals: list[Exception] = []
        self.errors: dict[str, str] = {}
        self.batches: list[EmbedBatch] = []
        self.points = 0

    async def publish(self, updates: Sequence[SnapshotUpdate]) -> list[Head]:
        if self.refusals:
            raise self.refusals.pop(0)
        self.published += [str(update) for update in updates]
        return [f"head of {update}" for update in updates]  # type: ignore[misc]

    async def note_error(self, outcome: Outcome) -> None:
        self.errors[outcome.job.path] = outcome.reason

    async def clear_error(self, path: str) -> None:
        self.errors.pop(path, None)

    async def owed(self, limit: int) -> EmbedBatch | None:
        return self.batches.pop(0) if self.batches else None

    async def keep_points(self, points: Sequence[Point]) -> None:
        self.points += len(points)


def learned(job: Job) -> Outcome:
    return Outcome(job, "learned", update=f"update of {job.path}")  # type: ignore[arg-type]


async def run_room(worker: FakeWorker, shelf: FakeShelf, *paths: str) -> LearnRoom:
    """Run a room until its queue is empty."""
    clock = ManualClock()
    room = LearnRoom(
        worker, shelf, clock, embed_duty=1.0, idle_s=5, on_published=lambda heads: None
    )
    room.add(waiting(path) for path in paths)
    task = asyncio.create_task(room.run())
    for _ in range(200):
        await asyncio.sleep(0)
        if task.done() or (room.queue.is_idle and not shelf.batches):
            break
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return room


def test_a_source_that_ends_the_worker_twice_is_set_aside() -> None:
    worker = FakeWorker({"bad": [WorkerDied("x"), WorkerDied("x")], "good": [learned]})
    shelf = FakeShelf()

    asyncio.run(run_room(worker, shelf, "bad", "good"))

    assert shelf.errors == {"bad": "quarantined"}
    assert shelf.published == ["update of good"]


def test_a_stale_result_is_read_again() -> None:
    worker = FakeWorker({"a": [learned, learned]})
    shelf = FakeShelf()
    shelf.refusals = [VersionReplaced("stale")]

    room = asyncio.run(run_room(worker, shelf, "a"))

    assert shelf.published == ["update of a"]
    assert room.totals.results == {"learned": 1}


def test_one_refused_update_does_not_take_others_with_it() -> None:
    worker = FakeWorker({"a": [learned], "b": [learned]})
    shelf = FakeShelf()
    shelf.refusals = [VersionReplaced("both"), VersionReplaced("first")]
    worker.answers["a"].append(learned)
    worker.answers["b"].append(learned)

    asyncio.run(run_room(worker, shelf, "a", "b"))

    assert sorted(set(shelf.published)) == ["update of a", "update of b"]


def test_a_worker_that_does_not_start_is_no_file_s_fault() -> None:
    worker = FakeWorker({"a": [WorkerUnusable("x")]})
    shelf = FakeShelf()

    with pytest.raises(ExceptionGroup) as failure:
        asyncio.run(run_room(worker, shelf, "a"))

    assert [type(e) for e in failure.value.exceptions] == [WorkerUnusable]
    assert shelf.errors == {}


def test_vectors_are_made_when_nothing_else_is_to_do() -> None:
    point = Point(b"d" * 32, 0, 1, "rules", b"\0" * 768)
    made = Embedded(points=(point,), windows=1, cpu_s=0.0)
    worker = FakeWorker({"a": [learned], "embed": [made, made]})
    shelf = FakeShelf()
    shelf.batches = [EmbedBatch((Owed(b"d" * 32, "text"),), first_only=True)] * 2

    room = asyncio.run(run_room(worker, shelf, "a"))

    assert (shelf.points, room.totals.windows) == (2, 2)
    assert isinstance(worker.asked[0], Job)
