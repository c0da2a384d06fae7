"""
The reduced view: what a long tool event is embedded from.

A log of a hundred thousand characters mostly repeats itself. Its view keeps
the header, the opening lines, the lines that report a problem, one of a
shape, and the closing lines; runs of lines that differ only in numbers and
hex identifiers collapse, and every gap says how many lines it leaves out.

The view is a function of content and limits alone, so that every way in to
embedding computes the same. Only chunks over `hard_max` are reduced, and under
its own limits the chunker makes such chunks of tool events only. A later piece
of an event over `piece` does not begin with a header: it is reduced by the
same rules, without one. A message that is too long all the same (its chunk was
cut under wider limits) is no log; it keeps its beginning as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from imprintd.model.snapshot import Limits
from imprintd.text import ends
from imprintd.text.canonical import header_at
from imprintd.text.chunking import TOOL_KINDS

VIEW_RULES: Final = "view 1"
"""Changes with every change of these rules; part of a vector's fingerprint."""

HEADER_CHARS_MAX: Final = 300
"""A header is rarely over 120 characters; a hostile call id is cut here."""

PROBLEM_CHARS_MAX: Final = 300
"""Of one problem line, around the word that reports it."""

_INSIDE_CHARS_MAX: Final = PROBLEM_CHARS_MAX + 20
"""Of a problem inside a huge line, with its mark."""

RUN_LINES_MIN: Final = 3

_SCRAP_CHARS: Final = 40
"""Less of a line than this is not worth showing."""

_GAP_CHARS: Final = 40
"""Room for one mark of omission."""

