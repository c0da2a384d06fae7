"""
The status socket's server: HTTP/1.1 and JSON for this user alone.

Bounded in every direction: connections, sizes, and the time a request may
take to arrive or a reader to take its answer. Idle connections make room for
new ones. Handlers run on the daemon's loop and must not block it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h11

from imprintd.ops import listen
from imprintd.ops.connection import (
    READ_BYTES,
    Peer,
    refuse,
    send_head_only,
    send_stream,
    send_whole,
)
from imprintd.ops.http import (
    REQUEST_BYTES_MAX,
    BadRequest,
    Request,
    Route,
    error_response,
    problem,
    request_of,
)
from imprintd.ops.lock import DataLock

HOSTS: Final = frozenset({"imprintd", "localhost", "127.0.0.1", "[::1]", "", "unix"})
"""What `curl --unix-socket S http://NAME/...` may call us."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    What one client, or all of them, may take.

    Attributes:
        connections_max: Open at once; idle ones make room.
        request_s: From the first byte of a request to its last.
        idle_s: Between two requests.
        write_s: For a client to take a piece of an answer.
    """

    connections_max: int = 32
    request_s: float = 10.0
    idle_s: float = 60.0
    write_s: float = 30.0


@dataclass(slots=True)
class Counts:
    """What has come in since the start."""

    requests: int = 0
    refused_peers: int = 0
    refused_full: int = 0
    bad_requests: int = 0
    evicted: int = 0


class OpsServer:
    """
    Serves a route table on a Unix socket.

    Args:
        path: Where; see `listen.bind` for what is refused.
        routes: One table; a path may have several methods.
        lock: The data directory's lock, held.
        bounds: Limits.
        hosts: Names that the Host header may carry.
    """

    def __init__(
        self,
        path: Path,
        routes: Iterable[Route],
        *,
        lock: DataLock,
        bounds: Bounds | None = None,
        hosts: frozenset[str] = HOSTS,
    ) -> None:
        self.path = path
        self.counts = Counts()
        self._routes: dict[tuple[str, str], Route] = {
            (route.method, route.path): route for route in routes
        }
        self._paths = {path for _, path in self._routes}
        self._lock = lock
        self._bounds = bounds or Bounds()
        self._hosts = hosts
        self._own_uid = os.geteuid()
        self._peers: set[Peer] = set()
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._peers)

    async def start(self) -> None:
        """
        Bind and serve.

        Raises:
            ConfigError: The socket cannot be there.
        """
        listening = listen.bind(self.path, self._lock)
        self._identity = listen.socket_identity(self.path)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=listening, limit=READ_BYTES
        )

    async def close(self, grace_s: float = 2.0) -> None:
        """Accept nothing more, let answers under way finish, remove the socket."""
        if self._server is None:
            return
        self._server.close()
        listen.remove_own(self.path, self._identity)
        for peer in tuple(self._peers):
            if peer.idle_since is not None and peer.task is not None:
                peer.task.cancel()
        tasks = {peer.task for peer in self._peers if peer.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, self._bounds.write_s)
        connection: socket.socket = writer.get_extra_info("socket")
        try:
            if not listen.is_allowed(listen.peer_uid(connection), self._own_uid):
                self.counts.refused_peers += 1
                return
            if not self._admit(peer):
                self.counts.refused_full += 1
                await refuse(peer, problem(503, "resource", "too many connections"))
                return
            await self._converse(peer)
        except (OSError, TimeoutError, h11.ProtocolError):
            writer.transport.abort()  # it went away or stalled: nothing to tell it
        except asyncio.CancelledError:
            # ours: making room or closing down. Swallowed on purpose, or
            # asyncio.streams would log a traceback for each
            writer.transport.abort()
        finally:
            self._peers.discard(peer)
            writer.close()

    def _admit(self, peer: Peer) -> bool:
        if len(self._peers) >= self._bounds.connections_max:
            idle = [other for other in self._peers if other.idle_since is not None]
            if not idle:
                return False
            oldest = min(idle, key=lambda other: other.idle_since or 0.0)
            self._peers.discard(oldest)
            self.counts.evicted += 1
            if oldest.task is not None:
                oldest.task.cancel()
        self._peers.add(peer)
        return True

    async def _converse(self, peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not peer.http.trailing_data[0]:
                peer.idle_since = loop.time()
                async with asyncio.timeout(self._bounds.idle_s):
                    if not await peer.receive():
                        return
                peer.idle_since = None
            try:
                async with asyncio.timeout(self._bounds.request_s):
                    request, route = await self._request(peer)
            except BadRequest as bad:
                self.counts.bad_requests += 1
                await refuse(peer, problem(bad.status, "usage", bad.message))
                return
            except h11.RemoteProtocolError as bad:
                self.counts.bad_requests += 1
                # h11's words can quote the request; ours do not
                await refuse(
                    peer,
                    problem(bad.error_status_hint, "usage", "this is no HTTP request"),
                )
                return
            except TimeoutError:
                self.counts.bad_requests += 1
                await refuse(peer, problem(408, "usage", "the request took too long to arrive"))
                return
            if request is None:
                return
            self.counts.requests += 1
            await self._answer(peer, request, route)
            if peer.http.our_state is not h11.DONE or peer.http.their_state is not h11.DONE:
                return
            peer.http.start_next_cycle()

    async def _request(self, peer: Peer) -> tuple[Request | None, Route | None]:
        request: Request | None = None
        route: Route | None = None
        body = bytearray()
        while True:
            event = peer.http.next_event()
            if event is h11.NEED_DATA:
                if peer.http.they_are_waiting_for_100_continue:
                    await peer.send(h11.InformationalResponse(status_code=100, headers=[]))
                await peer.receive()
            elif isinstance(event, h11.Request):
                request = request_of(
                    event.method, event.target, list(event.headers), hosts=self._hosts
                )
                method = "GET" if request.method == "HEAD" else request.method
                route = self._routes.get((method, request.path))
                limit = route.body_bytes_max if route else REQUEST_BYTES_MAX
                declared = request.headers.get("content-length", "0")
                if int(declared) > limit:  # h11 has checked that it is a number
                    raise BadRequest(413, f"a body here may have {limit} bytes")
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > limit:
                    raise BadRequest(413, f"a body here may have {limit} bytes")
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                whole = Request(
                    request.method, request.path, request.params, request.headers, bytes(body)
                )
                return whole, route
            else:  # closed, or paused by something we do not serve (upgrades)
                return None, None

    async def _answer(self, peer: Peer, request: Request, route: Route | None) -> None:
        if route is None:
            if request.path in self._paths:
                response = problem(405, "usage", f"{request.path} is not served this way")
            else:
                response = problem(404, "not-known", f"there is nothing at {request.path!r}")
        else:
            try:
                response = await route.handler(request)
            except Exception as error:
                response = error_response(error)
        if request.method == "HEAD":
            await send_head_only(peer, response)
        elif response.stream is None:
            await send_whole(peer, response)
        else:
            await send_stream(peer, response)
