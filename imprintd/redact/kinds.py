"""
The fixed list of labels that stand where a secret stood.

Coarse on purpose: a label says what kind of thing was removed and nothing that
would help to guess it. No fingerprint either: a hash of a weak password can be
guessed offline. Labels are opaque to every rule, so redacted text stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

KINDS: Final[tuple[str, ...]] = (
    # Most telling first: where findings overlap, the earlier kind names the union.
    "private-key",
    "github-token",
    "gitlab-token",
    "aws-key",
    "google-key",
    "azure-key",
    "anthropic-key",
    "openai-key",
    "ai-key",
    "slack-token",
    "discord-token",
    "telegram-token",
    "stripe-key",
    "payment-key",
    "mail-key",
    "package-token",
    "vault-token",
    "cloud-token",
    "ci-token",
    "monitoring-key",
    "database-token",
    "productivity-token",
    "webhook",
    "encryption-key",
    "otp-seed",
    "jwt",
    "url-password",
    "basic-auth",
    "bearer-token",
    "cookie",
    "password-hash",
    "connection-string",
    "wifi-password",
    "password",
    "api-key",
    "client-secret",
    "session",
    "token",
    "secret",
)
"""Every kind there is, the most telling first."""

RANK: Final[dict[str, int]] = {kind: number for number, kind in enumerate(KINDS)}

OPEN: Final = "[REDACTED:"
LABEL: Final = re.compile(rb"\[REDACTED:[a-z0-9-]{1,32}\]")
"""A label in bytes, also one that an older list of kinds knew."""


def label(kind: str) -> str:
    """The text that replaces a secret of this kind."""
    return f"{OPEN}{kind}]"


_BY_RULE: Final[tuple[tuple[str, str], ...]] = (
    ("private-key", "private-key"),
    ("github", "github-token"),
    ("gitlab", "gitlab-token"),
    ("aws", "aws-key"),
    ("amazon", "aws-key"),
    ("gcp", "google-key"),
    ("google", "google-key"),
    ("azure", "azure-key"),
    ("anthropic", "anthropic-key"),
    ("openai", "openai-key"),
    ("slack", "slack-token"),
    ("discord", "discord-token"),
    ("telegram", "telegram-token"),
    ("stripe", "stripe-key"),
    ("jwt", "jwt"),
    ("jwk", "private-key"),
    ("uri", "url-password"),
    ("curl-auth-user", "basic-auth"),
    ("curl-auth-header", "bearer-token"),
    ("npm", "package-token"),
    ("pypi", "package-token"),
    ("rubygems", "package-token"),
    ("vault", "vault-token"),
    ("hashicorp", "vault-token"),
    ("sendgrid", "mail-key"),
    ("mailgun", "mail-key"),
    ("mailchimp", "mail-key"),
    ("twilio", "mail-key"),
    ("square", "payment-key"),
    ("shopify", "payment-key"),
    ("webhook", "webhook"),
    ("age-secret", "encryption-key"),
    ("password", "password"),
    ("client-secret", "client-secret"),
    ("cookie", "cookie"),
    ("token", "token"),
    ("secret", "secret"),
)


def kind_of_rule(rule: str) -> str:
    """The coarse kind for a rule name of the scanner library; `api-key` if unknown."""
    name = rule.casefold()
    return next((kind for part, kind in _BY_RULE if part in name), "api-key")
