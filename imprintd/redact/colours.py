"""
The text as it looks on a terminal: without colour codes, offsets kept.

A colour may change between a name and its value, or inside a token. Detection
runs on the text without the codes; findings are carried back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

SEED: Final = "\\x1b|\\\\(?:u001[bB]|x1[bB]|033|e)\\["
"""What the prefilter looks for."""

_REST: Final = rb"(?:\[[0-9;:?]{0,32}[A-Za-z]|\][^\x07\x1b\\\n]{0,256}(?:\x07|\x1b\\)|\([AB0])"
_RAW: Final = re.compile(rb"\x1b" + _REST)
_SPELLED: Final = re.compile(rb"\\(?:u001[bB]|x1[bB]|033|e)" + _REST)


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
        # Two searches for one fixed byte each are many times faster than one for either.
        codes = [code.span() for code in _RAW.finditer(data)]
        if b"\\" in data:
            codes += [code.span() for code in _SPELLED.finditer(data)]
            codes.sort()
        for begin, end in codes:
            start = begin
            while start > last and data[start - 1] == 92 and data[start] == 92:
                start -= 1  # the backslashes of a deeper escape
            if start < last:
                continue
            parts.append(data[last:start])
            kept += start - last
            last = end
            self._starts.append(kept)
            self._sums.append(last - kept)
        parts.append(data[last:])
        self.data = b"".join(parts)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The same place in the original; codes at the edges stay outside."""
        return self._at(start), self._at(end - 1) + 1

    def _at(self, place: int) -> int:
        return place + self._sums[bisect_right(self._starts, place) - 1]
