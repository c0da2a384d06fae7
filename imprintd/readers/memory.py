"""
The small bounded memories a reader carries from one reading to the next.

They hold digests only: a reader's state is stored, and no unredacted text may
reach the disk.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import orjson

from imprintd.errors import SourceError

KEY_BYTES: Final = 8
_RUN_CHARS_MAX: Final = 50_000
_RUN_LINES_MAX: Final = 100
_PASS_KEYS_MAX: Final = 200_000
"""Distinct records one fresh pass tells apart by count."""


def digest(text: str) -> bytes:
    """
    Eight bytes that name some text; lone surrogates are allowed.

    Callers put the kind of thing and a NUL before it, so that a call and a
    uuid of the same letters are two things.
    """
    try:
        packed = text.encode()
    except UnicodeEncodeError:
        packed = text.encode(errors="surrogatepass")
    return blake2b(packed, digest_size=KEY_BYTES).digest()


def record_digest(kind: bytes, record: Any) -> bytes:
    """Eight bytes that name a decoded record by its content."""
    try:
        packed = orjson.dumps(record)
    except (TypeError, ValueError):
        packed = json.dumps(record, separators=(",", ":")).encode(errors="surrogatepass")
    return blake2b(kind + b"\0" + packed, digest_size=KEY_BYTES).digest()


class Copies:
    """
    Texts taken once whose second copy is still to come, oldest first.

    A copy is recognised by content, each text as often as it was put in, so a
    genuine resend is no copy.
    """

    __slots__ = ("_items", "_size_max")

    def __init__(self, size_max: int, packed: Iterable[str] = ()) -> None:
        self._items: list[frozenset[bytes]] = [
            frozenset(bytes.fromhex(one) for one in item.split("+")) for item in packed
        ]
        self._size_max = size_max

    def put(self, *texts: str) -> None:
        """Expect a copy under any of these spellings."""
        self._items.append(frozenset(digest("copy\0" + text.strip()) for text in texts))
        if len(self._items) > self._size_max:
            del self._items[0]

    def take(self, *texts: str) -> bool:
        """Whether one of these texts is an expected copy; it is then used up."""
        if not self._items:
            return False
        names = {digest("copy\0" + text.strip()) for text in texts}
        for index, item in enumerate(self._items):
            if item & names:
                del self._items[index]
                return True
        return False

    def take_run(self, text: str) -> bool:
        """Whether a text is several expected copies joined by line ends."""
        if len(self._items) < 2 or len(text) > _RUN_CHARS_MAX:
            return False
        lines = text.strip().split("\n")
        if len(lines) > _RUN_LINES_MAX:
            return False
        left = list(self._items)
        at = 0
        while at < len(lines):
            for end in range(at + 1, len(lines) + 1):
                name = digest("copy\0" + "\n".join(lines[at:end]).strip())
                hit = next((item for item in left if name in item), None)
                if hit is not None:
                    left.remove(hit)
                    at = end
                    break
            else:
                return False
        self._items = left
        return True

    def clear(self) -> None:
        """Expect nothing any more."""
        self._items.clear()

    def pack(self) -> list[str]:
        """For the state."""
        return ["+".join(sorted(name.hex() for name in item)) for item in self._items]


class Seen:
    """The last few distinct texts of something that is taken once."""

    __slots__ = ("_names", "_size_max")

    def __init__(self, size_max: int, packed: Iterable[str] = ()) -> None:
        self._names: dict[str, None] = dict.fromkeys(packed)
        self._size_max = size_max

    def add(self, text: str) -> bool:
        """Remember a text; False if it was known already."""
        name = digest("seen\0" + text).hex()
        known = self._names.pop(name, 0) is None
        self._names[name] = None
        if len(self._names) > self._size_max:
            del self._names[next(iter(self._names))]
        return not known

    def take(self, text: str) -> bool:
        """Whether a text is remembered; it is then forgotten."""
        return self._names.pop(digest("seen\0" + text).hex(), 0) is None

    def __contains__(self, text: str) -> bool:
        return digest("seen\0" + text).hex() in self._names

    def pack(self) -> list[str]:
        """For the state."""
        return list(self._names)


class Occurrences:
    """How often each record was met in one fresh pass, for records without ids."""

    __slots__ = ("_counts",)

    def __init__(self, packed: str = "") -> None:
        raw = base64.b85decode(packed)
        step = KEY_BYTES + 2
        self._counts = {
            raw[at : at + KEY_BYTES]: int.from_bytes(raw[at + KEY_BYTES : at + step])
            for at in range(0, len(raw), step)
        }

    def next(self, key: bytes) -> int:
        """Count a record; 1 for its first time in this pass."""
        count = self._counts.get(key, 0) + 1
        if count > 1 or len(self._counts) < _PASS_KEYS_MAX:
            self._counts[key] = min(count, 0xFFFF)
        return count

    def pack(self) -> str:
        """For the state."""
        raw = b"".join(key + count.to_bytes(2) for key, count in self._counts.items())
        return base64.b85encode(raw).decode()


def unpacked(state: bytes, version: int) -> dict[str, Any]:
    """
    A reader's state as it was handed back, empty at the start.

    Raises:
        SourceError: It is not a state of this reader.
    """
    if not state:
        return {}
    try:
        table = orjson.loads(state)
        if table["v"] == version:
            return dict(table)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise SourceError(
        "the stored place in this transcript cannot be used",
        reason="reader-state",
        remedy="imprintd refresh --force reads the transcript from its start",
    )
