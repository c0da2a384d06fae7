"""
What a name promises about its value: `db_password`, `apiKey`, `max_tokens`.

A name is cut into words at separators and at camel humps. The last words
decide; words that make it something else (an id, a path, a count) take the
promise back.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

Promise = Literal["password", "pass", "secret", "token", "key", "auth", "loose", ""]
"""From the strongest to none: how little the value itself has to prove."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_PASSWORD: Final = _words(
    """
    password passwd passwort pass pwd pw passphrase passcode pswd psw passw pword passwrd
    userpass dbpass dbpassword userpassword pgpassword mysqlpwd rootpassword rootpw kennwort
    senha contrasena wachtwoord motdepasse sshpass pgpass smtppass mypassword newpassword
    oldpassword sudopass ldappass adminpassword storepass keypass authpass authpassword
    """
)
_SECRET: Final = _words(
    """
    secret secrets clientsecret appsecret secretkey privatekey credential credentials cred
    creds sharedsecret jwtsecret signingkey encryptionkey apisecret consumersecret seckey
    aeskey
    """
)
_TOKEN: Final = _words(
    """
    token tokens jwt authtoken accesstoken refreshtoken apitoken bearertoken idtoken
    sessiontoken csrftoken xsrftoken usertoken bottoken deploytoken sas accesscode authcode
    """
)
_KEY: Final = _words(
    """
    apikey accesskey authkey sharedaccesskey accountkey masterkey secretaccesskey appkey
    licensekey deploykey sharedkey nkey xkey pkey passkey hmackey apikeys encryptkey
    """
)
_KEY_BEFORE: Final = _words(
    """
    api access auth shared account master app license deploy service admin user encryption
    encrypt signing sign consumer subscription application storage webhook server client
    authentication authorization activation hmac aes fernet jwt session ssh host integration
    production prod secret private key write read cipher crypto rest sdk token security
    """
)
_SECRET_BEFORE_KEY: Final = _words(
    """
    secret private signing sign encryption encrypt hmac aes fernet jwt cipher crypto
    """
)
_AUTH: Final = _words(
    """
    auth authorization sessionid sessid sid session
    """
)

_NOT_AFTER: Final = _words(
    """
    id ids name names url uri urls path paths file files filename dir directory folder type
    types kind length len size count counts limit limits max min expires expiry expiration
    expire ttl expiresin lifetime duration timeout field fields label labels title header
    headers prefix suffix hint policy version arn format algorithm alg regex pattern
    placeholder enabled disabled required optional public usage used status state index idx
    position column row column input output form page reset change changed update updated
    strength error errors message msg text description desc help prompt visible hidden
    visibility rotation rotate age provider manager store service endpoint scope scopes
    class ref refs reference mapping map list set pair pairs day days date time at on in by
    for from to is has can should valid invalid validation validator check exists callback
    handler fn func function method param params parameter option options config settings
    ring chain board word words code stroke event bindings binding frame frames bytes bits
    logo icon metadata info selector source vault managed length hash digest sha sum
    fingerprint thumbprint cost price rate budget window tokenizer tokenization number no
    num sort column item items schema spec rule rules constraint template style color space
    address issuer
    """
)
_NOT_BEFORE: Final = _words(
    """
    public primary foreign max min total num input output prompt completion reasoning cached
    cache count used remaining cursor page next prev previous continuation idempotency
    partition sort hash range object row column map index unique composite natural surrogate
    json yaml arrow hot short shortcut translation i18n locale css unk pad eos bos mask sep
    cls special stop start end lexer parser syntax query search group dict dictionary
    storage_key s3 react tab enter escape esc up down left right home del delete backspace
    anchor request continuation idempotency no forgot reset change confirm show hide toggle
    has is with without use uses using new_page press pressed
    """
)
_LOOSE_LAST: Final = _words(
    """
    key keys pat cert seed salt pin otp hash code value
    """
)


@lru_cache(maxsize=16_384)
def promise(name: str) -> Promise:
    """The promise of a name; an empty one for names of something else."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while words and (words[-1].isdigit() or words[-1] in _TRAILING):
        words.pop()
    if not words:
        return ""
    if words[-3:] == ["private", "key", "id"]:
        return "secret"  # stands beside the key and names it at the provider
    last = words[-1]
    if last == "value" and len(words) > 1:
        words.pop()
        last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last in _NOT_AFTER:
        return ""
    joined = before + last
    if last in {"pass", "pw"} and len(words) == 1:
        return "pass"
    if last in _PASSWORD or joined in _PASSWORD:
        return (
            ""
            if before in {"no", "forgot", "reset", "has", "is", "show", "hide", "by"}
            else "password"
        )
    if last in _SECRET or joined in _SECRET:
        return "" if before in {"no", "is", "has"} else "secret"
    if before in _NOT_BEFORE and not (set(words[:-1]) & {"api", "secret", "access", "auth"}):
        return ""
    if last in _TOKEN or joined in _TOKEN:
        return "token"
    if last == "key" and "secret" in words:
        return "secret"
    if last in _KEY or joined in _KEY:
        return "key"
    if last in {"key", "keys"}:
        if before in _SECRET_BEFORE_KEY:
            return "secret"
        if before in _KEY_BEFORE:
            return "key"
        # `SOMETHING_KEY` in capitals is a setting; `key` anywhere else may be any key.
        return "key" if len(words) > 1 and name.isupper() else "loose"
    if last in _AUTH or joined in _AUTH:
        return "auth"
    # The word may be glued: `mypassword`, `OPENAIKEY`, `githubtoken`.
    for ending, kind in _ENDINGS:
        if last.endswith(ending):
            return kind
    if last in _LOOSE_LAST or set(words) & _INSIDE:
        return "loose"
    return ""


def speaks(name: str) -> bool:
    """Whether a word of the name is one of a secret, whatever the others make of it."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return len(words) > 1 and not _SPEAKING.isdisjoint(words)


_SPEAKING: Final = _words(
    """
    password passwd pwd secret token key auth credential credentials
    """
)
_TRAILING: Final = _words(
    """
    old new prod production dev test testing staging stage live sandbox default base64 b64
    string str plain raw env primary secondary main backup current data
    """
)
_ENDINGS: Final[tuple[tuple[str, Promise], ...]] = (
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("pwd", "password"),
    ("secret", "secret"),
    ("secretkey", "secret"),
    ("apikey", "key"),
    ("accesskey", "key"),
    ("token", "token"),
)
_INSIDE: Final = _words(
    """
    password passwd pwd secret token apikey credential auth
    """
)

_KIND: Final[dict[str, str]] = {
    "password": "password",
    "pass": "password",
    "secret": "secret",
    "token": "token",
    "key": "api-key",
    "auth": "session",
    "loose": "secret",
    "": "secret",
}


def kind_of(promised: Promise) -> str:
    """The label for a value that a name with this promise gave away."""
    return _KIND[promised]
