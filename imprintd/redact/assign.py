"""
A name and its value, in every spelling: `name = value`, `"name": "value"`,
`<name>value</name>`, `name("value")`, `--name value`, `| name | value |`, and
names and values that stand in two fields of one record.

The prefilter finds where a promising name meets a separator; here the name is
read backwards from there and the value forwards.
"""

from __future__ import annotations

import re
from typing import Final

from imprintd.redact import literal, values
from imprintd.redact.found import Found
from imprintd.redact.names import Promise, kind_of, promise

STEM: Final = (
    "(?:pass(?:w|p|c|wd|word)?|pwd|psw|_pw|\\bpw|secret|token|key|auth|cred|jwt|sess|\\bsid|"
    "cookie|kennwort|senha|contrase|otp|\\bpin|\\bsas|\\bsig|signature|_pat|pat_)"
)
_TAIL: Final = "[\\w.-]{0,24}"
_CLOSE: Final = "\\\\{0,15}(?:[\"'`\\])*]|&quot;|&apos;){0,3}"

ASSIGN: Final = f"{STEM}{_TAIL}{_CLOSE}[ \\t]{{0,40}}(?:[?+]?=|:|->|\\|\\||\\?\\?|or[ \\t])"
CALL: Final = f"{STEM}{_TAIL}\\((?:\\s{{0,8}})\\\\{{0,15}}[\"'`]"
COMMA: Final = f"{STEM}{_TAIL}\\\\{{0,15}}[\"'`]\\s{{0,2}},\\s{{0,8}}[@$bru]?\\\\{{0,15}}[\"'`]"
MARKUP: Final = f"{STEM}{_TAIL}\\\\{{0,15}}[\"']?(?: [^<>\\n]{{0,60}})?>\\s{{0,24}}[^<\\s]"
COLUMN: Final = (
    f"{STEM}{_TAIL}[`*\"']{{0,3}}[ \\t]{{0,20}}(?:\\|[ \\t]{{0,20}}|\\t|\\\\t)[`\"']?[^\\s|-]"
)
FLAG: Final = f"-[\\w-]{{0,24}}{STEM}[\\w-]{{0,24}}[ \\t]{{1,4}}[^\\s|]"
WORD: Final = f"(?:{STEM}{_TAIL})[ \\t]{{1,4}}(?:is|was|:is|equals?)[ \\t:]{{1,4}}[^\\s]"
FIELD: Final = "(?:value|string|secretstring)\\\\{0,15}[\"'`]?[ \\t]{0,20}[:=>]"

_NAME: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_BACK: Final = 96
_BEFORE: Final = 48
_SPACED: Final = re.compile(
    rb"(?i)\b(api|access|auth|authentication|secret|private|activation|license|consumer|master|account|security|encryption)[ ]\Z"
)
_SEPARATORS: Final = re.compile(
    rb"[ \t]*(?:=>|:=|->|={1,3}|!==?|[?+]=|\|\||\?\?|or\b|::?|[>])?[ \t]*"
)
_TYPED: Final = re.compile(
    rb"[ \t]*[A-Za-z_][\w.]*(?:[<\[][\w., <>?|\[\]]{0,40}[>\]])?\??(?:[ \t]*\|[ \t]*\w+)?[ \t]*:?=[ \t]*(?=[\"'`(bru@$])"
)
_WRAPPED: Final = re.compile(
    rb"(?:new[ \t]+|await[ \t]+|&)?[A-Za-z_\[][\w.:<>\[\]]{0,60}[({]\s{0,8}(?=[@$bru]?\\{0,15}[\"'`])"
)
_FALLBACK: Final = re.compile(
    rb"[\w.$\[\]({}\"')?,! -]{3,80}?(?:\|\||\?\?|\?:|\bor\b|\belse\b|:-|,)[ \t]*(?=[\"'`])"
)
_LIST_MAX: Final = 64
_MORE: Final = re.compile(rb"\\{0,15}[\"'`]\s{0,24},\s{0,24}(?=\\{0,15}[\"'`])")
_BRACKETED: Final = re.compile(rb"\s{0,40}[\[(]\s{0,40}(?=\\{0,15}[\"'`])")
_LINE_START: Final = re.compile(
    rb"[ \t]*(?:\d{1,6}(?:\xe2\x86\x92|[:\t|-])[ \t]*)?"
    rb"(?:[-+>#$*!/][-+>#$*!/ \t]{0,4})?(?:(?:export|set|setx|env|ENV|ARG|declare -x|-e|--env|run|let|SET)[ \t]+)?\Z"
)
_GREPPED: Final = re.compile(rb":\d{1,6}[:-]\Z")
_PAIRED: Final = re.compile(
    rb"(?i)(?:name|key|id|type|field|variable|label)\\{0,15}[\"'`]?\s{0,8}[:=>]\s{0,8}\\{0,15}[\"'`]?"
    rb"([\w.-]{2,64})\\{0,15}[\"'`]?\s{0,8}[,;}]?(?:</(?:key|name)>)?(?:\\+[nrt]|\s){0,40}(?:[<{-]{0,2}\s{0,8})\\{0,15}[\"'`]?"
    rb"(?:[\w-]{0,20}?)\Z"
)
_BETWEEN: Final = re.compile(rb"[,;{>\n\\]")
_OWNER: Final = re.compile(
    rb"([\w.-]{2,64})\\{0,15}[\"'`]?\s{0,8}[:=]\s{0,8}\{(?:\\+[nrt]|\s){0,60}"
    rb"(?:\\{0,15}[\"'`]?(?:type|sensitive|description)\\{0,15}[\"'`]?\s{0,8}[:=][^\n{}]{0,80}\n\s{0,40}){0,3}\\{0,15}[\"'`]?\Z"
)
_DEFAULT: Final = re.compile(rb"(?i)variable[ \t]+\"([\w.-]{2,64})\"[ \t]*\{[^{}]{0,200}\Z")


