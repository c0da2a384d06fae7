"""
Excerpts: the stretch of a long content that shows best why it was found.

Bounded in size whatever the content, centred where the most different terms
stand together, cut at word ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from imprintd.errors import UsageError
from imprintd.text import ends

TERMS_MAX: Final = 32
MATCHES_MAX: Final = 4000
"""Matches looked at; a word that is everywhere needs no more of them."""

_WORD_REACH: Final = 24
"""How far a cut moves to meet a word end."""


def excerpt(
    content: str, terms: Sequence[str] | Sequence[tuple[int, int]], limit: int
) -> tuple[int, int, str]:
    """
    The best stretch of a content for some search terms.

    Args:
        content: All of it.
        terms: Words (or their stems: a match begins a word, in any case), or
            spans of matches already known, `content[start:end]`.
        limit: Most characters to give, at least 1.

    Returns:
        Start, end and `content[start:end]`; the beginning when nothing matches.

    Raises:
        UsageError: `limit` is below 1.
    """
    if limit < 1:
        raise UsageError("an excerpt has at least one character")
    if len(content) <= limit:
        return 0, len(content), content
    start, end = _densest(_matches(content, terms), limit)
    spare = limit - (end - start)
    low = max(0, min(start - spare // 2, len(content) - limit))
    high = min(len(content), low + limit)
    first = _start(content, low, min(start, high - 1) if end else low)
    last = _end(content, max(end, first + 1), high)
    return first, last, content[first:last]


def _matches(
    content: str, terms: Sequence[str] | Sequence[tuple[int, int]]
) -> list[tuple[int, int, str]]:
    """Matches in order of place: start, end, which term."""
    spans = [t for t in terms if not isinstance(t, str)]
    if spans:
        size = len(content)
        known = sorted((a, b) for a, b in spans if 0 <= a < b <= size)[:MATCHES_MAX]
        return [(a, b, content[a:b].casefold()) for a, b in known]
    words = sorted({t for t in terms if isinstance(t, str) and t}, key=len, reverse=True)[
        :TERMS_MAX
    ]
    if not words:
        return []
    joined = "|".join(map(re.escape, words))
    # the underscore counts as a blank, as it does in the index
    for before in (r"(?<![^\W_])", ""):
        found = []
        for match in re.finditer(f"{before}(?:{joined})", content, re.IGNORECASE):
            found.append((match.start(), match.end(), match[0].casefold()))
            if len(found) == MATCHES_MAX:
                break
        if found:
            return found
    return []


def _densest(matches: list[tuple[int, int, str]], limit: int) -> tuple[int, int]:
    """The stretch of at most `limit` with most different terms, then most matches."""
    best = (0, 0)
    place = (0, 0)
    inside: Counter[str] = Counter()
    left = 0
    for right, (start, reach, term) in enumerate(matches):
        end = min(reach, start + limit)
        inside[term] += 1
        while left <= right and end - matches[left][0] > limit:
            gone = matches[left][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            left += 1
        score = (len(inside), right - left + 1)
        if left <= right and score > best:
            best, place = score, (matches[left][0], end)
    return place


def _start(content: str, low: int, high: int) -> int:
    """A word start in [low, high], near `low`."""
    if low == 0 or content[low - 1].isspace():
        return low
    at = ends.word_start(content, low, min(high, low + _WORD_REACH))
    if at >= 0:
        return at
    for place in range(low, min(high, low + 8) + 1):
        if ends.whole(content, place, 0) == place:
            return place
    return low


def _end(content: str, low: int, high: int) -> int:
    """A word end in [low, high], near `high`."""
    if high == len(content) or content[high].isspace():
        return high
    at = ends.word_end(content, max(low, high - _WORD_REACH), high)
    line = ends.line_end(content, max(low, high - _WORD_REACH), high)
    at = max(at, line)
    # the blank itself is left out
    return at - 1 if at > low else ends.whole(content, high, low)
