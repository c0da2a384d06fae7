"""
Private keys in PEM form: whole, cut short, headless, escaped, indented, encoded.

A key's body is taken line by line with whatever stands before each line
(diff signs, line numbers, quotes), so that no part of it stays readable.
"""

from __future__ import annotations

import re
from typing import Final

from imprintd.redact.found import Found

BEGIN: Final = "-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|NKEY SEED|SECRET KEY)"
END: Final = "-----END [A-Z0-9 ]{0,40}PRIVATE KEY"
HEADLESS: Final = (
    "(?:MII[A-Z][A-Za-z0-9+/]{2}IBAAK[BC]|MII[A-Za-z0-9+/]{5}ADANBgkqhkiG9w0BAQEFAASC|"
    "M[A-Za-z0-9+/]{3,5}AgEAM[A-Za-z0-9+/]{2}GByqGSM49AgEG|MHcCAQEEI|MIGkAgEBBD|"
    "MC4CAQAwBQYDK2VwBCIEI|b3BlbnNzaC1rZXktdjEA|lQ[A-Za-z0-9+/]{3}F[A-Za-z0-9+/]{3}EEAM)"
)
ENCODED: Final = "(?:LS0tLS1CRUdJTiB[A-Za-z0-9+/]{0,40}(?:UFJJVkFURSBLRVkt|QUklWQVRFIEtFW|FBSSVZBVEUgS0VZ)|\
(?:LS0tLS1CRUdJTi|0tLS0tQkVHSU4g|tLS0tLUJFR0lOI)[A-Za-z0-9+/]{0,24}(?:UFJJVkFURS|BSSVZBVEUg|QUklWQVRFI))"
BLOCK: Final = "[A-Za-z0-9+/]{60}\\r?\\n[A-Za-z0-9+/]{60}"

_SIZE_MAX: Final = 64 * 1024
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_HEADER: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,60}-----?")
_FOOTER: Final = re.compile(rb"-{4,6}END [A-Z0-9 ]{0,60}-----?")
_LINE_NUMBER: Final = re.compile(
    rb"[ \t#]*\d{1,6}(?:[ \t]+\d+\.\d+)?[ \t]?(?:\xe2\x86\x92|[:|\t ])[ \t]*"
)
_BODY: Final = re.compile(rb"[A-Za-z0-9+/=_]{1,}")
_NEXT: Final = re.compile(
    rb"(?:\\+[nrt\"'/]|\\\r?\n|[\s+>|\"',;()\\]|&#1[03];|\xe2\x86\x92|\.\.\.)*"
)
_TEXT: Final = re.compile(rb"(?:Proc-Type|DEK-Info|Comment|Version)[: ][^\n\\]{0,120}")


def body_end(data: bytes, at: int) -> int:
    """Where the body that begins at `at` ends; `at` if there is none."""
    end = at
    limit = min(len(data), at + _SIZE_MAX)
    width = 0
    while at < limit:
        glue = _NEXT.match(data, at, limit)
        place = glue.end() if glue is not None else at
        crossed = data[at:place]
        if b"\n" in crossed or b"\\n" in crossed:
            number = _LINE_NUMBER.match(data, place - 0, limit) or _LINE_NUMBER.match(
                data, _line_start(data, at, place), limit
            )
            if number is not None:
                more = _NEXT.match(data, number.end(), limit)
                place = more.end() if more is not None else number.end()
        text = _TEXT.match(data, place, limit)
        if text is not None:
            at = end = text.end()
            continue
        if data[place : place + 4] == b"fake":
            at = place + 4
            continue
        body = _BODY.match(data, place, limit)
        if body is None:
            break
        size = body.end() - place
        # A plus or a slash at a line's start may have been taken for a diff sign.
        last = width and size < width - 3
        if size < 16 and not (last or _FOOTER.match(data, _skip(data, body.end(), limit))):
            break
        if (
            size < 24
            and not any(48 <= byte <= 57 or byte in b"+/=" for byte in body[0])
            and not last
        ):
            break
        if last and size < 48 and body[0].isalpha() and body[0].islower():
            break
        at = end = body.end()
        if size > 1000 or (last and body[0].endswith(b"=")):
            break
        if last and not _FOOTER.match(data, _skip(data, at, limit)):
            break
        width = max(width, size)
    return end


