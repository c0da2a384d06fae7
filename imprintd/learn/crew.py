"""
The worker process, seen from the daemon: started when there is work, spoken
to over its pipes, started again when it dies, let go when it is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from imprintd.errors import ImprintdError
from imprintd.learn.messages import HEADER, MESSAGE_BYTES_MAX, decode, encode

STOP_GRACE_S: Final = 5.0
STREAM_BYTES: Final = 1024**2


class WorkerDied(ImprintdError):
    """The worker process ended while it was working on something."""

    code = "worker-died"
    retryable = True


class WorkerUnusable(ImprintdError):
    """The worker process does not even start: no file is to blame."""

    code = "worker-unusable"
    retryable = True


class Worker:
    """
    One worker process; asks are answered one at a time, in order.

    Args:
        command: How to start it.
        setup: Its first message; answered with `ready`.
        environ: Its whole environment.
    """

    def __init__(self, command: Sequence[str], setup: object, environ: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._setup = setup
        self._environ = dict(environ)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._greeted = False
        self.started = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Start it unless it runs; a hint that work is coming calls this early."""
        if self.pid is not None:
            return
        self.started += 1
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._environ,
            start_new_session=True,
            limit=STREAM_BYTES,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(encode(self._setup))
        self._greeted = False

    async def ask(self, message: object) -> Any:
        """
        Send one message and wait for its answer.

        Raises:
            WorkerDied: The process ended before it answered.
            WorkerUnusable: It ended before it was ready for anything.
        """
        async with self._turn:
            await self.start()
            process = self._process
            assert process is not None
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                if not self._greeted:
                    await _receive(process.stdout)
                    self._greeted = True
                process.stdin.write(encode(message))
                await process.stdin.drain()
                return await _receive(process.stdout)
            except (asyncio.IncompleteReadError, ConnectionError):
                code = await process.wait()
                kind = WorkerDied if self._greeted else WorkerUnusable
                raise kind(f"the worker process ended with {code}") from None
            except asyncio.CancelledError:
                # its answer would be taken for the next one's
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                raise

    async def stop(self) -> None:
        """Let it end: close its pipe, and kill it if it does not go."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_GRACE_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _receive(stream: asyncio.StreamReader) -> Any:
    (length,) = HEADER.unpack(await stream.readexactly(HEADER.size))
    if length > MESSAGE_BYTES_MAX:
        raise WorkerDied("the worker answered more than it may")
    return decode(await stream.readexactly(length))
