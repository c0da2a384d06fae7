"""
Passwords on command lines, in netrc files, in SQL and in plain sentences.

Each pattern starts at the command or the phrase and captures the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from imprintd.redact import values
from imprintd.redact.found import Found
from imprintd.redact.shapes import compile_bytes

_ARG: Final = "(?:\\\\*\"([^\"\\\\\\n]{2,200})\\\\*\"|\\\\*'([^'\\n]{2,200}?)\\\\*'|([^\\s\"'`|;<>\\\\]{2,200}))"
_FOREIGN: Final = "(?:\\xeb\\xb9\\x84\\xeb\\xb0\\x80\\xeb\\xb2\\x88\\xed\\x98\\xb8|\\xe5\\xaf\\x86\\xe7\\xa0\\x81|\\xe5\\xaf\\x86\\xe7\\xa2\\xbc|\\xe3\\x83\\x91\\xe3\\x82\\xb9\\xe3\\x83\\xaf\\xe3\\x83\\xbc\\xe3\\x83\\x89|\\xd0\\xbf\\xd0\\xb0\\xd1\\x80\\xd0\\xbe\\xd0\\xbb\\xd1\\x8c)"
_GAP: Final = "(?:[ \\t]+[^\\n|;&]{0,200}?)?[ \\t]+"


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    One phrase.

    Attributes:
        kind: The label.
        seed: What the prefilter looks for; the phrase starts there.
        whole: The phrase with its value in one of the groups.
        strict: The value must have a digit or a sign, as plain words may stand there.
    """

    kind: str
    seed: str
    whole: str
    strict: bool = False


