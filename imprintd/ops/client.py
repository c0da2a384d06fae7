"""
A small synchronous client of the status socket, for commands.

Light on purpose: the standard library alone, so that `imprintd status` starts
fast. Errors of the daemon come back as the same classes that it raised.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from imprintd import errors
from imprintd.errors import ImprintdError, NoDaemon, SourceError
from imprintd.ops.listen import check_length

Params = Mapping[str, str | int | float | bool | None]


class Client:
    """
    Talks to the daemon at a socket path; one connection a call.

    Args:
        path: The status socket.
        timeout_s: For connecting and for each piece of an answer.
    """

    def __init__(self, path: Path, timeout_s: float = 30.0) -> None:
        self.path = path
        self._timeout_s = timeout_s

    def get(self, path: str, params: Params | None = None) -> Any:
        """
        The JSON document at a path. None among the parameters is left out.

        Raises:
            NoDaemon: Nothing answers at the socket.
            ImprintdError: As the daemon raised it.
        """
        return self._whole("GET", path, params, None)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Like `get`, with a JSON object in the body."""
        return self._whole("POST", path, None, body or {})

    def text(self, path: str) -> str:
        """A document that is not JSON, e.g. `/metrics`; raises like `get`."""
        with self._open("GET", path, None, None) as answer:
            return answer.read().decode("utf-8", "replace")

    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """
        The JSON documents of a stream, one by one, as they come.

        Args:
            method: GET or POST.
            path: Where.
            params: As for `get`.
            body: As for `post`.
            timeout_s: How long to wait for the next one; None: as configured.

        Raises:
            NoDaemon: Nothing answers, or the daemon stopped amid the stream.
            ImprintdError: As the daemon raised it, also amid the stream.
        """
        with self._open(method, path, params, body, timeout_s) as answer:
            while True:
                try:
                    line = answer.readline()
                except (OSError, http.client.HTTPException) as error:
                    raise NoDaemon(
                        f"the daemon stopped answering ({type(error).__name__})"
                    ) from error
                if not line:
                    return
                value = json.loads(line)
                if isinstance(value, dict) and set(value) == {"error"}:
                    raise error_from(value)
                yield value

    def _whole(
        self, method: str, path: str, params: Params | None, body: Mapping[str, Any] | None
    ) -> Any:
        with self._open(method, path, params, body) as answer:
            try:
                return json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise NoDaemon(f"the daemon stopped answering ({type(error).__name__})") from error

    def _open(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: Mapping[str, Any] | None,
        timeout_s: float | None = None,
    ) -> _Answer:
        check_length(self.path)
        connection = _UnixConnection(self.path, timeout_s or self._timeout_s)
        target = path + (f"?{urlencode(_plain(params))}" if params else "")
        content = None if body is None else json.dumps(body).encode("ascii")
        try:
            # refused before all was sent: the answer says why
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, target, content, {"content-type": "application/json"})
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NoDaemon(
                f"no daemon answers at {self.path} ({type(error).__name__})",
                remedy="start it with `imprintd run` or `imprintd service install`",
            ) from error
        if response.status >= 400:
            with _Answer(connection, response):
                raise _error_of(response)
        return _Answer(connection, response)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("imprintd", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _Answer:
    """A response whose connection is closed with it."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self.read = response.read
        self.readline = response.readline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def error_from(document: Any) -> ImprintdError:
    """
    The error that a document of the daemon's describes, as its own class.

    Codes of a newer daemon that are not known here become plain ImprintdError.
    """
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        return ImprintdError("the daemon's answer cannot be read")
    message, remedy = str(error.get("message", "")), str(error.get("remedy", ""))
    kind = _kinds().get(str(error.get("code", "")), ImprintdError)
    if issubclass(kind, SourceError):
        line = error.get("line")
        return kind(
            message,
            reason=str(error.get("reason", kind.code)),
            line=line if isinstance(line, int) else None,
            remedy=remedy,
        )
    return kind(message, remedy=remedy)


def _error_of(response: http.client.HTTPResponse) -> ImprintdError:
    try:
        return error_from(json.loads(response.read()))
    except (OSError, http.client.HTTPException, ValueError):
        return ImprintdError(f"the daemon answered with status {response.status}")


def _kinds() -> dict[str, type[ImprintdError]]:
    return {
        kind.code: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ImprintdError)
    }


def _plain(params: Params) -> dict[str, str]:
    words = {True: "1", False: "0"}
    return {
        name: words[value] if isinstance(value, bool) else str(value)
        for name, value in params.items()
        if value is not None
    }
