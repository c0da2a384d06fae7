"""
The daemon's socket as a table of routes: paths to questions and commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final, Protocol

from imprintd.errors import UsageError
from imprintd.ops.events import EventRing
from imprintd.ops.http import Request, Response, Route, json_response, ndjson
from imprintd.ops.metrics import metrics_response
from imprintd.recall.memory import Memory
from imprintd.recall.operations import OPERATIONS, answer

Document = dict[str, Any]
LEARN_BODY_BYTES_MAX: Final = 1024 * 1024


class Daemon(Protocol):
    """What the routes ask of the running daemon."""

    def health(self) -> Document: ...
    def ready(self) -> Document: ...
    def status(self) -> Document: ...
    def rescan(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def learn(self, wish: Mapping[str, Any]) -> AsyncIterator[Document]: ...
    def verify(self, wish: Mapping[str, Any]) -> AsyncIterator[Document]: ...


class Api:
    """
    Routes of one daemon.

    Args:
        daemon: Commands and status.
        memory: Questions; asked in `threads`, never on the loop.
        events: The event stream.
        threads: Where questions are answered.
        workspace: Where questions look unless they say so.
    """

    def __init__(
        self,
        daemon: Daemon,
        memory: Memory,
        events: EventRing,
        threads: Executor,
        workspace: str,
    ) -> None:
        self._daemon = daemon
        self._memory = memory
        self._events = events
        self._threads = threads
        self._workspace = workspace

    def routes(self) -> list[Route]:
        """The whole table."""
        return [
            Route("GET", "/v1/health", self._now(self._daemon.health)),
            Route("GET", "/v1/ready", self._in_thread(self._daemon.ready)),
            Route("GET", "/v1/status", self._in_thread(self._daemon.status)),
            Route("GET", "/v1/events", self._follow),
            Route("GET", "/metrics", self._metrics),
            *(Route("GET", f"/v1/{name}", self._question(name)) for name in OPERATIONS),
            Route("GET", "/api/sources/read", self._question("source-blocks")),
            Route("POST", "/v1/rescan", self._command(self._daemon.rescan)),
            Route("POST", "/v1/pause", self._command(self._daemon.pause)),
            Route("POST", "/v1/resume", self._command(self._daemon.resume)),
            Route("POST", "/v1/learn", self._learn, LEARN_BODY_BYTES_MAX),
            Route("POST", "/v1/verify", self._verify),
        ]

    def _now(self, ask: Callable[[], Document]) -> Callable[[Request], Awaitable[Response]]:
        async def handler(_request: Request) -> Response:
            return json_response(ask())

        return handler

    def _in_thread(self, ask: Callable[[], Document]) -> Callable[[Request], Awaitable[Response]]:
        async def handler(_request: Request) -> Response:
            loop = asyncio.get_running_loop()
            return json_response(await loop.run_in_executor(self._threads, ask))

        return handler

    def _question(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        def ask(params: Mapping[str, str]) -> Document:
            return answer(self._memory, name, params, workspace=self._workspace)

        async def handler(request: Request) -> Response:
            loop = asyncio.get_running_loop()
            document = await loop.run_in_executor(self._threads, ask, request.params)
            return json_response(document)

        return handler

    def _command(self, do: Callable[[], None]) -> Callable[[Request], Awaitable[Response]]:
        async def handler(_request: Request) -> Response:
            do()
            return json_response({"done": True})

        return handler

    async def _metrics(self, _request: Request) -> Response:
        loop = asyncio.get_running_loop()
        return metrics_response(await loop.run_in_executor(self._threads, self._daemon.status))

    async def _follow(self, request: Request) -> Response:
        since = request.whole("since", self._events.last_id, 0, 1 << 62)
        return ndjson(self._events.follow(since))

    async def _learn(self, request: Request) -> Response:
        wish = request.json()
        paths = wish.get("paths")
        if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
            raise UsageError("paths must be a list of paths")
        if not all(p.startswith("/") for p in paths):
            raise UsageError("paths must be absolute")
        if wish.get("embed", "some") not in {"some", "all", "none"}:
            raise UsageError("embed is one of some, all, none")
        return ndjson(
            self._daemon.learn(
                {
                    "paths": paths,
                    "salvage": wish.get("salvage") is True,
                    "force": wish.get("force") is True,
                    "embed": wish.get("embed", "some"),
                    "workspace": str(wish.get("workspace") or self._workspace),
                }
            )
        )

    async def _verify(self, request: Request) -> Response:
        wish = request.json()
        return ndjson(
            self._daemon.verify(
                {
                    "workspace": wish.get("workspace"),
                    "source": wish.get("source"),
                    "project": wish.get("project"),
                    "repair": wish.get("repair") is True,
                }
            )
        )