PHRASES: Final[tuple[Phrase, ...]] = (
    Phrase(
        "password",
        "\\bmysql(?:dump|admin|import|sh)?[ \\t]",
        f"mysql\\w*{_GAP}-p{_ARG}",
        strict=True,
    ),
    Phrase(
        "password",
        "\\bmariadb(?:-dump|-admin)?[ \\t]",
        f"mariadb[\\w-]*{_GAP}-p{_ARG}",
        strict=True,
    ),
    Phrase("password", "\\bsshpass[ \\t]", f"sshpass{_GAP}-p[ \\t]*{_ARG}"),
    Phrase("password", "\\bredis-cli[ \\t]", f"redis-cli{_GAP}(?:-a|--pass)[ \\t]+{_ARG}"),
    Phrase(
        "password",
        "\\b(?:docker|podman|helm|buildah|oras|skopeo|crane|az|oc|nerdctl|cf)[ \\t][^\\n]{0,40}login",
        f"login{_GAP}(?:-p|--password)[ =\\t]*{_ARG}",
    ),
    Phrase(
        "password",
        "\\b(?:smbclient|net use|rabbitmqadmin|ldapsearch|ldapadd|ldapmodify|ipmitool|mongo|mongosh|mongodump|mongorestore|sqlcmd|osql|bcp|isql|nmcli|cqlsh|clickhouse-client|influx|winexe|wmic|xfreerdp|plink|pscp|putty)[ \\t]",
        f"[\\w-]+{_GAP}(?:-p|-P|-w|/p:|-pw|--password)[ =\\t]*{_ARG}",
        strict=True,
    ),
    Phrase("password", "\\bpsexec", f"psexec\\S*{_GAP}-p[ \\t]+{_ARG}"),
    Phrase(
        "password",
        "\\bpassword [^\\n:]{0,60}:\\s{1,3}[0-9a-f]{32}",
        "password [^\\n:]{0,60}:\\s+([0-9a-f]{32})",
    ),
    Phrase(
        "password",
        "\\bhtpasswd[ \\t]",
        f"htpasswd[ \\t]+-[A-Za-z]*b[A-Za-z]*[ \\t]+(?:-[A-Za-z]+[ \\t]+)*[^\\s]+[ \\t]+[^\\s]+[ \\t]+{_ARG}",
    ),
    Phrase("password", "\\bpsexec", f"psexec\\S*{_GAP}-p[ \\t]+{_ARG}"),
    Phrase(
        "password",
        "\\bpassword [^\\n:]{0,60}:\\s{1,3}[0-9a-f]{32}",
        "password [^\\n:]{0,60}:\\s+([0-9a-f]{32})",
    ),
    Phrase(
        "password",
        "\\bhtpasswd[ \\t]",
        f"htpasswd[ \\t]+-(?:[A-Za-z]*n[A-Za-z]*b|[A-Za-z]*b[A-Za-z]*n)[A-Za-z]*[ \\t]+[^\\s]+[ \\t]+{_ARG}",
    ),
    Phrase(
        "basic-auth",
        "\\b(?:curl|wget|http|https|xh)[ \\t]",
        "(?:curl|http|https|xh)(?:[ \\t]+|\\\\\\n)(?:(?:[^\\n|;]|\\\\\\n){0,300}?[ \\t])?(?:-u|--user|--proxy-user|-U|-a|--auth)(?:[ =\\t]+)?\\\\*[\"']?[^\\s:\"'`$<{\\\\]{1,80}:([^\\s\"'`\\\\]{2,200})",
    ),
    Phrase(
        "password",
        "\\b(?:wget|curl)[ \\t]",
        f"(?:wget|curl){_GAP}--(?:http-|ftp-|proxy-)?(?:password|pass)[ =\\t]+{_ARG}",
    ),
    Phrase(
        "password",
        "\\bpass(?:in|out|word)?[ \\t=]\\\\?[\"']?pass:",
        "pass:([^\\s\"'`;|\\\\]{2,200})",
    ),
    Phrase(
        "password",
        "\\b(?:usermod|useradd|chpasswd|passwd|net user|dscl|pw)[ \\t]",
        f"(?:usermod|useradd|net user){_GAP}(?:-p|--password)[ \\t]+{_ARG}",
        strict=True,
    ),
    Phrase(
        "password",
        "\\becho[ \\t]",
        "echo[ \\t]+(?:-n[ \\t]+|-e[ \\t]+)?\\\\*[\"']?(?:[\\w-]{1,32}:)?([^\\s\"'`|\\\\]{3,120})\\\\*[\"']?[ \\t]*\\|[ \\t]*(?:sudo -S|chpasswd|passwd|docker login|sudo chpasswd|gpg|helm|kinit|su\\b)",
        strict=True,
    ),
    Phrase(
        "password",
        "(?:\\bmachine[ \\t]\\S|\\blogin[ \\t:]{1,3}\\S)",
        "(?:machine[ \\t]+\\S+\\s+)?(?:login|username)[ \\t:=]+[^\\s]+(?:\\\\n|[\\s/,;]){1,24}(?:password|passwd|pass|pw)[ \\t:=]+([^\\s\"'`\\\\]{3,200})",
    ),
    Phrase(
        "password",
        "\\bpassword[ \\t]{1,3}[^\\s:=]",
        "password[ \\t]+([^\\s\"'`\\\\,;]{6,120})",
        strict=True,
    ),
    Phrase(
        "password",
        "\\b(?:password|passwd|passphrase|passcode|pwd|pw)\\s(?:is|was|to|=|:|are)[ :]",
        "(?:password|passwd|passphrase|passcode|pwd|pw)\\s(?:is|was|to|=|:|are)[ :]+(?:now |set to |just |still )?[\"'`*]{0,3}([^\\s\"'`*\\\\,;]{4,120})",
        strict=True,
    ),
    Phrase(
        "password",
        "\\bidentified[ \\t]",
        "(?i)identified[ \\t]+(?:with[ \\t]+[\\w'\"]+[ \\t]+)?(?:by|as)[ \\t]+(?:password[ \\t]+)?\\\\*[\"'`]([^\"'`\\n\\\\]{2,200})",
    ),
    Phrase(
        "password",
        "\\bpassword[ \\t]{1,4}\\\\?['\"]",
        "password[ \\t]*\\\\*[\"']([^\"'\\n\\\\]{2,200})",
        strict=True,
    ),
    Phrase(
        "password",
        "\\bset[ \\t]{1,4}password",
        "(?i)set[ \\t]+password(?:[ \\t]+for[ \\t]+[^=\\n]{1,80})?[ \\t]*=[ \\t]*(?:password\\()?[\"']([^\"'\\n]{2,200})",
    ),
    Phrase(
        "password",
        "convertto-securestring[ \\t]",
        f"(?i)convertto-securestring(?:[ \\t]+-(?:string|asplaintext|force|a|f|s)\\b)*[ \\t]+{_ARG}",
    ),
    Phrase(
        "wifi-password", "WIFI:[^\\s]{0,80}P:", "WIFI:[^\\s]*?;?P:((?:[^;\\s\\\\]|\\\\.){4,120})"
    ),
    Phrase(
        "password",
        _FOREIGN,
        _FOREIGN + "[\"']?(?:[ \\t]*(?:[:=]|\\xef\\xbc\\x9a)[ \\t]*|[ \\t]+)[\"'`]?([!-~]{4,120})",
        strict=True,
    ),
    Phrase(
        "api-key",
        "\\b(?:api|access|secret|auth|activation|license|private)[ _-]key[ \\t]",
        "(?i)(?:api|access|secret|auth|activation|license|private)[ _-]key[ \\t]+(?:is[ \\t]+|was[ \\t]+|=[ \\t]+|:[ \\t]+|xxx[ \\t]+)?[\"'`]?([A-Za-z0-9_+/=.-]{12,200})",
        strict=True,
    ),
    Phrase(
        "token",
        "\\b(?:token|secret|define token)(?:[ \\t](?:is|was))?[ \\t]",
        "(?i)(?:token|secret)(?:[ \\t](?:is|was))?[ \\t]+(?:is[ \\t]+)?[\"'`]?([A-Za-z0-9_+/=.-]{12,200})",
        strict=True,
    ),
)
"""All phrases; the position is the rule number."""

