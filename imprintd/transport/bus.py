"""
What the layers above expect of a message bus, which is little.

A bus carries opaque bytes to a topic. It may lose, double, reorder and delay
them. Nothing it answers counts as received by anyone: acknowledgements,
order and resending are the business of the protocol above it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from imprintd.errors import ResourceError


class BusLost(ResourceError):
    """The connection to the bus ended; a new one has to be made."""

    code = "bus-lost"


class BusRefused(ResourceError):
    """The bus answered and said no: denied, over quota, too large."""

    code = "bus-refused"


@dataclass(frozen=True, slots=True)
class Packet:
    """
    Bytes that came in on a topic.

    Attributes:
        topic: As subscribed to; no wildcards are used.
        payload: Opaque, at most the bus's `payload_bytes_max`.
    """

    topic: str
    payload: bytes


class Bus(Protocol):
    """One connection to a bus, from connecting to its loss; never reused."""

    @property
    def payload_bytes_max(self) -> int:
        """Largest payload that `publish` takes."""
        ...

    async def subscribe(self, topic: str) -> None:
        """
        Ask for what is published under a topic from now on.

        Raises:
            BusLost: The connection is gone.
            BusRefused: The broker does not allow it.
        """
        ...

    async def unsubscribe(self, topic: str) -> None:
        """Ask for no more of it; raises as `subscribe`."""
        ...

    async def publish(self, topic: str, payload: bytes) -> None:
        """
        Hand a payload to the bus; returning means no more than that.

        Raises:
            BusLost: The connection is gone.
            BusRefused: Too large, or the broker does not allow it.
        """
        ...

    def packets(self) -> AsyncIterator[Packet]:
        """
        What comes in, until the connection is lost.

        A packet counts as taken once the next one is asked for: a slow
        consumer slows the broker down instead of filling memory.

        Raises:
            BusLost: The connection ended.
        """
        ...

    async def close(self) -> None:
        """End the connection; harmless when it is gone already."""
        ...
