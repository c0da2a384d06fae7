"""
Redaction of whole texts: detect, replace, and look again until nothing is left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from imprintd.redact.detect import Detection
from imprintd.redact.found import Found, merge
from imprintd.redact.kinds import label
from imprintd.redact.profile import profile

ROUNDS_MAX: Final = 4
"""Looks at one text. Two are the rule; a text made to need more than this
loses everything between its first and its last new finding."""


@dataclass(frozen=True, slots=True)
class RedactedSpan:
    """
    One place that was removed.

    Attributes:
        start: First code point of the input text.
        end: Just past the last one.
        kind: One of `KINDS`.
    """

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """
    A redacted text.

    Attributes:
        text: The input with a label for every span.
        spans: In order, not overlapping.
    """

    text: str
    spans: tuple[RedactedSpan, ...]


class Redactor:
    """
    Finds secrets in decoded text and puts labels in their place.

    Deterministic, idempotent, and it never gives back what was removed. It is
    not claimed to find every secret.

    Args:
        cache_dir: Folder for compiled rules, made private; None: compile in memory.

    Attributes:
        profile: Hash of everything that decides the result.
    """

    __slots__ = ("_detection", "profile")

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._detection = Detection(cache_dir)
        self.profile: str = profile()

    def redact(self, text: str) -> Redacted:
        """Redact one text; anything a Python string can hold."""
        data = text.encode("utf-8", "surrogatepass")
        found = self._detection.find(data)
        if not found:
            return Redacted(text, ())
        spans = found
        for round_number in range(1, ROUNDS_MAX + 64):
            output, places = _replaced(data, spans)
            more = self._detection.find(output)
            if not more:
                break
            if round_number >= ROUNDS_MAX:
                more = [Found(more[0].start, more[-1].end, "secret")]
            spans = merge([*spans, *_carried(more, spans, places)])
        output, _ = _replaced(data, spans)
        return Redacted(output.decode("utf-8", "surrogatepass"), _in_code_points(data, spans))

    def redact_many(self, texts: Sequence[str]) -> list[Redacted]:
        """Redact texts; each as if it were alone."""
        return [self.redact(text) for text in texts]


def _replaced(data: bytes, spans: list[Found]) -> tuple[bytes, list[tuple[int, int]]]:
    """The text with labels, and where in it each label stands."""
    parts: list[bytes] = []
    places: list[tuple[int, int]] = []
    last = size = 0
    for span in spans:
        mark = label(span.kind).encode()
        parts += (data[last : span.start], mark)
        size += span.start - last
        places.append((size, size + len(mark)))
        size += len(mark)
        last = span.end
    parts.append(data[last:])
    return b"".join(parts), places


def _carried(more: list[Found], spans: list[Found], places: list[tuple[int, int]]) -> list[Found]:
    """Findings in the output, as places of the input."""
    lows = [low for low, _ in places]

    def back(place: int, *, is_end: bool) -> int:
        index = bisect_right(lows, place) - 1
        if index < 0:
            return place
        low, high = places[index]
        span = spans[index]
        if low < place < high:  # inside a label: all of what it stands for
            return span.end if is_end else span.start
        return span.start if place == low else place - high + span.end

    return [
        Found(back(found.start, is_end=False), back(found.end, is_end=True), found.kind)
        for found in more
    ]


def _in_code_points(data: bytes, spans: list[Found]) -> tuple[RedactedSpan, ...]:
    if data.isascii():
        return tuple(RedactedSpan(*span) for span in spans)
    result = []
    last = count = 0
    for span in spans:
        count += len(data[last : span.start].decode("utf-8", "surrogatepass"))
        start = count
        count += len(data[span.start : span.end].decode("utf-8", "surrogatepass"))
        last = span.end
        result.append(RedactedSpan(start, count, span.kind))
    return tuple(result)
