"""
Secrets in the spellings that transcripts have; every value here is made up.

The guillemets mark what must go; the kind stands before the text.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imprintd.redact import Redacted, RedactedSpan, Redactor
from imprintd.redact.kinds import label

TOKEN = "ghp_Qz7Lm2Xr9Vt4Kb8Nw3Hs6Jd1Fg5Pc0YaTuEi"
SK = "sk-ant-api03-Qz7Lm2Xr9Vt4Kb8Nw3Hs6Jd1Fg5Pc0"
BODY = "\n".join(
    ("MIIEpAIBAAKCAQEAq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAoIzUxMwJvB", "Hk3" + "Yx9R" * 15 + "q")
)

CASES = [
    ("password", "DB_PASSWORD=«Tundra7!kelp»"),
    ("password", 'password = "«Tundra7!kelp»"'),
    ("password", "db:\n  password: «Tundra7kelp»\n"),
    ("password", '{"user":"app","password":"«Tundra7kelp»"}'),
    ("password", '{"content":"{\\"password\\":\\"«Tundra7kelp»\\"}"}'),
    ("password", '{"a":"{\\"b\\":\\"{\\\\\\"password\\\\\\":\\\\\\"«Tundra7kelp»\\\\\\"}\\"}"}'),
    ("password", '{"password": "«Tun7\\"dra_kelp»"}'),
    ("password", "\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33m«Tundra7kelp»\x1b[0m"),
    ("password", "- name: db_password\n  value: «Tundra7kelp»\n"),
    ("password", '"db_password": {\n  "value": "«Tundra7kelp»"\n}'),
    ("password", '[{"name": "DB_PASSWORD", "value": "«Tundra7kelp»"}]'),
    ("password", "<server><password>«Tundra7kelp»</password></server>"),
    ("password", '<entry key="db.password">«Tundra7kelp»</entry>'),
    ("password", "mysql -h db -u root -p«Tundra7kelp» app"),
    ("password", "sshpass -p '«Tundra7kelp»' ssh host"),
    ("password", "redis-cli -h cache -a «Tundra7kelp» ping"),
    ("password", "docker login -u acme -p «Tundra7kelp» registry.test"),
    ("password", "htpasswd -b .htpasswd admin «Tundra7kelp»"),
    ("password", "openssl pkcs12 -passin pass:«Tundra7kelp» -nodes"),
    ("password", "deploy --password «Tundra7kelp» --verbose"),
    ("password", "machine git.test login bot password «Tundra7kelp»"),
    ("password", "the admin password is «Tundra7kelp» for staging"),
    ("password", "ALTER USER app IDENTIFIED BY '«Tundra7kelp»';"),
    ("password", "Driver=x;Server=db;Uid=app;Pwd={«Tun;dra7»};Encrypt=yes"),
    ("password", "Server=db;User ID=app;Password=«Tundra7kelp»;Encrypt=True"),
    ("password", "비밀번호: «Tundra7kelp»"),
    ("password", "$db_password = '«Tundra7kelp»';"),
    ("password", 'setProperty("db.password", "«Tundra7kelp»")'),
    ("password", 'conn.setPassword("«Tundra7kelp»")'),
    ("basic-auth", "curl -u admin:«Tundra7kelp» https://ci.test/"),
    ("basic-auth", "Authorization: Basic «YXBwOlR1bmRyYTdrZWxw»"),
    ("bearer-token", "Authorization: Bearer «q7Zr2Lm9Xt4Vb8Kn3Wh6Sj1D»"),
    ("url-password", "postgres://app:«Tundra7kelp»@db.test:5432/app"),
    ("url-password", "postgres://app:«Tun@dra/7»@db.test/app"),
    ("url-password", "redis://:«Tundra7kelp»@cache.test:6379/0"),
    ("github-token", f"https://x-access-token:«{TOKEN}»@github.com/acme/app.git"),
    ("github-token", f"key `«{TOKEN}»` found"),
    ("github-token", f"prefix_«{TOKEN}»"),
    ("github-token", f'{{"out":"$ cat t\\n«{TOKEN}»\\n"}}'),
    ("github-token", f"\x1b[31m«{TOKEN[:12]}\x1b[0m\x1b[32m{TOKEN[12:]}»\x1b[0m"),
    ("github-token", f"T=«{TOKEN[:20]}\n{TOKEN[20:]}»\nnext line"),
    ("github-token", f"k=«{TOKEN}» # gitleaks:allow betterleaks:allow kingfisher:ignore"),
    ("anthropic-key", f"日本語：«{SK}»。"),  # noqa: RUF001 - a full-width colon is meant
    ("aws-key", "aws_access_key_id = «AKIA7Q2ZX4LM6VT3KB5N»"),
    ("secret", "aws_secret_access_key = «q7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAo+/z»"),
    (
        "api-key",
        '{"url":"https://a.test/v1?limit=1\\u0026api_key=«q7Zr2Lm9Xt4Vb8Kn3Wh6»\\u0026page=2"}',
    ),
    ("cookie", "Cookie: theme=dark; sessionid=«q7zr2lm9xt4vb8kn3wh6»"),
    ("cookie", "Set-Cookie: connect.sid=«s%3Aq7Zr2Lm9Xt4Vb8Kn3Wh6»; Path=/"),
    ("password-hash", "root:«$6$q7Zr2Lm9$" + "Xt4Vb8Kn3Wh6Sj1Dg5Fc" * 4 + "»:19000:0"),
    ("wifi-password", "WIFI:T:WPA;S:office;P:«Tundra7kelp»;;"),
    ("private-key", f"«-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----»\n"),
    ("private-key", f"«-----BEGIN RSA PRIVATE KEY-----\n{BODY}»\n... [output truncated]"),
    (
        "private-key",
        "K='«-----BEGIN RSA PRIVATE KEY-----\\n"
        + BODY.replace("\n", "\\n")
        + "\\n-----END RSA PRIVATE KEY-----»'",
    ),
    ("private-key", f"«{BODY}\n-----END RSA PRIVATE KEY-----»"),
    ("token", 'tokens = ["«q7Zr2Lm9Xt4Vb8Kn»"]'),
]


@pytest.fixture(scope="module")
def redactor(request: pytest.FixtureRequest) -> Redactor:
    return Redactor(Path(request.config.cache.mkdir("redact-rules")))


def marked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without marks, and where the marked parts stand."""
    places = []
    for number, found in enumerate(re.finditer("«(.*?)»", text, re.DOTALL)):
        start = found.start() - 2 * number
        places.append((start, start + len(found[1])))
    return text.replace("«", "").replace("»", ""), places


