"""
The status socket with real sockets: honest clients, rude ones and dead ones.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from imprintd.clock import ManualClock
from imprintd.errors import ConfigError, DamagedLine, NoDaemon, NotKnown, UsageError
from imprintd.ops.client import Client
from imprintd.ops.events import EventRing
from imprintd.ops.http import Request, Response, Route, json_response, ndjson
from imprintd.ops.lock import DataLock
from imprintd.ops.server import Bounds, OpsServer

Scenario = Callable[[OpsServer], Awaitable[None]]


@pytest.fixture
def home() -> Iterator[Path]:
    # pytest's own folders make paths too long for a socket
    with tempfile.TemporaryDirectory(prefix="imp") as name:
        yield Path(name)


async def _hello(request: Request) -> Response:
    return json_response({"q": request.text("q", "none"), "n": request.whole("n", 1, 0, 9)})


async def _unknown(_: Request) -> Response:
    raise NotKnown("no such source", remedy="imprintd sources lists them")


async def _damaged(_: Request) -> Response:
    raise DamagedLine("line 7 is not JSON", reason="damaged-line", line=7)


async def _broken(_: Request) -> Response:
    raise ValueError("secret text of a transcript")


async def _echo(request: Request) -> Response:
    return json_response(request.json())


async def _count(_: Request) -> Response:
    async def numbers() -> AsyncIterator[Any]:
        for number in range(3):
            yield {"n": number}

    return ndjson(numbers())


async def _fails_amid(_: Request) -> Response:
    async def numbers() -> AsyncIterator[Any]:
        yield {"n": 0}
        raise NotKnown("gone meanwhile")

    return ndjson(numbers())


ROUTES = (
    Route("GET", "/v1/hello", _hello),
    Route("GET", "/v1/unknown", _unknown),
    Route("GET", "/v1/damaged", _damaged),
    Route("GET", "/v1/broken", _broken),
    Route("POST", "/v1/echo", _echo, body_bytes_max=1024 * 1024),
    Route("POST", "/v1/small", _echo, body_bytes_max=100),
    Route("GET", "/v1/count", _count),
    Route("GET", "/v1/fails", _fails_amid),
)


def _serve(
    home: Path,
    scenario: Scenario,
    *,
    routes: tuple[Route, ...] = ROUTES,
    bounds: Bounds | None = None,
) -> OpsServer:
    async def main() -> OpsServer:
        with DataLock.acquire(home) as lock:
            server = OpsServer(home / "s", routes, lock=lock, bounds=bounds)
            await server.start()
            try:
                await scenario(server)
            finally:
                await server.close()
            return server

    return asyncio.run(main())


async def _ask(server: OpsServer, *raw: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_unix_connection(server.path)
    try:
        for piece in raw:
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to be")


def _status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def _call(client: Client, name: str, *args: Any, **named: Any) -> Awaitable[Any]:
    return asyncio.to_thread(lambda: getattr(client, name)(*args, **named))


def test_a_client_gets_documents_errors_and_streams(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        client = Client(server.path)
        assert await _call(client, "get", "/v1/hello") == {"q": "none", "n": 1}
        got = await _call(client, "get", "/v1/hello", {"q": "ä b&c=\n", "n": 7, "x": None})
        assert got == {"q": "ä b&c=\n", "n": 7}
        body = {"text": "x" * 900_000, "lone": "\ud800"}
        assert await _call(client, "post", "/v1/echo", body) == body
        with pytest.raises(UsageError, match="100 bytes"):
            await _call(client, "post", "/v1/small", {"text": "x" * 4_000_000})
        with pytest.raises(NotKnown) as unknown:
            await _call(client, "get", "/v1/unknown")
        assert unknown.value.remedy == "imprintd sources lists them"
        with pytest.raises(DamagedLine) as damaged:
            await _call(client, "get", "/v1/damaged")
        assert (damaged.value.line, damaged.value.reason) == (7, "damaged-line")
        with pytest.raises(UsageError):
            await _call(client, "get", "/v1/hello", {"n": 10})
        lines = await asyncio.to_thread(lambda: list(client.stream("GET", "/v1/count")))
        assert lines == [{"n": 0}, {"n": 1}, {"n": 2}]
        stream = client.stream("GET", "/v1/fails")
        assert await asyncio.to_thread(next, stream) == {"n": 0}
        with pytest.raises(NotKnown):
            await asyncio.to_thread(next, stream)

    _serve(home, scenario)


def test_a_foreign_exception_shows_its_type_and_nothing_else(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        answer = await _ask(server, b"GET /v1/broken HTTP/1.1\r\nHost: imprintd\r\n\r\n")
        assert _status_of(answer) == 500
        assert b"ValueError" in answer
        assert b"secret" not in answer

    _serve(home, scenario)


def test_the_socket_is_its_owners_alone_and_goes_away(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        found = server.path.lstat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert stat.S_IMODE(server.path.parent.stat().st_mode) == 0o700

    server = _serve(home, scenario)
    assert not server.path.exists()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /v1/hello HTTP/1.1\r\nHost: imprintd\r\nOrigin: http://x\r\n\r\n", 403),
        (b"GET /v1/hello HTTP/1.1\r\nHost: imprintd\r\nReferer: http://x\r\n\r\n", 403),
        (b"GET /v1/hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        (b"PUT /v1/hello HTTP/1.1\r\nHost: imprintd\r\n\r\n", 405),
        (b"POST /v1/hello HTTP/1.1\r\nHost: imprintd\r\nContent-Length: 0\r\n\r\n", 405),
        (b"GET /v1/nothing HTTP/1.1\r\nHost: imprintd\r\n\r\n", 404),
        (b"GET http://x/v1/hello HTTP/1.1\r\nHost: imprintd\r\n\r\n", 200),
        (b"GET * HTTP/1.1\r\nHost: imprintd\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: imprintd\r\n\r\n", 400),
        (
            b"GET /v1/hello?" + b"&".join([b"a=1"] * 65) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            400,
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /v1/hello HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/hello HTTP/1.1\r\nHost: imprintd\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /v1/small HTTP/1.1\r\nHost: imprintd\r\nContent-Length: 101\r\n\r\n", 413),
        (
            b"POST /v1/small HTTP/1.1\r\nHost: imprintd\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n",
            413,
        ),
        (b"POST /v1/echo HTTP/1.1\r\nHost: imprintd\r\nContent-Length: 3\r\n\r\n[1]", 400),
        (b"GET /v1/hello HTTP/1.1\r\nHost: imprintd\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_odd_requests_get_their_status(home: Path, raw: bytes, status: int) -> None:
    async def scenario(server: OpsServer) -> None:
        answer = await _ask(server, raw)
        assert _status_of(answer) == status
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"application/json" in head
        assert ("error" in json.loads(body)) is (status >= 400)

    _serve(home, scenario)


def test_requests_in_one_packet_are_answered_in_order(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        one = b"GET /v1/hello?q=%d HTTP/1.1\r\nHost: imprintd\r\n\r\n"
        answer = await _ask(server, b"".join(one % number for number in range(5)))
        assert answer.count(b"HTTP/1.1 200") == 5
        places = [answer.index(b'"q":"%d"' % number) for number in range(5)]
        assert places == sorted(places)

    _serve(home, scenario)


def test_head_has_the_head_of_get_and_no_body(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        rest = b" /v1/hello HTTP/1.1\r\nHost: imprintd\r\n\r\n"
        head, get = await _ask(server, b"HEAD" + rest), await _ask(server, b"GET" + rest)
        assert get.partition(b"\r\n\r\n")[0] == head.partition(b"\r\n\r\n")[0]
        assert head.endswith(b"\r\n\r\n")
        assert _status_of(await _ask(server, b"HEAD" + rest.replace(b"hello", b"count"))) == 200

    _serve(home, scenario)


def test_a_request_that_trickles_in_is_cut_off(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(b"GET /v1/hello HT")
        trickle = asyncio.ensure_future(_trickle(writer))
        answer = await asyncio.wait_for(reader.read(), 5)
        trickle.cancel()
        writer.close()
        assert _status_of(answer) == 408
        assert server.counts.bad_requests == 1

    _serve(home, scenario, bounds=Bounds(request_s=0.3))


async def _trickle(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.05)


def test_idle_connections_are_closed_and_make_room(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        idle = [await asyncio.open_unix_connection(server.path) for _ in range(4)]
        await _until(lambda: server.connections == 4)
        answer = await _call(Client(server.path), "get", "/v1/hello")
        assert answer == {"q": "none", "n": 1}
        assert server.counts.evicted == 1
        # the oldest went at once, the others when their time was over
        ends = await asyncio.wait_for(
            asyncio.gather(*(reader.read() for reader, _ in idle), return_exceptions=True), 5
        )
        assert len(ends) == 4
        for _, writer in idle:
            writer.close()
        assert server.connections == 0

    _serve(home, scenario, bounds=Bounds(connections_max=4, idle_s=0.5))


def test_busy_connections_are_not_evicted(home: Path) -> None:
    released = asyncio.Event()

    async def waits(_: Request) -> Response:
        await released.wait()
        return json_response({"done": True})

    async def scenario(server: OpsServer) -> None:
        client = Client(server.path)
        busy = [asyncio.ensure_future(_call(client, "get", "/v1/waits")) for _ in range(2)]
        await _until(lambda: server.counts.requests == 2)
        answer = await _ask(server, b"")
        assert _status_of(answer) == 503
        released.set()
        assert await asyncio.gather(*busy) == [{"done": True}] * 2

    _serve(
        home,
        scenario,
        routes=(Route("GET", "/v1/waits", waits),),
        bounds=Bounds(connections_max=2),
    )


def test_a_reader_that_hangs_up_ends_its_stream(home: Path) -> None:
    ended = asyncio.Event()

    async def forever(_: Request) -> Response:
        async def ticks() -> AsyncIterator[Any]:
            try:
                yield {"tick": 0}
                await asyncio.Event().wait()
            finally:
                ended.set()

        return ndjson(ticks())

    async def scenario(server: OpsServer) -> None:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(b"GET /v1/ticks HTTP/1.1\r\nHost: imprintd\r\n\r\n")
        assert b"200" in await reader.readline()
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)

    _serve(home, scenario, routes=(Route("GET", "/v1/ticks", forever),))


def test_a_reader_that_does_not_read_is_dropped(home: Path) -> None:
    async def flood(_: Request) -> Response:
        async def much() -> AsyncIterator[Any]:
            while True:
                yield "x" * 65536

        return ndjson(much())

    async def scenario(server: OpsServer) -> None:
        _, writer = await asyncio.open_unix_connection(server.path, limit=1)
        writer.write(b"GET /v1/flood HTTP/1.1\r\nHost: imprintd\r\n\r\n")
        await _until(lambda: server.counts.requests == 1)
        await _until(lambda: server.connections == 0)
        writer.close()

    _serve(home, scenario, routes=(Route("GET", "/v1/flood", flood),), bounds=Bounds(write_s=0.2))


def test_followed_events_arrive_and_a_gap_shows_loss(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        client = Client(server.path)
        lines = client.stream("GET", "/v1/events", params={"since": 0})
        take = [await asyncio.to_thread(next, lines) for _ in range(3)]
        assert take[0] == {"life": "L", "last": 3}
        assert [line["id"] for line in take[1:]] == [2, 3]  # 1 fell out of the ring
        ring.publish("late", n=4)
        assert (await asyncio.to_thread(next, lines))["data"] == {"n": 4}
        await asyncio.to_thread(lines.close)  # type: ignore[attr-defined]

    ring = EventRing(ManualClock(), life="L", events_max=2)
    for number in range(1, 4):
        ring.publish("early", n=number)

    async def events(request: Request) -> Response:
        return ndjson(ring.follow(request.whole("since", 0, 0, 2**62)))

    _serve(home, scenario, routes=(Route("GET", "/v1/events", events),))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_curl_can_talk_to_it(home: Path) -> None:
    async def scenario(server: OpsServer) -> None:
        curl = await asyncio.create_subprocess_exec(
            *("curl", "-sS", "--unix-socket", str(server.path), "http://localhost/v1/hello?q=x"),
            stdout=asyncio.subprocess.PIPE,
        )
        shown, _ = await curl.communicate()
        assert json.loads(shown) == {"q": "x", "n": 1}

    _serve(home, scenario)


def test_what_a_dead_daemon_left_is_replaced(home: Path) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(home / "s"))
    stale.close()
    with pytest.raises(NoDaemon):
        Client(home / "s").get("/v1/hello")

    async def scenario(server: OpsServer) -> None:
        assert await _call(Client(server.path), "get", "/v1/hello") == {"q": "none", "n": 1}

    _serve(home, scenario)


def test_nothing_there_is_no_daemon(home: Path) -> None:
    with pytest.raises(NoDaemon):
        Client(home / "s").get("/v1/hello")


def test_a_file_that_is_no_socket_is_left_alone(home: Path) -> None:
    (home / "s").write_text("precious")

    async def scenario(_: OpsServer) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(ConfigError, match="not a socket"):
        _serve(home, scenario)
    assert (home / "s").read_text() == "precious"


def test_a_socket_that_answers_is_left_alone(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(home / "s"))
        other.listen(1)

        async def scenario(_: OpsServer) -> None:
            raise AssertionError("it must not start")

        with pytest.raises(ConfigError, match="another process"):
            _serve(home, scenario)
        assert (home / "s").exists()


def test_a_path_that_is_too_long_says_so(home: Path) -> None:
    long = home / ("x" * 60) / ("y" * 60)
    with pytest.raises(ConfigError, match=r"107|103"):
        Client(long).get("/v1/hello")
    with DataLock.acquire(home) as lock, pytest.raises(ConfigError, match="are possible"):
        asyncio.run(OpsServer(long, ROUTES, lock=lock).start())


def test_without_the_lock_nothing_is_bound(home: Path) -> None:
    lock = DataLock.acquire(home)
    lock.release()
    with pytest.raises(ConfigError):
        asyncio.run(OpsServer(home / "s", ROUTES, lock=lock).start())
    assert not (home / "s").exists()


def test_a_folder_that_others_may_write_to_is_refused(home: Path) -> None:
    shared = home / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with DataLock.acquire(home) as lock, pytest.raises(ConfigError, match="others may write"):
        asyncio.run(OpsServer(shared / "s", ROUTES, lock=lock).start())
    assert list(shared.iterdir()) == []
