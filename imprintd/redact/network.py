"""
Credentials in URLs, headers, cookies and connection strings.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from imprintd.redact import literal, values
from imprintd.redact.found import Found

USERINFO: Final = ":(?:/|\\\\/){2}[^\\s/@:\"'<>`]{0,100}:[^\\s\"'<>`]"
LONELY: Final = "https?:(?:/|\\\\/){2}[A-Za-z0-9_-]{20,120}@"
HEADER: Final = (
    "(?:authorization|proxy-authorization)\\\\{0,15}[\"'`]?\\]?\\s{0,4}[:=,>]{1,2}\\s{0,4}|"
    "\\b(?:basic|bearer|negotiate|ntlm|apikey|digest|token)[ +]|\\b(?:basic|bearer)%20"
)
COOKIE: Final = "(?:set-)?cookie\\\\{0,15}[\"'`]?[ \\t]{0,4}[:=,][ \\t]{0,4}"
QUERY: Final = "(?:[?&;]|u0026|%26|%3f)[\\w.-]{0,24}(?:key|token|sig|signature|secret|pass|password|pwd|auth|code|credential|hmac)(?:=|%3d)"
DSN: Final = (
    "[;\"' ](?:password|pwd|accountkey|sharedaccesskey|sharedsecret|access key)\\s{0,4}=\\s{0,4}"
)

_SCHEME: Final = re.compile(
    rb"(?i)([a-z][a-z0-9+.-]{1,24}):(?:/|\\/){2}([^\s/@:\"'<>`\\]{0,100}):\Z"
)
_HOST: Final = re.compile(
    rb"@(?:[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]|\$\{?\w+\}?|\{\{?[\w .]+\}?\}|<[\w-]+>)(?::\d{1,5}|:\$\{\{[^}]*\}\}|:\$?\{?\w+\}?)?(?=[/?#\s\"'`,;)\]\\<>&|]|\.(?:\s|\Z)|\Z|\*)"
)
_END: Final = re.compile(rb"[\s\"'<>`\x00]")
_NAMED: Final = re.compile(rb"(?i)authorization\\{0,15}[\"'`]?\]?\s{0,4}[:=,>]{1,2}\s{0,4}\Z")
_QUOTE: Final = re.compile(rb"(?:[brf]?\\{0,15}[\"'`]{1,3})?(?:\s|\\u0020)*")
_SCHEMED: Final = re.compile(
    rb"(?i)(basic|bearer|negotiate|ntlm|apikey|token|digest|key|api[-_ ]key)(?:[ +]|%20|\\u0020|:)+"
)
_BARE_SCHEME: Final = re.compile(
    rb"(?i)(basic|bearer|negotiate|ntlm|apikey|token|digest)(?:[ +]|%20)\Z"
)
_OPAQUE: Final = re.compile(rb"[A-Za-z0-9+/=_.~%:-]{4,4096}")
_COOKIE_NAME: Final = re.compile(
    rb"(?i)(?:sess|sid\b|_sid|token|auth|csrf|xsrf|jwt|remember|login|secret|key|identity|ticket|connect\.sid|aspxauth|laravel|user_session|credential|cf_clearance|id\b)"
)
_PAIR: Final = re.compile(rb"([\w.$-]{1,64})=(\"?)([^;\s\"'\\,]{1,4096})")
_LINE_END: Final = re.compile(rb"[\n\r\x00]|\\[nr]")
_LIMIT: Final = 1024
_AT_MAX: Final = 16
"""A password with more @ than this is none."""


def userinfo(data: bytes, start: int, out: list[Found]) -> int:
    """`scheme://user:password@host`: the password's first byte stands before `start`."""
    scheme = _SCHEME.search(data, max(0, start - 132), start - 1)
    if scheme is None or scheme.end() != start - 1:
        return start
    begin = scheme.end()
    stop = _END.search(data, begin, begin + _LIMIT)
    end = stop.start() if stop is not None else min(len(data), begin + _LIMIT)
    at = -1
    # The last @ before the host wins, as long as what lies between is no path.
    place = data.find(b"@", begin, end)
    for _ in range(_AT_MAX):
        if place < 0:
            break
        if _HOST.match(data, place) is not None:
            between = data[begin:place]
            if at >= 0 and (b"?" in between or b"://" in between or _path(data, at, place)):
                break
            at = place
        place = data.find(b"@", place + 1, end)
    if at < 0:
        return start
    password = data[begin:at]
    if b"/" in password and re.match(rb"(?:\d{1,5})?/", password):
        return start  # a port and a path; the @ belongs to the path
    if b"://" in password or (b"?" in password and b"/" in password):
        return start
    if not weak(password, scheme[2]):
        out.append(Found(begin, at, "url-password"))
    return begin


def _path(data: bytes, at: int, place: int) -> bool:
    """Whether the later @ stands in the path behind the host at the earlier one."""
    slash = data.find(b"/", at, place)
    host = data[at + 1 : slash]
    return slash >= 0 and (b"." in host or b":" in host or host == b"localhost")


def weak(password: bytes, user: bytes = b"") -> bool:
    """Whether it is no password but stands for one, or is the user's name again."""
    return (
        not password
        or password == user
        or password in {b"postgres", b"guest", b"admin", b"root", b"bar", b"mysql", b"redis"}
        or b"\0" in password
        or re.fullmatch(
            rb"(?i)(?:\$.*|\{.*|<.*|%[^0-9a-zA-Z].*|\*+|x{3,}|\.{2,}|\[.*|:?(?:your[-_]?|my[-_]?|the[-_]?)?(?:password|passwd|pass|pwd|pw|token|secret|user|port|key|api[-_]?key)\d?|#\{.*|\"?\s?\+.*|'.*|@.*|\\\(.*)",
            password,
        )
        is not None
    )


