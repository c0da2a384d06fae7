"""
Requests, responses and routes, and the reading of one request with h11.

No sockets here: a connection is fed bytes and asked for bytes, so limits and
malformed input can be tested without a network.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from imprintd.errors import (
    ConfigError,
    ImprintdError,
    IntegrityError,
    Locked,
    NotKnown,
    Refused,
    SourceError,
    UsageError,
    VersionReplaced,
)

REQUEST_BYTES_MAX: Final = 64 * 1024
"""Head, and separately body, of a request where a route says nothing else."""

PARAMS_MAX: Final = 64
"""Query parameters of one request."""

_PORT: Final = re.compile(r":[0-9]{1,5}$")

_STATUS: Final[tuple[tuple[type[ImprintdError], int], ...]] = (
    (UsageError, 400),
    (NotKnown, 404),
    (VersionReplaced, 409),
    (Locked, 409),
    (Refused, 422),
    (SourceError, 422),
    (IntegrityError, 500),
    (ConfigError, 500),
)


@dataclass(frozen=True, slots=True)
class Request:
    """
    One request.

    Attributes:
        method: GET, HEAD or POST.
        path: Decoded, without the query.
        params: Query parameters; of equal names the last counts.
        headers: Names in lower case; of equal names the last counts.
        body: Whole, within the route's limit.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def text(self, name: str, default: str | None = None) -> str:
        """
        A parameter; without a default it must be there.

        Raises:
            UsageError: It is missing.
        """
        value = self.params.get(name, default)
        if value is None:
            raise UsageError(f"the parameter {name} is missing")
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """
        A whole number within bounds.

        Raises:
            UsageError: It is not one.
        """
        value = self.params.get(name)
        if value is None:
            return default
        if not value.removeprefix("-").isdecimal() or len(value) > 18:
            raise UsageError(f"the parameter {name} must be a whole number")
        if not low <= int(value) <= high:
            raise UsageError(f"the parameter {name} must be between {low} and {high}")
        return int(value)

    def flag(self, name: str) -> bool:
        """
        Whether a parameter says yes; absent means no.

        Raises:
            UsageError: It says neither.
        """
        value = self.params.get(name, "0").lower()
        if value not in {"0", "1", "true", "false", "yes", "no", ""}:
            raise UsageError(f"the parameter {name} must be true or false")
        return value in {"1", "true", "yes", ""}

    def json(self) -> dict[str, Any]:
        """
        The body as a JSON object; an empty body is an empty one.

        Raises:
            UsageError: It is something else.
        """
        if not self.body:
            return {}
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            raise UsageError("the body must be JSON") from None
        if not isinstance(value, dict):
            raise UsageError("the body must be a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class Response:
    """
    One response: a whole body, or a stream of pieces.

    Attributes:
        status: HTTP status.
        body: Sent as it is, unless there is a stream.
        stream: Sent piece by piece, chunked, each as soon as it is there.
        content_type: Of either.
    """

    status: int = 200
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    content_type: str = "application/json"


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """
    One line of the route table.

    Attributes:
        method: GET (HEAD comes with it) or POST.
        path: Compared whole.
        handler: May raise any ImprintdError.
        body_bytes_max: Larger bodies are refused before they are read.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    body_bytes_max: int = REQUEST_BYTES_MAX


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON document. Lone surrogates survive as escapes, as JSON allows."""
    return Response(status, json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n")


def ndjson(values: AsyncIterator[Any]) -> Response:
    """A stream of JSON documents, one a line."""
    return Response(stream=_lines(values), content_type="application/x-ndjson")


async def _lines(values: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    async for value in values:
        yield json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def error_response(error: Exception) -> Response:
    """
    What a client is told about a failure.

    Foreign exceptions are a bug of ours; their text could be anybody's, so
    only the type's name leaves.
    """
    if not isinstance(error, ImprintdError):
        return problem(500, "internal", f"the daemon failed: {type(error).__name__}")
    status = next((s for kind, s in _STATUS if isinstance(error, kind)), 500)
    if status == 500 and error.retryable:
        status = 503
    return json_response({"error": error_body(error)}, status)


def error_body(error: ImprintdError) -> dict[str, Any]:
    """An error as JSON: code, message, remedy, and line and reason for sources."""
    body: dict[str, Any] = {"code": error.code, "message": error.message, "remedy": error.remedy}
    if isinstance(error, SourceError):
        body["reason"], body["line"] = error.reason, error.line
    return body


def problem(status: int, code: str, message: str, remedy: str = "") -> Response:
    """An error that has no exception: the request never reached a handler."""
    body = {"code": code, "message": message, "remedy": remedy}
    return json_response({"error": body}, status)


class BadRequest(Exception):
    """A request that is refused before any handler sees it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def request_of(
    method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], *, hosts: frozenset[str]
) -> Request:
    """
    Judge a request's head and take it apart.

    A browser must not reach us through anything that forwards to the socket:
    whatever carries an Origin or Referer, or asks for another host, is
    refused.

    Raises:
        BadRequest: With the status to answer.
    """
    if sum(len(name) + len(value) + 4 for name, value in headers) > REQUEST_BYTES_MAX:
        # the parser bounds what is incomplete, not what came whole at once
        raise BadRequest(431, f"a request's head may have {REQUEST_BYTES_MAX} bytes")
    fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if "origin" in fields or "referer" in fields:
        raise BadRequest(403, "requests from web pages are refused")
    host = fields.get("host", "")
    if _PORT.sub("", host.lower()) not in hosts:
        raise BadRequest(403, "this host name is not served here")
    if method not in {b"GET", b"HEAD", b"POST"}:
        raise BadRequest(405, "only GET, HEAD and POST are served")
    try:
        parts = urlsplit(target.decode("ascii"))
        params = dict(
            parse_qsl(
                parts.query,
                keep_blank_values=True,
                max_num_fields=PARAMS_MAX,
                errors="surrogateescape",
            )
        )
        path = unquote(parts.path, errors="strict")
    except ValueError:  # UnicodeError is one
        raise BadRequest(400, "the target cannot be read") from None
    if not path.startswith("/"):
        raise BadRequest(400, "the target must be a path")
    return Request(method.decode("ascii"), path, params, fields)
