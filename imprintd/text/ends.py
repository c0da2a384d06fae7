"""
Where a text may be cut: paragraph, line and word ends, whole characters.

All positions are code points. Every function looks at a bounded stretch and
answers in time that does not grow with the text.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_JOINER: Final = "\u200d"
_SPACES: Final = (" ", "\t", "\u3000", "\u3002")
_RUN_MAX: Final = 32
"""Steps taken to leave a run of combining marks; longer ones are hostile."""


def best_end(text: str, low: int, high: int) -> int:
    """
    The best place to end a piece, in (low, high].

    The last paragraph end there, else the last line end, else the last word
    end, else the last whole character.
    """
    at = paragraph_end(text, low, high)
    if at < 0:
        at = line_end(text, low, high)
    if at < 0:
        at = word_end(text, low, high)
    return at if at >= 0 else whole(text, high, low + 1)


def paragraph_end(text: str, low: int, high: int) -> int:
    """Just past the last blank line that ends in (low, high], or -1."""
    unix = text.rfind("\n\n", low, high)
    dos = text.rfind("\n\r\n", low, high)
    return max(unix + 2 if unix >= 0 else -1, dos + 3 if dos >= 0 else -1)


def line_end(text: str, low: int, high: int) -> int:
    """Just past the last newline in [low, high), or -1."""
    at = text.rfind("\n", low, high)
    return at + 1 if at >= 0 else -1


def word_end(text: str, low: int, high: int) -> int:
    """Just past the last blank (or ideographic stop) in [low, high), or -1."""
    at = max(text.rfind(space, low, high) for space in _SPACES)
    return at + 1 if at >= 0 else -1


def word_start(text: str, low: int, high: int) -> int:
    """Just past the first newline in [low, high), else first blank; else -1."""
    at = text.find("\n", low, high)
    if at < 0:
        found = [i for space in _SPACES if (i := text.find(space, low, high)) >= 0]
        at = min(found, default=-1)
    return at + 1 if at >= 0 else -1


def whole(text: str, at: int, low: int) -> int:
    """
    The last position in [low, at] that splits no character a reader sees.

    Keeps together a surrogate pair, a CR with its LF, and a letter with its
    combining marks, variation selectors, joiners and skin tones. A run longer
    than any real one is split after all, but never a surrogate pair.
    """
    if not 0 < at < len(text):
        return at
    if text[at] < "\u0300" and text[at - 1] < "\u0300" and text[at] != "\n":
        return at
    best = at
    lowest = max(low, at - _RUN_MAX, 1)
    while best >= lowest:
        if not _joined(text[best - 1], text[best]):
            return best
        best -= 1
    return at - 1 if at > low and _is_pair(text[at - 1], text[at]) else at


def _joined(before: str, after: str) -> bool:
    if after < "\u0300":
        return (before == "\r" and after == "\n") or before == _JOINER
    return (
        _JOINER in (before, after)
        or _is_pair(before, after)
        or unicodedata.category(after) in {"Mn", "Mc", "Me"}
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )


def _is_pair(before: str, after: str) -> bool:
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
