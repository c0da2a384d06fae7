"""
Where in a chunk the match is, and what is shown of it: pure given a tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from imprintd.model.event import EventSpan
from imprintd.search.ports import Asked
from imprintd.search.words import body_spans, window_spans
from imprintd.text.excerpt import excerpt

EXCERPT_CHARS: Final = 400

COMMON_HERE: Final = 8
"""A word that stands more often in a region does not tell where to look."""

Tokens = Callable[[str], Sequence[tuple[str, int, int]]]
"""A text's words as they are indexed, each with its span."""


@dataclass(frozen=True, slots=True)
class Match:
    """
    A match inside a chunk.

    Attributes:
        event: The event under it; None for files.
        share: How much of what was asked (by weight) that event holds, against
            the best event of the chunk whatever its role and kind: 0 to 1.
        start: First character of the excerpt in the source.
        end: One past its last.
    """

    event: EventSpan | None
    share: float
    start: int
    end: int
    excerpt: str


def locate(
    content: str,
    base: int,
    events: Sequence[EventSpan],
    weights: Mapping[str, float],
    tokens: Tokens,
    asked: Asked,
    *,
    part: int | None,
    window: tuple[int, int] | None,
) -> Match | None:
    """
    Find the match in a chunk.

    Args:
        content: The chunk's text.
        base: Position of its first character in the source.
        events: Its events; none for files.
        weights: Stems of the question and how telling each is.
        tokens: The index's tokenizer.
        asked: For its filters by role and kind.
        part: Window of the word match, None where words did not match.
        window: Window of the vector match and how many there are.

    Returns:
        None where no event that passes the filters holds the match.
    """
    first, last = _region(content, part, window)
    found = [
        (weights[stem], stem, start + first, end + first)
        for stem, start, end in tokens(content[first:last])
        if stem in weights
    ]
    if not events:
        if asked.role is not None or asked.kind is not None:
            return None
        return _shown(content, base, None, 1.0, first, last, _telling(found))
    bodies = body_spans(content, base, events)
    scored = []
    for event, (low, high) in zip(events, bodies, strict=True):
        if low >= last or high <= first:
            continue
        inside = [item for item in found if low <= item[2] < high]
        held = {stem: weight for weight, stem, _, _ in inside}
        overlap = min(high, last) - max(low, first)
        passes = asked.role in (None, event.role) and asked.kind in (None, event.kind)
        scored.append((sum(held.values()), overlap, passes, event, (low, high), inside))
    if not scored:
        return None
    top = max(item[0] for item in scored)
    chosen = [item for item in scored if item[2] and (item[0] > 0 or top == 0 or window)]
    if not chosen:
        return None
    score, _, _, event, (low, high), inside = max(chosen, key=lambda item: item[:2])
    share = score / top if top > 0 else 1.0
    low, high = max(low, first), min(high, last)
    return _shown(content, base, event, share, low, high, _telling(inside))


def _telling(found: Sequence[tuple[float, str, int, int]]) -> list[tuple[int, int]]:
    """Spans of the words that are not everywhere in the region, else of all."""
    counts = Counter(stem for _, stem, _, _ in found)
    rare = [(a, b) for _, stem, a, b in found if counts[stem] <= COMMON_HERE]
    return rare or [(a, b) for _, _, a, b in found]


def _region(content: str, part: int | None, window: tuple[int, int] | None) -> tuple[int, int]:
    """The stretch of a content that was matched."""
    if part is not None:
        spans = window_spans(content)
        return spans[min(part, len(spans) - 1)]
    if window is not None:
        number, count = window
        # Windows are of equal tokens, so nearly of equal characters.
        width = len(content) / max(count, 1)
        return int(number * width), min(len(content), int((number + 1) * width) + 1)
    return 0, min(len(content), 8000)


def _shown(
    content: str,
    base: int,
    event: EventSpan | None,
    share: float,
    low: int,
    high: int,
    spans: Sequence[tuple[int, int]],
) -> Match:
    """The excerpt, widened beyond a short event into what stands around it."""
    if high - low < EXCERPT_CHARS:
        high = min(len(content), max(high, low + EXCERPT_CHARS))
    piece = content[low:high]
    inside = [(a - low, b - low) for a, b in spans if low <= a and b <= high]
    start, end, text = excerpt(piece, inside, EXCERPT_CHARS)
    return Match(event, share, base + low + start, base + low + end, text)