@pytest.mark.parametrize(("kind", "text"), CASES, ids=[text[:40] for _, text in CASES])
def test_spelling(redactor: Redactor, kind: str, text: str) -> None:
    plain, places = marked(text)
    spans = tuple(RedactedSpan(start, end, kind) for start, end in places)
    expected = re.sub("«.*?»", lambda _: label(kind), text, flags=re.DOTALL)
    assert redactor.redact(plain) == Redacted(expected, spans)


def test_two_on_one_line_and_the_same_twice(redactor: Redactor) -> None:
    text = f"a={TOKEN} b={TOKEN}"
    size = len(TOKEN)
    assert redactor.redact(text) == Redacted(
        "a=[REDACTED:github-token] b=[REDACTED:github-token]",
        (
            RedactedSpan(2, 2 + size, "github-token"),
            RedactedSpan(5 + size, 5 + 2 * size, "github-token"),
        ),
    )


@pytest.mark.parametrize("before", ["", "\U0001f511 ", "\ud800 ", "a\0b ", "é\u0301 "])
def test_offsets_are_code_points(redactor: Redactor, before: str) -> None:
    text = f"{before}{TOKEN} \U0001f511"
    start = len(before)
    assert redactor.redact(text) == Redacted(
        f"{before}[REDACTED:github-token] \U0001f511",
        (RedactedSpan(start, start + len(TOKEN), "github-token"),),
    )


def test_the_library_finds_what_we_have_no_format_for(redactor: Redactor) -> None:
    text = "LAUNCHDARKLY: api-7d3f2b1a-9c4e-4d5f-8a6b-2e1c3d4f5a6b\nadafruit_key = 'aio_hQzL28mXr9Vt4Kb7Nw3Hs6Jd1FgP'"
    assert "aio_hQzL" not in redactor.redact(text).text