def _line_start(data: bytes, low: int, high: int) -> int:
    place = max(data.rfind(b"\n", low, high) + 1, data.rfind(b"\\n", low, high) + 2)
    return place if place > low else high


def _skip(data: bytes, at: int, limit: int) -> int:
    glue = _NEXT.match(data, at, limit)
    return glue.end() if glue is not None else at


def begun(data: bytes, start: int, out: list[Found]) -> int:
    """A header of a private key at `start`; returns how far it was taken."""
    header = _HEADER.match(data, start, start + 120)
    if header is None:
        return start
    end = body_end(data, header.end())
    footer = _FOOTER.match(data, _skip(data, end, len(data)))
    if footer is None:
        # A body of an unknown make: everything up to a footer that is near.
        near = data.find(b"-----END", header.end(), header.end() + _SIZE_MAX)
        if end == header.end() and near < 0:
            return header.end()
        if near >= 0 and data.find(b"-----BEGIN", header.end(), near) < 0:
            between = data[header.end() : near]
            if between.count(b" ") <= len(between) // 4:
                footer = _FOOTER.match(data, near)
    body = data[header.end() : footer.start() if footer is not None else end]
    if sum(byte in _BASE64 for byte in body) < 24:
        return header.end()
    if footer is not None:
        end = footer.end()
    out.append(Found(start, end, "private-key"))
    return end


def ended(data: bytes, start: int, out: list[Found]) -> int:
    """A footer at `start` whose header was cut off: the body lines before it."""
    low = max(0, start - _SIZE_MAX)
    at = start
    begin = start
    while at > low:
        line = max(data.rfind(b"\n", low, at - 1) + 1, data.rfind(b"\\n", low, at - 2) + 2, low)
        if line >= at:
            line = low
        text = data[line:at].strip(b" \t\r\n+\\nr\"'")
        if not text or _BODY.fullmatch(text.rpartition(b"\xe2\x86\x92")[2].strip()) is None:
            break
        if len(text) < 16 and begin != start:
            break
        begin = at = line
    footer = _FOOTER.match(data, start, start + 120)
    if begin < start and footer is not None:
        while begin < start and data[begin] in b" \t+":
            begin += 1
        out.append(Found(begin, footer.end(), "private-key"))
    return start


def headless(data: bytes, start: int, out: list[Found]) -> int:
    """The first bytes of a key's structure without a header."""
    if (
        start
        and (data[start - 1 : start].isalnum() or data[start - 1] in b"+/")
        and not (data[start - 1] in b"nrt" and data[start - 2 : start - 1] == b"\\")
    ):
        return start
    end = body_end(data, start)
    if end - start >= 40:
        out.append(Found(start, end, "private-key"))
    return end


def encoded(data: bytes, start: int, out: list[Found]) -> int:
    """A PEM header in base64."""
    while start and (data[start - 1 : start].isalnum() or data[start - 1] in b"+/"):
        start -= 1
    end = body_end(data, start)
    out.append(Found(start, end, "private-key"))
    return end


def block(data: bytes, start: int, out: list[Found]) -> int:
    """
    Three equal full lines of base64 with nothing around: a key without a header.

    A certificate, a signature or a public key has a header or starts like one,
    and images stand in one line; both are left alone.
    """
    second = data.rfind(b"\n", 0, start)
    start = data.rfind(b"\n", max(0, second - 80), second) + 1 or (0 if second <= 80 else second)
    if second - start > 80:
        return second
    end = body_end(data, start)
    text = data[start:end]
    before = data[max(0, start - 200) : start].rstrip()
    if before.endswith((b"-----", b":", b",", b"=", b'"')) or b"-----" in data[end : end + 12]:
        return end
    if before and not before.endswith((b"]", b"\n")):
        return end
    if text.startswith((b"MII", b"mQ", b"iQ", b"LS0t", b"iVBOR", b"/9j/", b"R0lGOD", b"AAAA")):
        return end
    lines = text.split(b"\n")
    digits = sum(48 <= byte <= 57 for byte in text)
    if len(lines) >= 4 and digits * 30 > len(text) and re.search(rb"[+/]", text):
        out.append(Found(start, end, "private-key"))
    return end
