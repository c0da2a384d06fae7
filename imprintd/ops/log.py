"""
Structured logs on standard error: a stable word for what happened, then fields.

No transcript text can get in: foreign exceptions appear by type and place,
never by message, foreign log records by their template without arguments, and
every value is one short line. Under the journal each line carries its level
and leaves the time to it. The same failure again and again becomes one line
and a count.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Final, TextIO

from imprintd.clock import Clock
from imprintd.errors import ImprintdError

Field = str | int | float | bool | None

VALUE_CHARS_MAX: Final = 200
REPEAT_S: Final = 300.0
"""A failure that goes on is said again after this long, with a count."""

_KEYS_MAX: Final = 256
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,%~"
)


class Log:
    """
    One room's log.

    Event words are constants of the code; fields are numbers, names, paths and
    codes, never text that was read from a source.
    """

    def __init__(self, room: str) -> None:
        self._logger = logging.getLogger(f"imprintd.{room}")

    def debug(self, event: str, **fields: Field) -> None:
        """For whoever looks for a fault in imprintd itself."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Field) -> None:
        """Worth knowing, nothing to do."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Field) -> None:
        """Something is less than it should be."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Field) -> None:
        """Something failed."""
        self._write(logging.ERROR, event, fields)

    def failure(self, event: str, error: BaseException, **fields: Field) -> None:
        """Something failed with an exception; see `described`."""
        self._write(logging.ERROR, event, {**fields, **described(error)})

    def _write(self, level: int, event: str, fields: Mapping[str, Field]) -> None:
        self._logger.log(level, event, extra={"imprintd_fields": dict(fields)})


def described(error: BaseException) -> dict[str, Field]:
    """
    An exception in fields that can be shown to anybody.

    Ours carry a code and a message made for showing; of all others only the
    type, the system's error name and the place are told.
    """
    if isinstance(error, ImprintdError):
        return {"code": error.code, "message": error.message}
    fields: dict[str, Field] = {"type": type(error).__name__}
    if isinstance(error, OSError) and error.errno:
        fields["errno"] = errno.errorcode.get(error.errno, str(error.errno))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "imprintd" in frame.filename.replace("\\", "/").split("/")
    ]
    if frames:
        place = frames[-1].filename.replace("\\", "/").rpartition("imprintd/")[2]
        fields["at"] = f"{place}:{frames[-1].lineno}"
    return fields


def configure(
    clock: Clock,
    environ: Mapping[str, str],
    *,
    level: str = "info",
    stream: TextIO | None = None,
) -> None:
    """
    Send all logging of the process to one stream; replaces what was there.

    Args:
        clock: For the repetition of failures.
        environ: `JOURNAL_STREAM` tells whether the journal reads us.
        level: debug, info, warning or error.
        stream: None: standard error.
    """
    out = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(out)
    handler.setFormatter(Line(journal=is_journal(out, environ)))
    handler.addFilter(Collapse(clock))
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # other libraries speak up for trouble only
    logging.getLogger("imprintd").setLevel(_LEVELS.get(level, logging.INFO))


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream leads straight to the systemd journal."""
    device, _, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    with contextlib.suppress(OSError, ValueError):
        found = os.fstat(stream.fileno())
        return (str(found.st_dev), str(found.st_ino)) == (device, inode)
    return False


class Line(logging.Formatter):
    """One record, one line: `room.event name=value ...`."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, Field] | None = getattr(record, "imprintd_fields", None)
        name = record.name.removeprefix("imprintd.")
        if fields is None:
            # the template is code, the arguments could be anything
            fields = {"message": str(record.msg)} if record.args else {"message": _first(record)}
            if record.exc_info and record.exc_info[1] is not None:
                fields = {**fields, **described(record.exc_info[1])}
            text = f"{name}.log"
        else:
            text = f"{name}.{record.msg}"
        repeated = getattr(record, "imprintd_repeated", 0)
        if repeated:
            fields = {**fields, "repeated": repeated}
        words = [text, *(f"{key}={shown(value)}" for key, value in fields.items())]
        if self._journal:
            return f"<{_priority(record.levelno)}>" + " ".join(words)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        return " ".join([stamp, record.levelname.lower(), *words])


def shown(value: Field) -> str:
    """A field's value as one word; anything odd is quoted and escaped, long is cut."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if len(text) > VALUE_CHARS_MAX:
        text = text[:VALUE_CHARS_MAX] + "..."
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)


class Collapse(logging.Filter):
    """Lets a repeated failure through once in a while, with a count."""

    def __init__(self, clock: Clock, repeat_s: float = REPEAT_S) -> None:
        super().__init__()
        self._clock = clock
        self._repeat_s = repeat_s
        self._seen: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        fields = getattr(record, "imprintd_fields", None)
        key = (record.name, str(record.msg), repr(fields))
        now = self._clock.monotonic()
        since, count = self._seen.pop(key, (float("-inf"), 0))
        if now - since < self._repeat_s:
            self._seen[key] = (since, count + 1)
            return False
        self._seen[key] = (now, 0)
        if len(self._seen) > _KEYS_MAX:
            self._seen.pop(next(iter(self._seen)))
        record.imprintd_repeated = count
        return True


def _first(record: logging.LogRecord) -> str:
    # a message without arguments may have been put together already, so only
    # its first words are safe to show: enough to find it in the library
    return " ".join(str(record.msg).split()[:5])


def _priority(level: int) -> int:
    return next((n for limit, n in ((40, 3), (30, 4), (20, 6)) if level >= limit), 7)
