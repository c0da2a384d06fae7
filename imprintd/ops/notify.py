"""
Telling the service manager how we are: systemd's notification protocol.

A datagram to a Unix socket, nothing more, so there is no dependency; without
`NOTIFY_SOCKET` (other managers, a terminal) every call does nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

from imprintd.clock import Clock


class Notifier:
    """
    Sends state to the service manager; never raises, never blocks.

    Args:
        environ: The process environment.
        clock: For the time stamp that a reload needs.
    """

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        address = environ.get("NOTIFY_SOCKET", "")
        # an abstract name begins with NUL where the variable has `@`
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog_s = _watchdog_s(environ, os.getpid())

    @property
    def is_active(self) -> bool:
        """Whether anybody listens."""
        return self._address.startswith(("/", "\0"))

    @property
    def watchdog_interval_s(self) -> float | None:
        """How often to say that all is well, half the limit; None: not wanted."""
        return None if self._watchdog_s is None else self._watchdog_s / 2

    def ready(self, status: str = "") -> bool:
        """Start-up (or a reload) is complete."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(*_status(text))

    def reloading(self) -> bool:
        """A reload begins; `ready` must follow."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")

    def stopping(self) -> bool:
        """Shutting down on purpose."""
        return self._send("STOPPING=1")

    def extend(self, seconds: float) -> bool:
        """Start-up or shutdown takes this much longer (a migration)."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def alive(self) -> bool:
        """Feed the watchdog."""
        return self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> bool:
        if not self.is_active or not lines:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return False
        return True


async def feed_watchdog(notifier: Notifier, is_healthy: Callable[[], bool]) -> None:
    """
    Feed the watchdog for as long as we are healthy; returns if it is not wanted.

    Silence is the message: when `is_healthy` says no, nothing is sent and the
    manager restarts us when its limit passes.
    """
    interval_s = notifier.watchdog_interval_s
    while interval_s is not None and notifier.is_active:
        if is_healthy():
            notifier.alive()
        await asyncio.sleep(interval_s)


def _status(text: str) -> tuple[str, ...]:
    line = " ".join(text.split())
    return (f"STATUS={line}",) if line else ()


def _watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    limit, asked = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
    if not limit.isdecimal() or int(limit) == 0 or asked != str(pid):
        return None
    return int(limit) / 1e6
