"""
Whether a value can be a secret at all, and whether it proves to be one.

No rule here asks for entropy alone: that is what destroys hashes, commit ids
and lock files. A value is judged under the promise of its name.
"""

from __future__ import annotations

import re
from typing import Final

from imprintd.redact.names import Promise, speaks

_PLACEHOLDER: Final = re.compile(
    rb"(?i)\A(?:"
    rb"x{3,}.*|.*[_-]x{3,}|\*{3,}.*|\.{2,}.*|-{3,}.*|_{3,}.*|#{3,}.*|\?{2,}.*"
    rb"|(?:<|&lt;|\[|\{|%\{|\(\().*|\$[\w({].*|%\w+%.*|%\(.*|@[\w]+@|#\{.*"
    rb"|(?:my|your|the|some|our|an?|new|old|this|valid|invalid|bad|wrong|correct|get|set|test|fake|mock|dummy|sample|example|demo|foo)?"
    rb"[-_. ]?(?:super)?[-_. ]?"
    rb"(?:api|secret|access|auth|client|private|jwt|user|db|github|openai|refresh|bearer|app|master|admin|root|encryption|session)?[-_. ]?"
    rb"(?:password|passwd|pass|pwd|pw|secret|token|key|apikey|credentials?|passphrase|value|string|str|text|hidden|bearer|basic)s?"
    rb"[-_. ]?(?:here|value|goes[-_ ]here|one|two|three|\d{1,3})?[:?!. ]*"
    rb"|(?:your|my|insert|replace|enter|put|add|paste|change|type|provide|specify|use)[-_ .].*"
    rb"|[a-z_-]*[-_](?:here|placeholder)\W*"
    rb"|change.?(?:me|it|this).*|.*change.?me.*|todo.*|fixme.*|redacted.*|.*placeholder.*|removed.*|masked.*|omitted.*|n/?a|tbd"
    rb"|.*\.{3}|\$\..*|let.?me.?in.*|include|same-origin|omit|(.)\1*"
    rb"|null|none|nil|true|false|undefined|void|empty|unset|default|yes|no|on|off|required|optional|enabled|disabled"
    rb"|str|string|int|integer|bool|boolean|number|object|any|bytes|float|char|varchar.*|text|type|var|let|const|return|new|self|this|function|async|await|not|required!?"
    rb"|.*example.*|.*dummy.*|.*sample.*"
    rb"|process\.env.*|os\.(?:environ|getenv).*|getenv.*|env\[.*|env\..*|secrets\..*|vault:.*|arn:.*|op://.*|ssm:.*|file:.*"
    rb"|https?://[^@\s]*|/(?:run|var|etc|usr|home|tmp|opt|mnt|dev|root|users)/.*|\.{0,2}/[\w.-]+/[\w./-]*|~/.*|[a-z]:\\.*"
    rb"|(?:123|abc|qwe){2,}.*|0?1234567890?.*"
    rb")\Z",
    re.DOTALL,
)
_CALL: Final = re.compile(rb"\A[A-Za-z_][\w.:]*[(\[{<]")
_SIGIL: Final = re.compile(
    rb"\A(?:\$[\w{(]|&[A-Za-z_]|\*[a-z]+\Z|!(?:vault|Ref|Sub|GetAtt|env|secret|reference|[A-Z][a-z]+)\b|@\w+@|[+=.])"
)
_DOTTED: Final = re.compile(rb"\A[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+[;,]?\Z")
_IDENTIFIER: Final = re.compile(rb"\A[A-Za-z_$][A-Za-z_$-]*\d{0,2}\Z")
UUID: Final = re.compile(rb"(?i)\A\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?\Z")
_HEX: Final = re.compile(rb"\A(?:[0-9a-f]+|[0-9A-F]+)\Z")
_DATE: Final = re.compile(rb"\A\d{4}-\d\d-\d\d|\A\d+(?:\.\d+)*[a-z%]{0,3}\Z|\A0x[0-9a-fA-F]{1,8}\Z")
_VERSION: Final = re.compile(rb"\A[v^~=<>]*\d+\.\d+(?:\.\d+)?(?:[-+.][\w.]+)?\Z")
_PROSE: Final = re.compile(rb"\A[A-Za-z'(][A-Za-z'.,;:!?()/-]*(?:\s+[\w'\".,;:!?()/&-]+)+\Z")
_RUN: Final = re.compile(rb"(.)\1{5,}", re.DOTALL)
SLUG: Final = re.compile(rb"\A[A-Za-z]{2,}(?:[-_./:][A-Za-z]{2,}\d{0,2}){1,}\Z")
_CAMEL: Final = re.compile(rb"\A[A-Za-z]?[a-z]+(?:[A-Z]{1,4}[a-z]+){1,}\d{0,3}\Z")
_ASCII_PATH: Final = re.compile(rb"\A[\w.@-]+(?:/[\w.@-]+)+\.[a-z]{1,5}\Z")
SOLID: Final = re.compile(rb"\A[A-Za-z0-9+/=]+\Z")
_COOKIE: Final = re.compile(rb"\A(?=(?:[^0-9]*[0-9]){3})[\w+/=%.~-]{20,}\Z")
_CONSTANT: Final = re.compile(rb"\A[A-Z]{2,}(?:_[A-Z]{2,})+\Z")
_TITLE: Final = re.compile(rb"\A[A-Z][a-z]+\Z")
_TIGHT: Final = re.compile(rb"\A(?=[^0-9]*[0-9])[A-Za-z0-9+/=_]{16,}\Z")
_COMMON: Final = frozenset(
    b"th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve "
    b"co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur pa ss sw wo rd ke ey ok us ad mi".split()
)


