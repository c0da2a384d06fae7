"""
Which words of a chunk are indexed and which words of a question are asked.

Pure functions. A chunk is indexed in windows of at most 6,000 characters, so
that a long one neither crowds out short ones nor buries what it holds; event
headers are left out, because every event has one and they would only dilute.
Scripts written without spaces are taken apart into characters and asked for
in pairs that stand together.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from imprintd.model.event import EventSpan
from imprintd.text.canonical import MARK, header_at

WINDOW_CHARS_MAX: Final = 6000
WINDOW_OVERLAP: Final = 200
"""So that words on both sides of a cut are still found together."""

QUESTION_CHARS_MAX: Final = 4000
"""A pasted log counts up to here."""

WORDS_MAX: Final = 64
"""Different words of a question that are looked at."""

_UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul: spaced by phrase, not by word
    "\U00020000-\U0003ffff"
)
_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_RUN: Final = re.compile(f"[{_UNSPACED}]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_QUOTED: Final = re.compile(r'"([^"]+)"|“([^”]+)”')
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ALNUM: Final = re.compile(r"[^\W_]+")

_STOP: Final = """
    a about am an and are as at be been being but by can could did do does for from had has have
    he her him his how i if in into is it its me my of on or our s she should so t than that the
    their them then there these they this those to us was we were what when where which who whom
    whose why will with would you your
    """
_DAY: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?=T|\b)", re.ASCII)
_MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
STOP_WORDS: Final = frozenset(_STOP.split())


@dataclass(frozen=True, slots=True)
class Asking:
    """
    A question taken apart.

    Attributes:
        words: Optional words as typed; identifiers and paths in one piece.
        phrases: Quoted parts: required, words together and in order.
        runs: Pieces of scripts without spaces, each a run of characters.
        joined: Two or three neighbouring words in one, as identifiers join
            them; most exist nowhere.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing can be looked up."""
        return not (self.words or self.phrases or self.runs)


def ask(text: str) -> Asking:
    """
    Take a question apart. No character of it is an operator, except that
    double quotes around something ask for it as it stands.
    """
    text = clean(text[:QUESTION_CHARS_MAX])
    phrases = []
    for match in _QUOTED.finditer(text):
        phrase = (match[1] or match[2]).strip()
        if _ALNUM.search(phrase):
            phrases.append(phrase)
    rest = _QUOTED.sub(" ", text)
    runs = tuple(dict.fromkeys(_RUN.findall(rest)))[:WORDS_MAX]
    typed = [w for w in _RUN.sub(" ", rest).split() if _ALNUM.search(w)]
    words = dict.fromkeys(typed)
    telling = [w for w in words if _bare(w) not in STOP_WORDS]
    if not telling and not phrases and not runs:
        telling = list(words)
    return Asking(tuple(telling[:WORDS_MAX]), tuple(phrases[:8]), runs, _joined(typed[:WORDS_MAX]))


def _joined(typed: Sequence[str]) -> tuple[str, ...]:
    found = []
    for count in (2, 3):
        for at in range(len(typed) - count + 1):
            group = typed[at : at + count]
            if all(map(str.isalnum, group)) and not STOP_WORDS.issuperset(map(str.lower, group)):
                found.append("".join(group))
    return tuple(dict.fromkeys(found))


def _bare(word: str) -> str:
    """A word without what stands around it; `don't` counts as `don`, `it's` as `it`."""
    parts = _ALNUM.findall(word.lower())
    if len(parts) == 2 and parts[1] in {"s", "t", "d", "m", "ll", "re", "ve"}:
        return "not" if parts[1] == "t" else parts[0]
    return "".join(parts) if len(parts) == 1 else word


def humps(word: str) -> list[str]:
    """`getUserName` as `get`, `User`, `Name`; one part where there are no humps."""
    return [part for part in _HUMP.split(word) if part]


def pairs(run: str) -> list[str]:
    """Neighbouring characters of a run, two at a time; one character alone stays."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def clean(text: str) -> str:
    """Text in composed form and without lone surrogates."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text))


def spaced(text: str) -> str:
    """Text as it is indexed: every character of an unspaced script is a word."""
    if text.isascii():
        return text
    return _CHARACTER.sub(r" \g<0> ", clean(text))


def set_apart(text: str) -> tuple[str, list[tuple[str, int, int]]]:
    """
    Text with blanks for characters of unspaced scripts, and those with their spans.

    Of the same length, so that spans in it are spans in `text`.
    """
    if text.isascii():
        return text, []
    alone = [(match[0], match.start(), match.end()) for match in _CHARACTER.finditer(text)]
    return _CHARACTER.sub(" ", _SURROGATE.sub("\ufffd", text)), alone


def window_spans(content: str) -> list[tuple[int, int]]:
    """
    Spans of a content's windows, in order; together they cover it.

    Of similar size, cut at line ends where one is near; neighbours overlap.
    An empty content has one empty window.
    """
    length = len(content)
    room = WINDOW_CHARS_MAX - WINDOW_OVERLAP
    count = max(1, -(-(length - WINDOW_OVERLAP) // room))
    if count == 1:
        return [(0, length)]
    size = -(-(length - WINDOW_OVERLAP) // count)
    spans = []
    start = 0
    while start + size + WINDOW_OVERLAP < length:
        end = start + size + WINDOW_OVERLAP
        line = content.rfind("\n", end - WINDOW_OVERLAP // 2, end)
        end = line + 1 if line >= 0 else end
        spans.append((start, end))
        start = end - WINDOW_OVERLAP
    spans.append((start, length))
    return spans


def body_spans(content: str, base: int, events: Sequence[EventSpan]) -> list[tuple[int, int]]:
    """
    Where a chunk's text is anything but event headers, in characters of `content`.

    Args:
        content: The chunk's text.
        base: Position of its first character in the source.
        events: Its events in positions of the source; none for files.
    """
    if not events:
        return [(0, len(content))]
    spans = []
    for number, event in enumerate(events):
        start, end = event.start - base, event.end - base
        if number:
            # Only a chunk's first event can have begun before it: here is a header.
            start = min(end, content.find("\n", start, end) + 1 or end)
        elif content.startswith(MARK, start):
            header = header_at(content, start)
            # A body that goes on here from the chunk before may begin with a
            # line like a header; a true one says where its event ends.
            if header is not None and (
                start + header.span_chars == end
                or (end == len(content) and start + header.span_chars > end)
            ):
                start = min(end, start + header.length + 1)
        spans.append((start, end))
    return spans


def bare_text(content: str, bodies: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """What of `content[start:end]` lies in bodies, each on a line of its own."""
    parts = [
        content[max(start, first) : min(end, last)]
        for first, last in bodies
        if first < end and last > start
    ]
    return "\n".join(parts)


def day_words(timestamps: Iterable[str | None]) -> str:
    """
    The first and the last day of some ISO timestamps in words: `5 November 2026`.

    People ask for what was said in November; headers are not indexed.
    """
    days = sorted(match[0] for one in timestamps if one and (match := _DAY.match(one)))
    return " ".join(
        f"{int(day[8:])} {_MONTHS[int(day[5:7]) - 1]} {day[:4]}"
        for day in dict.fromkeys((*days[:1], *days[-1:]))
    )


def fold_key(content: str, bodies: Sequence[tuple[int, int]]) -> int:
    """
    63 bits that are equal where the bodies say the same.

    The same message stored twice differs in its headers (times, call ids).
    """
    digest = hashlib.sha256()
    for first, last in bodies:
        body = content[first:last].strip()
        digest.update(body.encode("utf-8", "surrogatepass") + b"\0")
    return int.from_bytes(digest.digest()[:8], "big") >> 1
