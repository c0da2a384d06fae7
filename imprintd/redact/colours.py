"""
The text as it looks on a terminal: without colour codes, offsets kept.

A colour may change between a name and its value, or inside a token. Detection
runs on the text without the codes; findings are carried back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_CODE: Final = re.compile(
    rb"(?:\x1b|\\+u001[bB]|\\+x1[bB]|\\+033|\\+e)(?:\[[0-9;:?]{0,32}[A-Za-z]|\][^\x07\x1b\\\n]{0,256}(?:\x07|\x1b\\)|\([AB0])"
)


def coloured(data: bytes) -> bool:
    """Whether a colour code may be in the text."""
    return b"\x1b" in data or (
        b"\\" in data and (b"1b[" in data or b"1B[" in data or b"033[" in data or b"\\e[" in data)
    )


class Plain:
    """
    The text without colour codes.

    Attributes:
        data: What remains.
    """

    __slots__ = ("_starts", "_sums", "data")

    def __init__(self, data: bytes) -> None:
        parts: list[bytes] = []
        self._starts = [0]
        self._sums = [0]
        last = kept = 0
        for code in _CODE.finditer(data):
            parts.append(data[last : code.start()])
            kept += code.start() - last
            last = code.end()
            self._starts.append(kept)
            self._sums.append(last - kept)
        parts.append(data[last:])
        self.data = b"".join(parts)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The same place in the original; codes at the edges stay outside."""
        return self._at(start), self._at(end - 1) + 1

    def _at(self, place: int) -> int:
        return place + self._sums[bisect_right(self._starts, place) - 1]
