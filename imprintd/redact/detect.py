"""
Everything that is looked for in one text, by one pass of the prefilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from imprintd.redact import assign, commands, keys, network, shapes
from imprintd.redact.colours import SEED, Plain
from imprintd.redact.engine import Pattern, Prefilter
from imprintd.redact.formats import FORMATS
from imprintd.redact.found import Found, merge
from imprintd.redact.kinds import LABEL
from imprintd.redact.library import Library

Detector = Callable[[bytes, int, list[Found]], int]

# (pattern, detector, whether the detector wants the start of the match)
_RULES: Final[tuple[tuple[str, Detector, bool], ...]] = (
    (assign.ASSIGN, assign.assignment, False),
    (assign.CALL, assign.call, False),
    (assign.COMMA, assign.comma, False),
    (assign.MARKUP, assign.markup, False),
    (assign.COLUMN, assign.column, False),
    (assign.FLAG, assign.flag, False),
    (assign.FIELD, assign.field, False),
    ("default[ \\t]{0,20}=", assign.default, False),
    (network.USERINFO, network.userinfo, False),
    (network.LONELY, network.lonely, True),
    (network.HEADER, network.header, False),
    (network.COOKIE, network.cookie, False),
    (network.QUERY, network.query, False),
    (network.DSN, network.dsn, False),
)
_EXACT: Final[tuple[tuple[str, Detector], ...]] = (
    (keys.BEGIN, keys.begun),
    (keys.END, keys.ended),
    (keys.HEADLESS, keys.headless),
    (keys.ENCODED, keys.encoded),
    (keys.BLOCK, keys.block),
)
_EXACT_FIRST: Final = 100
_BLOCK: Final = _EXACT_FIRST + len(_EXACT) - 1
_PHRASE_FIRST: Final = 200
_FORMAT_FIRST: Final = 1000

_WRAPPED: Final = 300
_COLOUR: Final = 301
_LABEL: Final = 302
_PART: Final = 16_384
_OVERLAP: Final = 2_048
"""The library reads a long text in parts of this size; longer finds are our own."""

_CUT: Final = (
    "(?:gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|[sr]k_live_|sk-|AIza|GOCSPX-|AKIA|ASIA|hf_|"
    "gsk_|xai-|pplx-|npm_|pypi-|SG\\.|dop_v1_|dckr_pat_|hv[sb]\\.|figd_|lin_api_|ntn_|shpat_|eyJ|"
    "tskey-|AGE-SECRET-KEY-1|rubygems_|glsa_|dapi|nfp_|sbp_)[A-Za-z0-9_.-]{4"
)
_WRAP_SEED: Final = _CUT + "}"
_WRAP: Final = re.compile(_CUT.encode() + rb",400}(\r?\n[ \t]{0,16}|\\n)(?=[A-Za-z0-9_.-]{4})")
_ESCAPES: Final = re.compile(
    rb"\\(?:[nrtbf\"'/]|u00[0-9a-fA-F]{2}|x[0-9a-fA-F]{2})|%(?:3[aAdDfF]|2[0267])"
)


def patterns() -> tuple[Pattern, ...]:
    """All of our own patterns, for the prefilter."""
    found = [
        Pattern(number, text, caseless=True, start=starts)
        for number, (text, _, starts) in enumerate(_RULES)
    ]
    found += [
        Pattern(_EXACT_FIRST + number, text, start=text is not keys.BLOCK)
        for number, (text, _) in enumerate(_EXACT)
    ]
    found += [
        Pattern(_PHRASE_FIRST + number, rule.seed, caseless=True, start=True)
        for number, rule in enumerate(commands.PHRASES)
    ]
    found += [
        Pattern(_FORMAT_FIRST + number, form.seed, start=True)
        for number, form in enumerate(FORMATS)
    ]
    found += [
        Pattern(_WRAPPED, _WRAP_SEED, start=True),
        Pattern(_COLOUR, SEED, once=True),
        Pattern(_LABEL, "\\[REDACTED:", once=True),
    ]
    return tuple(found)


class Detection:
    """
    All detectors over one text.

    Args:
        cache_dir: Folder for compiled rules; None: in memory only.
    """

    __slots__ = ("_library", "_library_filter", "_own")

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._library = Library(cache_dir)
        self._own = Prefilter(patterns(), cache_dir)
        self._library_filter = Prefilter(self._library.patterns(), cache_dir, lenient=True)

    def find(self, data: bytes) -> list[Found]:
        """Merged findings in one text, in bytes of it."""
        hits = self._own.scan(data)
        numbers = {hit[2] for hit in hits}
        plain = None
        if _COLOUR in numbers:
            plain = Plain(data)
            data = plain.data
            hits = self._own.scan(data)
            numbers = {hit[2] for hit in hits}
        if _LABEL in numbers:
            # Labels of an earlier redaction are invisible to every rule.
            data = LABEL.sub(lambda found: bytes(found.end() - found.start()), data)
            hits = self._own.scan(data)
        out: list[Found] = []
        if hits:
            self._own_rules(data, hits, out)
        self._ask_library(data, out)
        if not out:
            return out
        if plain is not None:
            out = [Found(*plain.back(found.start, found.end), found.kind) for found in out]
        return merge(out)

    def _own_rules(self, data: bytes, hits: list[tuple[int, int, int]], out: list[Found]) -> None:
        reached: dict[int, int] = {}
        cuts: set[int] = set()
        for end, start, number in hits:
            if number >= _FORMAT_FIRST:
                if start >= reached.get(number, 0):
                    stop, reached[number] = shapes.measure(data, start, number - _FORMAT_FIRST)
                    if stop > start:
                        out.append(Found(start, stop, FORMATS[number - _FORMAT_FIRST].kind))
                continue
            if number >= _WRAPPED:
                if number == _WRAPPED:
                    cuts.add(start)
                continue
            ends = number < _EXACT_FIRST and not _RULES[number][2]
            at = end if ends or number == _BLOCK else start
            if at < reached.get(number, 0):
                continue
            if number >= _PHRASE_FIRST:
                reached[number] = commands.phrase(data, at, number - _PHRASE_FIRST, out)
            elif number >= _EXACT_FIRST:
                reached[number] = _EXACT[number - _EXACT_FIRST][1](data, at, out)
            else:
                reached[number] = _RULES[number][1](data, at, out)
        for start in sorted(cuts):
            self._unwrap(data, start, out)

    def _ask_library(self, data: bytes, out: list[Found]) -> None:
        """The library sees the parts of the text that its own patterns point at."""
        for low in range(0, max(1, len(data) - _OVERLAP), _PART - _OVERLAP):
            part = data if len(data) <= _PART else data[low : low + _PART]
            if not self._library_filter.scan(part):
                continue
            views = [part]
            if b"\\" in part or b"%" in part:
                views.append(_ESCAPES.sub(lambda found: b" " * (found.end() - found.start()), part))
            for view in views:
                for start, end, kind in self._library.scan(view):
                    value = part[start:end]
                    if kind == "basic-auth" and b":" in value:
                        start += value.index(b":") + 1  # noqa: PLW2901 - the user stays
                    if b"\0" not in value and not (kind == "url-password" and network.weak(value)):
                        out.append(Found(low + start, low + end, kind))

    def _unwrap(self, data: bytes, begin: int, out: list[Found]) -> None:
        """A token of known shape that begins here and that a line end cuts in two."""
        cut = _WRAP.match(data, begin, begin + 1024)
        if cut is None:
            return
        high = min(len(data), cut.end() + 600)
        head, gap = data[begin : cut.start(1)], cut.end() - cut.start(1)
        whole = head + data[cut.end() : high]
        for end, start, number in self._own.scan(whole):
            if number < _FORMAT_FIRST or start > 4 or end <= len(head):
                continue
            form = number - _FORMAT_FIRST
            if shapes.measure(head + b"\n", start, form)[0] > start:
                continue  # complete before the line end: what follows is another line
            stop, _ = shapes.measure(whole, start, form)
            if stop > len(head):
                out.append(Found(begin + start, begin + stop + gap, FORMATS[form].kind))
