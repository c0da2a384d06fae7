"""
The single writer: one thread, one connection, one transaction a task.

Tasks arrive through a bounded queue. A caller on a thread of its own waits
when it is full; asynchronous code must not wait, so it is told instead.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from imprintd.errors import ResourceError
from imprintd.store.connection import Connection, translated, writing

T = TypeVar("T")

QUEUE_MAX: Final = 256
"""Tasks that may wait; each holds at most one publication."""

_Task = tuple[Callable[[Connection], Any], "Future[Any]", bool]


class Writer:
    """
    Owns the read-write connection from `start` to `close`.

    Args:
        connection: Open and migrated; belongs to the writer from here on.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(QUEUE_MAX)
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def run(self, task: Callable[[Connection], T], *, transaction: bool = True) -> T:
        """
        Do a task and wait until it is durable.

        Raises:
            ImprintdError: Whatever the task raised; nothing of it remains.
        """
        return self._put(task, transaction=transaction, wait=True).result()

    def submit(self, task: Callable[[Connection], T]) -> Future[T]:
        """
        Do a task later; the future is done when it is durable.

        Raises:
            ResourceError: Too many tasks wait already.
        """
        return self._put(task, transaction=True, wait=False)

    def close(self, last: Callable[[Connection], None]) -> None:
        """Finish every task that waits, do a last one and close the connection."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._tasks.put(None)
        self._thread.join()
        try:
            with writing(self._connection):
                last(self._connection)
        finally:
            with translated():
                self._connection.close()

    @property
    def waiting(self) -> int:
        """Tasks in the queue."""
        return self._tasks.qsize()

    def _put(self, task: Callable[[Connection], T], *, transaction: bool, wait: bool) -> Future[T]:
        future: Future[T] = Future()
        if not self._room.acquire(blocking=wait):
            raise ResourceError(
                f"{QUEUE_MAX} changes wait to be written", remedy="try again in a moment"
            )
        # nobody waits while holding this lock; it keeps tasks from following the last one
        with self._closing:
            if self._closed:
                self._room.release()
                raise ResourceError("the store is closed")
            self._tasks.put((task, future, transaction))
        return future

    def _run(self) -> None:
        while (item := self._tasks.get()) is not None:
            task, future, transaction = item
            self._room.release()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if transaction:
                    with writing(self._connection):
                        result = task(self._connection)
                else:
                    with translated():
                        result = task(self._connection)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            # the next wait must not keep a publication's blocks in memory
            del item, task, future
