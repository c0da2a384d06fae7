"""
Checked access to the fields of a decoded message.

Every value of a peer is looked at here once: its type, its range, its
length. A wrong one is a RemoteProtocolError that names the field and never
quotes the value.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from imprintd.errors import RemoteProtocolError
from imprintd.model.snapshot import Stamp
from imprintd.model.source import Coverage
from imprintd.wire import limits

T = TypeVar("T")

_FORBIDDEN: Final = {"Cc", "Cs", "Zl", "Zp"}
"""Categories of characters that no key or name has a reason to hold; bidi
overrides are among the ones below."""

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Fields:
    """
    One map of a message, read field by field; unknown fields are ignored.

    Args:
        what: Name of the message, for errors.
        value: What was decoded in the place of the map.
    """

    __slots__ = ("_table", "_what")

    def __init__(self, what: str, value: object) -> None:
        if not isinstance(value, dict):
            raise RemoteProtocolError(f"{what}: body is no map")
        self._what = what
        self._table: Mapping[str, Any] = value

    def bad(self, name: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self._what}: bad {name}")

    def integer(self, name: str, low: int = 0, high: int = limits.INT_MAX) -> int:
        return number(self._table.get(name), self.bad(name), low, high)

    def flag(self, name: str) -> bool:
        value = self._table.get(name, False)
        if not isinstance(value, bool):
            raise self.bad(name)
        return value

    def octets(self, name: str, *sizes: int) -> bytes:
        """Bytes of one of the given sizes; of any size where none is given."""
        return octets(self._table.get(name), self.bad(name), *sizes)

    def text(self, name: str, longest: int = limits.NAME_CHARS_MAX, *, clean: bool = True) -> str:
        return text(self._table.get(name), self.bad(name), longest, clean=clean)

    def text_or_none(self, name: str, longest: int = limits.NAME_CHARS_MAX) -> str | None:
        return None if self._table.get(name) is None else self.text(name, longest)

    def many(
        self, name: str, longest: int, each: Callable[[Any, RemoteProtocolError], T]
    ) -> tuple[T, ...]:
        """A list of at most `longest`, every element through `each`; absent means empty."""
        value = self._table.get(name, [])
        error = self.bad(name)
        if not isinstance(value, list) or len(value) > longest:
            raise error
        return tuple(each(element, error) for element in value)

    def ranges(
        self, name: str, longest: int = limits.NEED_RANGES_MAX
    ) -> tuple[tuple[int, int], ...]:
        """Ranges (first, count), rising, apart and not empty."""
        found = self.many(name, longest, _pair)
        end = -1
        for first, count in found:
            if first <= end or count < 1:
                raise self.bad(name)
            end = first + count - 1
        if end > limits.INT_MAX:
            raise self.bad(name)
        return found

    def stamp(self, name: str) -> Stamp:
        error = self.bad(name)
        value = row(self._table.get(name), error, 4)
        return Stamp(
            number(value[0], error),
            number(value[1], error),
            text(value[2], error, limits.NAME_CHARS_MAX),
            octets(value[3], error, 32),
        )

    def coverage(self, name: str) -> Coverage:
        error = self.bad(name)
        value = row(self._table.get(name), error, 6)
        return Coverage(
            _counts(value[0], error),
            _counts(value[1], error),
            number(value[2], error),
            number(value[3], error),
            number(value[4], error),
            number(value[5], error),
        )


def row(value: Any, error: RemoteProtocolError, least: int) -> list[Any]:
    """A list of at least `least` elements; what a newer protocol appended is ignored."""
    if not isinstance(value, list) or len(value) < least:
        raise error
    return value


def number(value: Any, error: RemoteProtocolError, low: int = 0, high: int = limits.INT_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise error
    return value


def octets(value: Any, error: RemoteProtocolError, *sizes: int) -> bytes:
    if not isinstance(value, bytes) or (sizes and len(value) not in sizes):
        raise error
    return value


def text(value: Any, error: RemoteProtocolError, longest: int, *, clean: bool = True) -> str:
    """
    A string of at most `longest` characters.

    With `clean`, control characters, lone surrogates, line separators and
    bidi overrides are refused: nothing that is shown or compared as a name
    may look like something else.
    """
    if not isinstance(value, str) or len(value) > longest:
        raise error
    if clean and not value.isascii():
        for character in value:
            if character in _BIDI or unicodedata.category(character) in _FORBIDDEN:
                raise error
    elif clean and not value.isprintable():
        raise error
    return value


def _pair(value: Any, error: RemoteProtocolError) -> tuple[int, int]:
    pair = row(value, error, 2)
    return number(pair[0], error), number(pair[1], error)


def _counts(value: Any, error: RemoteProtocolError) -> dict[str, int]:
    if not isinstance(value, dict) or len(value) > limits.COUNTS_MAX:
        raise error
    return {
        text(name, error, limits.NAME_CHARS_MAX, clean=False): number(count, error)
        for name, count in value.items()
    }