def lonely(data: bytes, start: int, out: list[Found]) -> int:
    """`https://token@host`: a token without a user."""
    begin = data.find(b"//", start, start + 12)
    begin = begin + 2 if begin >= 0 else data.find(b"/\\/", start, start + 12) + 3
    at = data.find(b"@", begin, begin + 130)
    token = data[begin:at]
    if values.random(token) and not values.placeholder(token):
        out.append(Found(begin, at, "url-password"))
    return start


def header(data: bytes, at: int, out: list[Found]) -> int:
    """An authorization header or a scheme word; its value starts at `at`."""
    low = max(0, at - 40)
    named = _NAMED.search(data[low:at])
    begin = at
    if named is not None:
        opening = _QUOTE.match(data, at, at + 64)
        begin = opening.end() if opening else at
        word = _SCHEMED.match(data, begin, begin + 32)
        kind = word[1].lower() if word else b""
        begin = word.end() if word else begin
    else:
        word = _BARE_SCHEME.search(data[max(0, at - 16) : at])
        if word is None:
            return at
        kind = word[1].lower()
    found = _OPAQUE.match(data, begin, begin + 4096)
    if found is None:
        return at
    end = literal.trimmed(data, found.start(), found.end(), ends=b".,;:%-")
    value = data[begin:end]
    if kind == b"basic":
        if _basic(value, named=named is not None):
            out.append(Found(begin, end, "basic-auth"))
    elif kind in {b"token", b"digest", b"key", b""} and named is None:
        return at
    elif not values.placeholder(value) and (
        (values.random(value) and len(value) >= (8 if named is not None else 16))
        or (
            named is not None
            and kind != b""
            and len(value) >= 8
            and values.mixed(value) >= 2
            and not values.reference(value)
            and not values.wordlike(value)
        )
    ):
        out.append(Found(begin, end, "bearer-token"))
    return end


def _basic(value: bytes, *, named: bool) -> bool:
    """Whether base64 of `user:password`, or something that was meant to be."""
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    if b":" in plain and plain.isascii():
        return not weak(plain.partition(b":")[2])
    return (
        len(value) >= 8
        and values.mixed(value) >= 2
        and not values.wordlike(value)
        and (named or values.random(value))
    )


def cookie(data: bytes, at: int, out: list[Found]) -> int:
    """A cookie header's pairs; the ones that open a session go."""
    near = _PAIR.search(data, at, at + 80)
    if near is None or near.start() > at + 8:
        return at
    line = _LINE_END.search(data, at, at + 8192)
    end = line.start() if line is not None else min(len(data), at + 8192)
    for pair in _PAIR.finditer(data, at, end):
        value = pair[3]
        begin = pair.start(3)
        if pair[1].lower() in {b"path", b"domain", b"expires", b"max-age", b"samesite", b"version"}:
            continue
        if (
            len(value) >= 8
            and not values.placeholder(value)
            and (
                (
                    _COOKIE_NAME.search(pair[1]) is not None
                    and values.mixed(value) >= 2
                    and not values.reference(value)
                )
                or (len(value) >= 24 and values.random(value))
            )
        ):
            out.append(Found(begin, pair.end(3), "cookie"))
    return end


def query(data: bytes, at: int, out: list[Found]) -> int:
    """A telling parameter of a query; its value starts at `at`."""
    found = re.compile(rb"[^\s&#;\"'<>`\\\x00,)}\]]{1,2048}").match(data, at)
    if found is None:
        return at
    end = found.end()
    for mark in (b"%26", b"%23", b"u0026"):
        place = data.find(mark, at, end)
        end = place if place >= 0 else end
    end = literal.trimmed(data, at, end)
    value = data[at:end]
    name = data[max(0, at - 40) : at].lower()
    if values.placeholder(value) or values.reference(value) or values.UUID.match(value):
        return at
    strict = (
        re.search(rb"(?:code|_key|[?&;]key)(?:=|%3d)\Z", name) is not None and b"api" not in name
    )
    if (
        values.random(value) or (len(value) >= 5 and re.search(rb"pass(?:word)?=\Z|pwd=\Z", name))
    ) and (not strict or len(value) >= 16):
        out.append(Found(at, end, "token"))
    return at


def dsn(data: bytes, at: int, out: list[Found]) -> int:
    """`Password=...;` of a connection string, braces and quotes included."""
    if data[at : at + 1] == b"{":
        end = at + 1
        while True:  # `}}` stands for a brace within
            end = data.find(b"}", end, at + 512)
            if end < 0 or data[end + 1 : end + 2] != b"}":
                break
            end += 2
        if (
            end > at + 1
            and data[end + 1 : end + 2] in {b"", b";", b'"', b"'", b"\n", b" ", b"`", b"\\"}
            and not re.match(rb"\{[\w ]{0,24}\}", data[at : end + 1])
        ):
            out.append(Found(at + 1, end, "password"))
        return at
    line = data[max(0, at - 200) : at + 200]
    if line.count(b";") < 1 or line.count(b"=") < 2:
        return at
    found = re.compile(rb"[^;\"'\n\r\x00\\<>`]{3,512}").match(data, at)
    if found is None:
        return at
    value = found[0].rstrip()
    if not values.placeholder(value) and not values.reference(value) and b" " not in value:
        out.append(Found(at, at + len(value), "password"))
    return at