_WINDOW: Final = 640
_PROOF: Final = re.compile(rb"[0-9!@#$%^&*+=~]")
"""What `proves` asks for at least."""


@cache
def _pattern(number: int) -> Any:
    return compile_bytes("(?i)" + PHRASES[number].whole)


def phrase(data: bytes, start: int, number: int, out: list[Found]) -> int:
    """Phrase `number` may start at `start`; note its value."""
    rule = PHRASES[number]
    window = data[start : start + _WINDOW]
    if rule.strict and not _PROOF.search(window):
        # a strict rule's value holds a digit or a sign: plain prose needs no closer look
        return start
    found = _pattern(number).search(window)
    if found is None:
        return start
    group = next((n for n in range(1, len(found.groups()) + 1) if found.group(n) is not None), 0)
    value = found.group(group)
    end: int = found.end(group)
    while value and value[-1:] in b".,;:)]}" and window[end : end + 1] not in {b'"', b"'"}:
        value, end = value[:-1], end - 1
    begin: int = found.start(group)
    if rule.strict and not proves(value):
        return start
    if len(value) < 2 or b"\0" in value or values.placeholder(value) or values.reference(value):
        return start
    if rule.kind in {"api-key", "token"} and not (
        values.random(value) and not values.UUID.match(value)
    ):
        return start
    if rule.strict and values.mixed(value) < 2:
        return start
    out.append(Found(start + begin, start + end, rule.kind))
    return start + end


def proves(value: bytes) -> bool:
    """A digit or a sign among letters: no plain word, path, option or URL."""
    if value[:1] in b"-/.([<{" or b"://" in value or values.SLUG.match(value):
        return False
    digits = any(48 <= byte <= 57 for byte in value)
    signs = any(byte in b"!@#$%^&*+=~" for byte in value)
    letters = any(65 <= (byte & 223) <= 90 for byte in value)
    return letters and (digits or (signs and len(value) >= 6))
