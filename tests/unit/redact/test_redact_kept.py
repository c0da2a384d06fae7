"""
What must survive: hashes, ids, lock files, placeholders, references, prose.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from imprintd.redact import Redacted, Redactor

KEPT = [
    "commit 3f9c2e71ab04d85c6e19f72b0a4d8c3e5f1b6072\nAuthor: A <a@b.test>",
    "9f2c4e1 fix(auth): rotate token",
    "session 3f0c1f4e-7c55-4b1c-9a3c-0f2f8ad0b1bd started",
    '"integrity": "sha512-q7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAoIzUxMwJvBq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQ=="',
    "--hash=sha256:3f9c2e71ab04d85c6e19f72b0a4d8c3e5f1b60723f9c2e71ab04d85c6e19f72b",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    '{"type":"thinking","signature":"EqQBCkYIBRgCKkBq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAoIzUxMwJvB"}',
    '{"tool_use_id":"toolu_01Qz7Lm2Xr9Vt4Kb8Nw3Hs6J","agentId":"a3f1c2d"}',
    '"max_tokens": 4096, "input_tokens": 1234567, "token_count": 99',
    "password = os.environ['DB_PASSWORD']",
    "password: ${DB_PASSWORD}",
    "API_KEY=your-api-key-here",
    "password=<your password>",
    "const password = getPassword();",
    "def login(user: str, password: str) -> None:",
    '"password": "Password"',
    "export TOKEN=$(gh auth token)",
    "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
    "ASIAANDPACIFICREGION",
    "postgres://postgres:postgres@localhost:5432/app",
    "https://user:password@host.test/",
    "postgres://host/db?application_name=svc@prod",
    "http://localhost:8080/a@b",
    "-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5EwDQYJKoZIhvcNAQEL\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAq7Zr2Lm9Xt4Vb8Kn3Wh6\n-----END PUBLIC KEY-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAo me@host",
    "--- PASS: TestLoginWithToken (0.00s)",
    "the password is required and must be at least twelve characters",
    "primary key: user_id, foreign key: order_id",
    'fetch(url, { credentials: "include" })',
    "restored from key: setup-node-linux-x64-3f9c2e71ab04d85c6e19f72b0a4d8c3e",
    "Cookie: theme=dark; lang=en",
    "x [REDACTED:password] [REDACTED:github-token] password=[REDACTED:password]",
    "",
    "\ud800\0\U0001f511",
]


@pytest.fixture(scope="module")
def redactor(request: pytest.FixtureRequest) -> Redactor:
    return Redactor(Path(request.config.cache.mkdir("redact-rules")))


@pytest.mark.parametrize("text", KEPT, ids=[repr(text[:40]) for text in KEPT])
def test_kept(redactor: Redactor, text: str) -> None:
    assert redactor.redact(text) == Redacted(text, ())
