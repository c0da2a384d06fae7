"""
RE2 for the shapes that Hyperscan found: linear time, in bounded windows.

The only module that imports RE2.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import re2

from imprintd.redact import values
from imprintd.redact.formats import FORMATS, Format

VERSION: Final = version("google-re2")
WINDOW: Final = 16_384
"""No credential is longer, private keys apart, which have their own reader."""

_OPTIONS = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_OPTIONS.log_errors = False


def compile_bytes(expression: str) -> Any:
    """A pattern over bytes, one byte a character."""
    return re2.compile(expression.encode("ascii"), _OPTIONS)


@cache
def _pattern(number: int) -> Any:
    return compile_bytes(FORMATS[number].whole)


def measure(data: bytes, start: int, number: int) -> tuple[int, int]:
    """
    Where the credential of format `number` that starts at `start` ends.

    Returns:
        The end, or `start` if it is none after all; and how far the text is
        settled for this format either way, so that no byte is measured often.
    """
    form = FORMATS[number]
    if form.alone and start and _joined(data, start):
        return start, start + 1
    found = _pattern(number).match(data[start : start + WINDOW])
    if found is None:
        return start, start + 1
    tail = found.end(2) - found.start(2)
    end: int = start + found.end()
    settled = end
    if form.tail and tail > form.high:
        if form.alone:
            return start, settled
        end -= tail - form.high
        tail = form.high
    return (end if _holds(form, data, start, end, tail) else start), settled


def _holds(form: Format, data: bytes, start: int, end: int, tail: int) -> bool:
    body = data[start:end]
    if form.digit and not any(48 <= byte <= 57 for byte in body):
        return False
    if values.fake(data[end - tail : end] if tail else body) and form.kind != "jwt":
        return False
    return len(set(body[-16:])) > 4 or not form.tail


def _joined(data: bytes, start: int) -> bool:
    """Whether a letter or digit stands before, escapes such as `\\n` apart."""
    before = data[start - 1 : start]
    if not before.isalnum():
        return False
    if before in b"nrt" and data[start - 2 : start - 1] == b"\\":
        return False
    if before in b"DCF" and data[start - 3 : start - 2] == b"%":
        return False  # %3D and its like
    return re.search(rb"\\u00[0-9a-fA-F]{2}\Z", data[max(0, start - 6) : start]) is None
