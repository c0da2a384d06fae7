"""
Points in time as people type them: `2026-11-03`, `2h`, `3 days ago`, `last tuesday`.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from imprintd.errors import UsageError

_UNIT_S: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPAN: Final = re.compile(
    r"(\d+)\s*(m|h|d|w|min|mins|minutes?|hours?|days?|weeks?)(?:\s+ago)?", re.IGNORECASE
)


def milliseconds(words: str, now: dt.datetime) -> int:
    """
    Milliseconds since the epoch of a point in time.

    Args:
        words: An ISO 8601 date or moment (local time unless it says
            otherwise), a span back from now, `now`, `today`, `yesterday` or a
            weekday (`tuesday`, `last tuesday`: the latest one before today).
        now: The present, with its time zone.

    Raises:
        UsageError: The words are none of these.
    """
    text = words.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if text == "now":
        return _ms(now)
    if text == "today":
        return _ms(midnight)
    if text == "yesterday":
        return _ms(midnight - dt.timedelta(days=1))
    if match := _SPAN.fullmatch(text):
        seconds = int(match[1]) * _UNIT_S[match[2][0]]
        return _ms(now) - seconds * 1000
    day = text.removeprefix("last ")
    if day in _WEEKDAYS:
        back = (now.weekday() - _WEEKDAYS.index(day)) % 7 or 7
        return _ms(midnight - dt.timedelta(days=back))
    try:
        moment = dt.datetime.fromisoformat(words.strip())
    except ValueError:
        raise UsageError(
            f"{words!r} is no point in time",
            remedy="try 2026-11-03, 2026-11-03T14:00, 2h, 3d, yesterday or tuesday",
        ) from None
    return _ms(moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))


def _ms(moment: dt.datetime) -> int:
    return round(moment.timestamp() * 1000)
