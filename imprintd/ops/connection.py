"""
One connection to the status socket: feeding the parser and sending answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from typing import Final

import h11

from imprintd.ops.http import REQUEST_BYTES_MAX, Response, error_response

READ_BYTES: Final = 64 * 1024
"""Taken from the socket at once."""

LINGER_S: Final = 1.0
LINGER_BYTES_MAX: Final = 2 * 1024 * 1024


class Peer:
    """
    One connection.

    Attributes:
        reader: What comes in.
        writer: What goes out.
        http: The parser's state.
        task: Serves this connection; cancelling it closes it.
        idle_since: Loop time since when it waits for a request, else None.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, write_s: float
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES_MAX)
        self.task = asyncio.current_task()
        self.idle_since: float | None = None
        self._write_s = write_s

    async def send(self, *events: h11.Event) -> None:
        """Send, and wait until the other end takes it, for a bounded time."""
        for event in events:
            data = self.http.send(event)
            if data:
                self.writer.write(data)
        async with asyncio.timeout(self._write_s):
            await self.writer.drain()

    async def receive(self) -> bool:
        """Feed what comes next to the parser; False: the other end is done."""
        data = await self.reader.read(READ_BYTES)
        self.http.receive_data(data)
        return bool(data)


def _head(response: Response, length: int | None) -> h11.Response:
    headers = [
        ("content-type", response.content_type),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ]
    if length is not None:
        headers.append(("content-length", str(length)))
    reason = HTTPStatus(response.status).phrase
    return h11.Response(status_code=response.status, headers=headers, reason=reason)


async def send_whole(peer: Peer, response: Response) -> None:
    """An answer with its body."""
    await peer.send(
        _head(response, len(response.body)), h11.Data(data=response.body), h11.EndOfMessage()
    )


async def send_head_only(peer: Peer, response: Response) -> None:
    """What HEAD gets: the head of the answer alone."""
    if response.stream is not None:
        await _close_stream(response)
    length = len(response.body) if response.stream is None else None
    await peer.send(_head(response, length), h11.EndOfMessage())


async def send_stream(peer: Peer, response: Response) -> None:
    """Send pieces as they come; stop making them when the reader has gone."""
    assert response.stream is not None
    pieces = response.stream.__aiter__()
    gone = asyncio.ensure_future(_hang_up(peer))
    try:
        await peer.send(_head(response, None))
        while True:
            piece = asyncio.ensure_future(anext(pieces, None))
            try:
                await asyncio.wait({piece, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    return
                data = piece.result()
            except Exception as error:
                if response.content_type == "application/x-ndjson":
                    await peer.send(h11.Data(data=error_response(error).body), h11.EndOfMessage())
                return
            finally:
                if not piece.done():
                    piece.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await piece
            if data is None:
                await peer.send(h11.EndOfMessage())
                return
            if data:
                await peer.send(h11.Data(data=data))
    finally:
        gone.cancel()
        await _close_stream(response)


async def _hang_up(peer: Peer) -> None:
    """Return when the other end closes; further requests wait in the parser."""
    early = 0
    while await peer.receive():
        early += 1
        if early > 4:  # bounded: a flood behind a stream is not read at all
            await asyncio.Event().wait()


async def _close_stream(response: Response) -> None:
    close = getattr(response.stream, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):
            await close()


async def refuse(peer: Peer, response: Response) -> None:
    """An answer after which the connection is closed, if one can still be given."""
    if peer.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    head = _head(response, len(response.body))
    headers = [*head.headers.raw_items(), (b"connection", b"close")]
    await peer.send(
        h11.Response(status_code=head.status_code, headers=headers, reason=head.reason),
        h11.Data(data=response.body),
        h11.EndOfMessage(),
    )
    await _linger(peer)


async def _linger(peer: Peer) -> None:
    """
    Let the other end finish sending, for a moment, so that it reads the answer.

    A socket that is closed with unread bytes in it resets the connection.
    """
    if peer.writer.can_write_eof():
        peer.writer.write_eof()
    taken = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while taken < LINGER_BYTES_MAX:
                data = await peer.reader.read(READ_BYTES)
                if not data:
                    return
                taken += len(data)