def name_before(data: bytes, at: int) -> tuple[str, int]:
    """The name that ends before the separator at `at`, and where it starts."""
    window = data[max(0, at - _BACK) : at]
    stripped = window.rstrip(b" \t")
    stripped = stripped.rstrip(b"\"'`])*\\")
    if stripped.endswith((b"&quot;", b"&apos;")):
        stripped = stripped[:-6]
    size = len(stripped.rstrip(_NAME))
    if size == len(stripped):
        return "", at
    start = max(0, at - _BACK) + size
    text = stripped[size:]
    if text.lower() in {b"key", b"token", b"code"}:
        spaced = _SPACED.search(data, max(0, start - 20), start)
        if spaced is not None:
            text, start = spaced[1] + b"_" + text, spaced.start()
    if start and data[start - 1] == 92 and text[:1] in b"nrtu":
        cut = 5 if text[:1] == b"u" else 1  # the letter of an escape is not the name's
        text, start = text[cut:], start + cut
    return text.decode("ascii"), start


def _opens_line(before: bytes) -> bool:
    """Whether only what may open a line or a string stands between it and the name."""
    if _GREPPED.search(before, max(0, len(before) - 9)) is not None:
        return True
    place = max(
        before.rfind(b"\n"),
        before.rfind(b"\r"),
        before.rfind(b'"'),
        before.rfind(b"'"),
        before.rfind(b"`"),
        before.rfind(b"\\n") + 1,
        before.rfind(b"\\r") + 1,
    )
    return (place >= 0 or len(before) < _BEFORE) and _LINE_START.match(
        before, place + 1
    ) is not None


def assignment(data: bytes, at: int, out: list[Found]) -> int:
    """
    A separator stands just before `at`.

    Returns:
        How far the text has been read; hits before that are the same place.
    """
    separator = at - 1
    while separator and data[separator - 1] in b":=-|?+or \t":
        separator -= 1
    name, start = name_before(data, separator)
    promised = promise(name)
    if not promised:
        return at
    skipped = _SEPARATORS.match(data, separator)
    after = skipped.end() if skipped is not None else at
    before = data[max(0, start - _BEFORE) : start]
    sign = data[separator:after].strip()
    config = _opens_line(before) and not (
        sign == b"=" and data[separator + 1 : separator + 2] == b" " and name != name.upper()
    )
    query = before[-1:] in {b"?", b"&", b";"} or before.endswith(
        (b"u0026", b"%26", b"%3F", b"&amp;")
    )
    flag = before.endswith(b"-") or name.startswith("-")
    return _value(data, after, promised, out, config=config or flag, query=query)


def _value(
    data: bytes, after: int, promised: Promise, out: list[Found], *, config: bool, query: bool
) -> int:
    if query:
        stops = b"&#;,)"
    elif config:
        stops = b""
    else:
        stops = b",;&()[]{}"
    first = data[after : after + 1]
    inside_list = False
    if first in b"\r\n[(" or data[after : after + 2] in {b"\\n", b"\\r"}:
        inside = _BRACKETED.match(data, after, after + 96)
        if inside is None:
            return after
        after = inside.end()
        inside_list = True
    elif first.isalpha() or first in b"_[&":
        for pattern in (_TYPED, _WRAPPED, _FALLBACK):
            jump = pattern.match(data, after, after + 128)
            if jump is not None:
                line = data.find(b"\n", after, jump.end())
                if line < 0 or pattern is _WRAPPED:
                    after = jump.end()
                    config = False
                    break
    found = literal.read(data, after, stops=stops)
    if found is None:
        return after
    take(data, found, promised, out, config=config)
    at = found.end
    for _ in range(_LIST_MAX if inside_list else 0):
        more = _MORE.match(data, at, at + 64)
        found = literal.read(data, more.end()) if more is not None else None
        if found is None or not found.quoted:
            break
        take(data, found, promised, out, config=False)
        at = found.end
    return at


def take(
    data: bytes, found: literal.Literal, promised: Promise, out: list[Found], *, config: bool
) -> bool:
    """Judge one value and note it; whether it was noted."""
    start, end = found.start, found.end
    if not found.quoted:
        end = literal.trimmed(data, start, end)
    else:
        while start < end and data[start] in b" \t":
            start += 1
        while end > start and data[end - 1] in b" \t":
            end -= 1
    if not values.convincing(data[start:end], promised, quoted=found.quoted, config=config):
        return False
    out.append(Found(start, end, kind_of(promised)))
    return True


