"""
Everything that is looked for in one text, by one pass of the prefilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from imprintd.redact import assign, commands, keys, network, shapes
from imprintd.redact.colours import Plain, coloured
from imprintd.redact.engine import Pattern, Prefilter
from imprintd.redact.formats import FORMATS
from imprintd.redact.found import Found, merge
from imprintd.redact.kinds import LABEL
from imprintd.redact.library import FIRST, Library

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
_CUT: Final = (
    "(?:gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|[sr]k_live_|sk-|AIza|GOCSPX-|AKIA|ASIA|hf_|"
    "gsk_|xai-|pplx-|npm_|pypi-|SG\\.|dop_v1_|dckr_pat_|hv[sb]\\.|figd_|lin_api_|ntn_|shpat_|eyJ|"
    "tskey-|AGE-SECRET-KEY-1|rubygems_|glsa_|dapi|nfp_|sbp_)[A-Za-z0-9_.-]{4"
)
_WRAP_SEED: Final = _CUT + "}"
_WRAP: Final = re.compile(_CUT.encode() + rb",400}(\r?\n[ \t]{0,16}|\\n)(?=[A-Za-z0-9_.-]{4})")
_ESCAPES: Final = re.compile(rb"\\+(?:[nrtbf\"'/]|u00[0-9a-fA-F]{2}|x[0-9a-fA-F]{2})|%(?:3[aAdDfF]|2[0267])")


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
    found.append(Pattern(_WRAPPED, _WRAP_SEED, start=True))
    return tuple(found)


class Detection:
    """
    All detectors over one text.

    Args:
        cache_dir: Folder for compiled rules; None: in memory only.
    """

    __slots__ = ("_library", "_prefilter")

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._library = Library(cache_dir)
        self._prefilter = Prefilter(patterns() + self._library.patterns(), cache_dir)

    def find(self, data: bytes) -> list[Found]:
        """Merged findings in one text, in bytes of it."""
        if not coloured(data):
            return merge(self._opaque(data))
        plain = Plain(data)
        found = [
            Found(*plain.back(found.start, found.end), found.kind)
            for found in self._opaque(plain.data)
        ]
        return merge(found)

    def _opaque(self, data: bytes) -> list[Found]:
        """With labels of an earlier redaction made invisible to every rule."""
        if b"[REDACTED:" in data:
            data = LABEL.sub(lambda found: bytes(found.end() - found.start()), data)
        return self._plain(data)

    def _plain(self, data: bytes) -> list[Found]:
        out: list[Found] = []
        reached: dict[int, int] = {}
        wanted = False
        cuts: set[int] = set()
        for end, start, number in self._prefilter.scan(data):
            if number >= FIRST:
                wanted = True
                continue
            if number == _WRAPPED:
                cuts.add(start)
                continue
            if number >= _FORMAT_FIRST:
                if start >= reached.get(number, 0):
                    form = FORMATS[number - _FORMAT_FIRST]
                    stop = shapes.measure(data, start, number - _FORMAT_FIRST)
                    if stop > start:
                        reached[number] = stop
                        out.append(Found(start, stop, form.kind))
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
        if wanted:
            self._ask_library(data, out)
        for start in sorted(cuts):
            self._unwrap(data, start, out)
        return out

    def _ask_library(self, data: bytes, out: list[Found]) -> None:
        views = [data]
        if b"\\" in data or b"%" in data:
            views.append(_ESCAPES.sub(lambda found: b" " * (found.end() - found.start()), data))
        for view in views:
            for start, end, kind in self._library.scan(view):
                value = data[start:end]
                if b"\0" not in value and not (kind == "url-password" and network.weak(value)):
                    out.append(Found(start, end, kind))

    def _unwrap(self, data: bytes, begin: int, out: list[Found]) -> None:
        """A token of known shape that begins here and that a line end cuts in two."""
        cut = _WRAP.match(data, begin, begin + 1024)
        if cut is not None:
            low, high = cut.start(), min(len(data), cut.end() + 600)
            head, gap = data[low : cut.start(1)], cut.end() - cut.start(1)
            whole = head + data[cut.end() : high]
            for end, start, number in self._prefilter.scan(whole):
                if not _FORMAT_FIRST <= number < FIRST or start > 4 or end <= len(head):
                    continue
                form = number - _FORMAT_FIRST
                if shapes.measure(head + b"\n", start, form) > start:
                    continue  # complete before the line end: what follows is another line
                stop = shapes.measure(whole, start, form)
                if stop > len(head):
                    out.append(Found(low + start, low + stop + gap, FORMATS[form].kind))