_VARYING: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b0x[0-9a-f]+\b"
    r"|\b(?=[a-f]*[0-9])[0-9a-f]{2,}\b"
    r"|\b[0-9a-f]{8,}\b"
    r"|[0-9]+",
    re.ASCII | re.IGNORECASE,
)
_BLANKS: Final = re.compile(r"[ \t\r]+")
# Matched against lower-case lines: a pattern that minds the case, every branch of
# which begins with a letter, skips over other letters several times faster.
_SEVERE: Final = re.compile(
    r"error|exception|traceback|fail(?:ed|ures?|ing|s)?\b|fatal|panic|abort(?:ed|ing)?\b"
    r"|tim(?:ed?|ing)[ -]?out|not found|no such|missing|cannot|could ?n[o']t|can't|unable to"
    r"|denied|refused|forbidden|undefined|unresolved|invalid|unexpected|rejected|conflict\b"
    r"|segmentation fault|core dumped|out of memory|killed\b(?<!skilled)|assert"
    r"|exit(?:ed)?(?: with)?(?: (?:code|status))?[: =]+-?[1-9]|non-?zero"
)
_MILD: Final = re.compile(r"warn(?:ing|ings)?\b|deprecated|exit(?: code| status|ed)")
_FINE: Final = re.compile(
    r"\b(?:0|no) (?:errors?|failures?|failed|failing|warnings?|problems?|conflicts?)\b"
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One line, or a run of like lines shown as its first and a count."""

    text: str
    shape: str
    lines: int


def embedding_text(content: str, limits: Limits) -> str:
    """
    The text that a chunk's vectors are computed from.

    Args:
        content: The chunk's content.
        limits: Chunker limits; part of the vector's fingerprint.

    Returns:
        The content itself up to `hard_max` characters, else a reduced view of
        at most `size_prose` characters (a whole message: `hard_max`).
    """
    if len(content) <= limits.hard_max:
        return content
    header = header_at(content, 0)
    if header is not None and header.event.kind not in TOOL_KINDS:
        low = limits.hard_max // 2
        return content[: ends.best_end(content, low, limits.hard_max)]
    length = header.length if header else 0
    return _view(content[:length], content[length + 1 if header else 0 :], limits.size_prose)


def _view(header: str, body: str, size: int) -> str:
    head = _clipped(header, min(HEADER_CHARS_MAX, size // 4))
    items = _collapsed(body.removesuffix("\n"))
    opening, closing = size * 2 // 5, size // 5
    first, opened = _whole_lines(items, opening)
    if first == len(items):
        return _fitted([head, *(i.text for i in items)], size)
    last, closed = _whole_lines(items[first:][::-1], closing)
    last = len(items) - last
    opening_left, closing_left = opening - opened, closing - closed
    spare = size - opening - closing - len(head) - 2 * _GAP_CHARS - 4
    parted: list[tuple[int, int, int | None]] = [
        (first, opening_left, None),
        (last - 1, closing_left, None),
    ]
    if last - first == 1:
        # one line is left between them: it shows its start above and its end below
        parted = [(first, opening_left + closing_left, closing_left)]
    shown: dict[int, str] = {}
    for index, left, tail in parted if last > first else []:
        text = items[index].text
        # a scrap of an ordinary line says little; of a huge one it is all there is
        if left >= len(text) or (left >= _SCRAP_CHARS and len(text) > PROBLEM_CHARS_MAX):
            problem = _hidden_problem(text, left, tail) if spare > _INSIDE_CHARS_MAX else ""
            shown[index] = _clipped(text, left, tail, problem)
            spare -= len(problem)
    _add_problems(items, range(first, last), shown, spare)
    parts = [head, *(i.text for i in items[:first])]
    gap = 0
    for index in range(first, last):
        if index in shown:
            parts += [_gap(gap), shown[index]]
            gap = 0
        else:
            gap += items[index].lines
    parts += [_gap(gap), *(i.text for i in items[last:])]
    return _fitted(parts, size)


def _whole_lines(items: list[_Item], budget: int) -> tuple[int, int]:
    """How many items fit from the start, and the characters they take."""
    used = 0
    for count, item in enumerate(items):
        if used + len(item.text) + 1 > budget:
            return count, used
        used += len(item.text) + 1
    return len(items), used


def _add_problems(items: list[_Item], between: range, shown: dict[int, str], spare: int) -> None:
    """Problem lines, errors before warnings, one of a shape, while there is room."""
    shapes = {items[i].shape for i in shown}
    for pattern in (_SEVERE, _MILD):
        for index in between:
            if spare < _SCRAP_CHARS:
                return
            item = items[index]
            if index in shown or item.shape in shapes:
                continue
            low = item.text.lower()
            match = pattern.search(low)
            if match is None or not pattern.search(_FINE.sub("", low)):
                continue
            text = _around(item.text, match.start(), min(PROBLEM_CHARS_MAX, spare))
            cost = len(text) + 1 + _GAP_CHARS
            if cost > spare:
                continue
            shapes.add(item.shape)
            shown[index] = text
            spare -= cost


def _collapsed(body: str) -> list[_Item]:
    lines = body.split("\n")
    # one pass over the whole text: no pattern reaches across a newline
    shapes = _BLANKS.sub(" ", _VARYING.sub("0", body)).split("\n")
    items: list[_Item] = []
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and shapes[end] == shapes[at]:
            end += 1
        if end - at >= RUN_LINES_MIN:
            text = f"{lines[at]}\n[… {end - at - 1} more lines like this …]"
            items.append(_Item(text, shapes[at], end - at))
        else:
            items += [_Item(line, shapes[at], 1) for line in lines[at:end]]
        at = end
    return items


def _gap(lines: int) -> str:
    return f"[… {lines} lines omitted …]" if lines else ""


def _clipped(text: str, limit: int, tail: int | None = None, problem: str = "") -> str:
    """The start and the end in at most `limit` characters, and a problem between them."""
    if len(text) <= limit:
        return text
    start, end = _hidden(text, limit, tail)
    if start == end:
        return text[: ends.whole(text, limit, 0)]
    return f"{text[:start]} [… {len(text) - limit} characters …] {problem}{text[end:]}"


def _hidden(text: str, limit: int, tail: int | None) -> tuple[int, int]:
    """The stretch that a clipped text leaves out; empty where there is no room for both ends."""
    room = limit - len(f" [… {len(text) - limit} characters …] ")
    if room < _SCRAP_CHARS:
        return 0, 0
    keep = min(room * 2 // 3, room // 3 if tail is None else tail)
    return ends.whole(text, room - keep, 0), _from(text, len(text) - keep)


def _hidden_problem(text: str, limit: int, tail: int | None) -> str:
    """The first error that clipping would hide: logs come as one line of JSON, too."""
    if len(text) <= limit:
        return ""
    start, end = _hidden(text, limit, tail)
    hidden = text[start:end]
    match = _SEVERE.search(hidden.lower())
    if match is None:
        return ""
    return _around(hidden, match.start(), PROBLEM_CHARS_MAX) + " [… more …] "


def _around(text: str, at: int, limit: int) -> str:
    """A stretch of a long line around `at`."""
    if len(text) <= limit:
        return text
    start = max(0, min(at - limit // 3, len(text) - limit + 4))
    end = ends.whole(text, min(len(text), start + limit - 4), start)
    start = _from(text, start)
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


def _from(text: str, at: int) -> int:
    """The first whole character at or after a position, a few steps on at most."""
    for place in range(at, min(at + 4, len(text))):
        if ends.whole(text, place, 0) == place:
            return place
    return at


def _fitted(parts: list[str], size: int) -> str:
    text = "\n".join(part for part in parts if part)
    return text if len(text) <= size else text[: ends.whole(text, size, 0)]
