"""
Notification: exact datagrams, abstract names, and silence where nobody listens.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from imprintd.clock import ManualClock
from imprintd.ops.notify import Notifier, feed_watchdog


@pytest.fixture
def manager() -> Iterator[tuple[socket.socket, str]]:
    with tempfile.TemporaryDirectory(prefix="imp") as folder:
        path = str(Path(folder) / "n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
            listening.bind(path)
            listening.settimeout(5)
            yield listening, path


def test_every_message_is_what_the_manager_expects(manager: tuple[socket.socket, str]) -> None:
    listening, path = manager
    clock = ManualClock()
    clock.advance(12.5)
    notifier = Notifier({"NOTIFY_SOCKET": path}, clock)
    assert notifier.ready("up\nand  well")
    assert notifier.status("3 behind")
    assert notifier.reloading()
    assert notifier.extend(90)
    assert notifier.stopping()
    assert notifier.alive()
    got = [listening.recv(4096) for _ in range(6)]
    assert got == [
        b"READY=1\nSTATUS=up and well",
        b"STATUS=3 behind",
        b"RELOADING=1\nMONOTONIC_USEC=12500000",
        b"EXTEND_TIMEOUT_USEC=90000000",
        b"STOPPING=1",
        b"WATCHDOG=1",
    ]


def test_abstract_names_work() -> None:
    name = f"imprintd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        listening.settimeout(5)
        assert Notifier({"NOTIFY_SOCKET": "@" + name}, ManualClock()).ready()
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_nobody_listening_is_no_error(address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address}, ManualClock())
    assert not notifier.ready()
    assert not notifier.status("x")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_interval(environ: dict[str, str], expected: float | None) -> None:
    assert Notifier(environ, ManualClock()).watchdog_interval_s == expected


def test_the_watchdog_is_fed_only_while_healthy(manager: tuple[socket.socket, str]) -> None:
    listening, path = manager
    answers = [True, False, True]
    asked = 0

    def is_healthy() -> bool:
        nonlocal asked
        if asked == len(answers):
            raise KeyError  # ends the loop
        asked += 1
        return answers[asked - 1]

    notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000"}, ManualClock())
    with pytest.raises(KeyError):
        asyncio.run(feed_watchdog(notifier, is_healthy))
    assert [listening.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
    listening.settimeout(0)
    with pytest.raises(BlockingIOError):
        listening.recv(100)


def test_no_watchdog_wanted_ends_at_once() -> None:
    asyncio.run(feed_watchdog(Notifier({}, ManualClock()), lambda: True))
