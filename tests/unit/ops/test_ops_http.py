"""
Requests and errors without sockets, and the check of who is at the other end.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd import errors
from imprintd.clock import ManualClock
from imprintd.errors import ImprintdError, SourceError, UsageError
from imprintd.ops.client import error_from
from imprintd.ops.events import EventRing
from imprintd.ops.http import BadRequest, Request, error_response, request_of
from imprintd.ops.listen import is_allowed, peer_uid

HOSTS = frozenset({"imprintd", "localhost", "[::1]"})


@pytest.mark.parametrize(
    ("uid", "own", "expected"),
    [(1000, 1000, True), (0, 1000, True), (1001, 1000, False), (1000, 0, False), (None, 0, False)],
)
def test_only_the_same_user_and_root_may_talk(uid: int | None, own: int, expected: bool) -> None:
    assert is_allowed(uid, own) is expected


def test_the_peer_is_known_on_a_real_socket() -> None:
    import os

    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        assert peer_uid(one) == os.getuid()
    with socket.socket(socket.AF_INET) as foreign:
        assert not is_allowed(peer_uid(foreign), 4_000_000)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("imprintd", True),
        ("LOCALHOST:80", True),
        ("[::1]:99999", True),
        ("[::1]", True),
        ("evil.example", False),
        ("evil.example:80", False),
        ("imprintd.evil.example", False),
        ("imprintd:80:80", False),
        ("", False),
    ],
)
def test_only_our_own_names_are_served(host: str, allowed: bool) -> None:
    def judge() -> Request:
        return request_of(b"GET", b"/", [(b"host", host.encode())], hosts=HOSTS)

    if allowed:
        assert judge().path == "/"
    else:
        with pytest.raises(BadRequest):
            judge()


@given(st.binary(max_size=200), st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9))))
def test_any_head_is_read_or_refused(target: bytes, extra: list[tuple[bytes, bytes]]) -> None:
    status, path = 200, ""
    try:
        path = request_of(b"GET", target, [*extra, (b"host", b"imprintd")], hosts=HOSTS).path
    except BadRequest as bad:
        status = bad.status
    assert path.startswith("/") if status == 200 else status in {400, 403, 431}


def test_parameters_are_checked() -> None:
    request = Request(
        "GET", "/", {"n": "5", "bad": "5x", "yes": "true", "bare": "", "big": "9" * 30}
    )
    assert request.whole("n", 1, 0, 9) == 5
    assert request.whole("absent", 1, 0, 9) == 1
    assert (request.flag("yes"), request.flag("bare"), request.flag("absent")) == (
        True,
        True,
        False,
    )
    for wrong in (
        lambda: request.whole("n", 1, 6, 9),
        lambda: request.whole("bad", 1, 0, 9),
        lambda: request.whole("big", 1, 0, 9),
        lambda: request.flag("n"),
        lambda: request.text("absent"),
        lambda: Request("POST", "/", body=b"[" * 100_000).json(),
        lambda: Request("POST", "/", body=b"\xff").json(),
    ):
        with pytest.raises(UsageError):
            wrong()


def _each_error() -> list[ImprintdError]:
    made: list[ImprintdError] = []
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, ImprintdError):
            if issubclass(kind, SourceError):
                made.append(kind("m\udcff", reason="r", line=3, remedy="do"))
            else:
                made.append(kind("m\udcff", remedy="do"))
    return made


@pytest.mark.parametrize("error", _each_error(), ids=lambda error: error.code)
def test_every_error_crosses_the_socket_as_itself(error: ImprintdError) -> None:
    response = error_response(error)
    back = error_from(json.loads(response.body))
    assert response.status >= 400
    assert type(back) is type(error)
    names = ("message", "remedy", "reason", "line")
    assert [getattr(back, n, None) for n in names] == [getattr(error, n, None) for n in names]


@pytest.mark.parametrize("odd", [None, 7, {}, {"error": 1}, {"error": {"code": 3}}, []])
def test_odd_answers_become_plain_errors(odd: Any) -> None:
    assert type(error_from(odd)) is ImprintdError


def test_the_ring_keeps_the_last_events_and_their_ids() -> None:
    ring = EventRing(ManualClock(wall_ms=5), life="a", events_max=3)
    assert [ring.publish("e", n=n) for n in range(5)] == [1, 2, 3, 4, 5]
    assert [event.id for event in ring.since(0)] == [3, 4, 5]
    assert [event.as_json() for event in ring.since(4)] == [
        {"id": 5, "at_ms": 5, "event": "e", "data": {"n": 4}}
    ]


def test_an_id_of_an_earlier_life_starts_from_the_beginning() -> None:
    ring = EventRing(ManualClock(), life="b")
    ring.publish("e")

    async def main() -> list[dict[str, Any]]:
        stream = ring.follow(999, idle_s=0.01)
        return [await anext(stream) for _ in range(3)]

    first, second, third = asyncio.run(main())
    assert first == {"life": "b", "last": 1}
    assert second["id"] == 1
    assert set(third) == {"beat", "last"}