def placeholder(value: bytes) -> bool:
    """Whether the value stands for a secret instead of being one."""
    if value[:1] > b"\x7f" or sum(byte > 127 for byte in value) * 3 > len(value):
        return True  # words of a language, in a table of translations
    size = len(value)
    if size <= 200 and _PLACEHOLDER.match(value) is not None:
        return True
    return size >= 6 and (
        len(set(value)) <= max(2, min(4, size // 6)) or _RUN.search(value) is not None
    )


_FAKE: Final = re.compile(
    rb"(?i)example|x{6,}|0{8,}|0123456789|1234567890|abcdefgh|placeholder|dummy|fake|redacted|changeme|your"
)


def fake(value: bytes) -> bool:
    """Whether a value of a known format is a documentation sample."""
    return _FAKE.search(value) is not None or _RUN.search(value) is not None


def naming(value: bytes) -> bool:
    """Whether the value is itself a name of a secret: `DB_PASSWORD`, `forgot_password`."""
    if _CONSTANT.match(value) is not None:
        return True
    return _IDENTIFIER.match(value) is not None and speaks(value.decode("ascii"))


def reference(value: bytes) -> bool:
    """Whether an unquoted value is code that fetches the secret."""
    return (
        _CALL.match(value) is not None
        or _DOTTED.match(value) is not None
        or _SIGIL.match(value) is not None
    )


def mixed(value: bytes) -> int:
    """How many of lower, upper, digit and other occur."""
    lower = upper = digit = other = 0
    for byte in value[:128]:
        if 97 <= byte <= 122:
            lower = 1
        elif 65 <= byte <= 90:
            upper = 1
        elif 48 <= byte <= 57:
            digit = 1
        else:
            other = 1
    return lower + upper + digit + other


def wordlike(value: bytes) -> bool:
    """Whether the letters read like words rather than like noise."""
    letters = bytes(byte | 32 for byte in value if 65 <= (byte & 223) <= 90)
    if len(letters) < 4:
        return False
    pairs = [letters[i : i + 2] for i in range(len(letters) - 1)]
    common = sum(pair in _COMMON for pair in pairs)
    return common / len(pairs) >= 0.34


def random(value: bytes) -> bool:
    """Whether a value of a token or key looks drawn at random."""
    size = len(value)
    if size < 8 or _VERSION.match(value) or _DATE.match(value) or _ASCII_PATH.match(value):
        return False
    digits = sum(48 <= byte <= 57 for byte in value)
    if digits == size:
        return False
    if SLUG.match(value) or _CAMEL.match(value):
        return size >= 16 and not wordlike(value)
    if _HEX.match(value):
        return size >= 16 and digits > 0
    if not digits:
        if b" " in value:
            return False
        kinds = mixed(value)
        return size >= 16 and not wordlike(value) and (kinds >= 2 or size >= 20)
    if digits <= 2 and size >= 12 and wordlike(value):
        return mixed(value) >= 4 and size >= 20
    return len(set(value)) >= min(8, size // 2 + 1)


def convincing(value: bytes, promised: Promise, *, quoted: bool, config: bool) -> bool:
    """
    Whether the value is to be removed.

    Args:
        value: The value without quotes.
        promised: What its name promised.
        quoted: It stood in quotes.
        config: It stood where code does not stand (environment, INI, YAML, flag).
    """
    size = len(value)
    if size < 4 or placeholder(value) or b"\0" in value:
        return False
    if not quoted and (reference(value) or value.startswith(b"#")):
        return False
    if naming(value):
        return False
    if promised == "pass":
        return (
            size >= 6
            and mixed(value) >= 2
            and not _IDENTIFIER.match(value)
            and not SLUG.match(value)
            and b" " not in value
            and not _ASCII_PATH.match(value)
        )
    if promised == "password":
        if b" " in value and _PROSE.match(value):
            return False
        if not quoted and _TITLE.match(value) and wordlike(value):
            return False
        if _IDENTIFIER.match(value):
            return (config or quoted) and not (
                not config and _CAMEL.match(value) and wordlike(value)
            )
        return quoted or config or not SLUG.match(value)
    if b" " in value or b"\n" in value:
        return False
    if promised == "auth" and _COOKIE.match(value) and not _HEX.match(value):
        return not UUID.match(value) and not SLUG.match(value) and random(value)
    if promised in {"loose", "auth"}:
        return _TIGHT.match(value) is not None and random(value) and not _HEX.match(value)
    if UUID.match(value):
        return True
    if promised == "secret":
        if size >= 32 and SOLID.match(value):
            return True
        if _IDENTIFIER.match(value) or SLUG.match(value):
            return size >= 6 and not wordlike(value) and (quoted or config)
        return size >= 6 and not _DATE.match(value) and not _ASCII_PATH.match(value)
    return random(value)