def call(data: bytes, at: int, out: list[Found]) -> int:
    """`setPassword("value"`: the opening quote stands just before `at`."""
    paren = data.rfind(b"(", max(0, at - 32), at)
    name, _ = name_before(data, paren)
    promised = promise(name)
    quote = at - 1
    while quote and data[quote - 1] == 92:
        quote -= 1
    found = literal.read(data, quote) if promised else None
    if found is not None and found.quoted and promised in {"password", "secret", "token", "key"}:
        take(data, found, promised, out, config=False)
    return at


def comma(data: bytes, at: int, out: list[Found]) -> int:
    """`"name", "value"`: the value's opening quote stands just before `at`."""
    place = data.rfind(b",", max(0, at - 32), at)
    name, _ = name_before(data, place)
    promised = promise(name)
    quote = at - 1
    while quote and data[quote - 1] == 92:
        quote -= 1
    found = literal.read(data, quote) if promised and promised != "loose" else None
    if found is not None and found.quoted:
        value = data[found.start : found.end]
        if promised != "password" or values.mixed(value) >= 2:
            take(data, found, promised, out, config=False)
    return at


def markup(data: bytes, at: int, out: list[Found]) -> int:
    """`<name>value<`: the value's first byte stands just before `at`."""
    bracket = data.rfind(b">", max(0, at - 32), at)
    head = data[max(0, bracket - 128) : bracket]
    opening = head.rfind(b"<")
    if opening < 0 or head[opening + 1 : opening + 2] == b"/":
        return at
    named = re.search(rb"(?i)(?:key|name|id)=\\?[\"']([\w.-]{2,64})\\?[\"']", head[opening:])
    plain = re.match(rb"<([\w.:-]{2,64})", head[opening:])
    text = named[1] if named else plain[1] if plain else b""
    promised = promise(text.decode("ascii").rpartition(":")[2])
    if not promised and head[opening:] == b"<string":
        return at
    end = data.find(b"<", bracket, bracket + literal.VALUE_MAX)
    if (
        promised
        and end > 0
        and data[end + 1 : end + 2] == b"/"
        and b"\n" not in data[bracket + 1 : end].strip()
    ):
        found = literal.Literal(bracket + 1, end, quoted=True)
        take(data, found, promised, out, config=True)
    return at


def column(data: bytes, at: int, out: list[Found]) -> int:
    """`| name | value |` or `name<TAB>value`: the value's first byte stands before `at`."""
    place = max(data.rfind(b"|", max(0, at - 26), at), data.rfind(b"\t", max(0, at - 26), at))
    if place < 0:
        place = data.rfind(b"\\t", max(0, at - 26), at)
    name, _ = name_before(data, place)
    promised = promise(name)
    quote = at - 1 - (data[at - 2 : at - 1] in {b"`", b'"', b"'"})
    found = literal.read(data, quote) if promised and promised != "loose" else None
    if found is not None and values.mixed(data[found.start : found.end]) >= 2:
        take(data, found, promised, out, config=found.quoted)
    return at


def flag(data: bytes, at: int, out: list[Found]) -> int:
    """`--name value`: the value's first byte stands just before `at`."""
    name, start = name_before(data, at - 1)
    if not name.startswith("-") or data[max(0, start - 1) : start] not in {
        b"",
        b" ",
        b"\t",
        b"\n",
        b'"',
        b"'",
        b"[",
        b"(",
    }:
        return at
    promised = promise(name)
    found = literal.read(data, at - 1) if promised and promised != "loose" else None
    if found is not None and data[found.start] != 45:
        take(data, found, promised, out, config=True)
    return at


def field(data: bytes, at: int, out: list[Found]) -> int:
    """
    `value:` of a record whose name stands in another field just before, or
    around it: `- name: X / value: Y`, `"x": {"value": "Y"}`.
    """
    name, start = name_before(data, at - 1)
    before = data[max(0, start - 240) : start]
    if _BETWEEN.search(before, max(0, len(before) - 64)) is None:
        return at
    owner = _PAIRED.search(before) or _OWNER.search(before)
    if owner is None:
        return at
    promised = promise(owner[1].decode("ascii"))
    skipped = _SEPARATORS.match(data, at - 1)
    found = literal.read(data, skipped.end() if skipped else at) if promised else None
    if found is not None and name:
        take(data, found, promised, out, config=True)
    return at


def default(data: bytes, at: int, out: list[Found]) -> int:
    """`variable "x" { default = "Y" }`: the separator stands just before `at`."""
    owner = _DEFAULT.search(data[max(0, at - 400) : at])
    promised = promise(owner[1].decode("ascii")) if owner else ""
    skipped = _SEPARATORS.match(data, at)
    found = literal.read(data, skipped.end() if skipped else at) if promised else None
    if found is not None:
        take(data, found, promised, out, config=True)
    return at
