"""
What holds for every text: nothing is redacted twice, nothing comes back.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprintd.redact import KINDS, Redacted, RedactedSpan, Redactor
from imprintd.redact.kinds import label

PIECES = st.sampled_from(
    [
        "password", "DB_PASSWORD", "token", "api_key", "secret", "key", "=", ": ", ":", '"', "'", '\\"', '\\\\\\"',
        "\\n", "\n", " ", "\t", "@", "/", "://", "http://", "a:", "{", "}", "<", ">", ";", "&", "?", ",", "|",
        "-p ", "--password ", "curl -u ", "mysql ", "Authorization: ", "Basic ", "Bearer ", "Cookie: ", "value", "name",
        "ghp_Qz7Lm2Xr9Vt4Kb8Nw3Hs6Jd1Fg5Pc0YaTuEi", "AKIA7Q2ZX4LM6VT3KB5N", "Tundra7kelp", "q7Zr2Lm9Xt4Vb8Kn3Wh6Sj1D",
        "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEAq7Zr2Lm9Xt4Vb8Kn3Wh6Sj1Dg5Fc0PyTuQeAoIzUxMwJvBq7",
        "[REDACTED:password]", "[REDACTED:github-token]", "[REDACTED:", "]", "\x1b[31m", "\x1b[0m", "\\u001b[0m", "\\u0026",
        "\0", "\ud800", "\U0001f511", "密码", "is", "user", "identified by ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.q7Zr2Lm9Xt4Vb8Kn3Wh6",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=24).map("".join) | st.text(st.characters(codec=None), max_size=80)
HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def redactor(request: pytest.FixtureRequest) -> Redactor:
    return Redactor(Path(request.config.cache.mkdir("redact-rules")))


@settings(max_examples=600, deadline=None, suppress_health_check=HEALTH)
@given(TEXTS)
def test_redacting_again_changes_nothing(redactor: Redactor, text: str) -> None:
    once = redactor.redact(text)
    assert redactor.redact(once.text) == Redacted(once.text, ())


@settings(max_examples=400, deadline=None, suppress_health_check=HEALTH)
@given(TEXTS)
def test_the_text_is_the_input_with_labels_for_spans(redactor: Redactor, text: str) -> None:
    result = redactor.redact(text)
    parts, last = [], 0
    for span in result.spans:
        assert last <= span.start < span.end <= len(text)
        assert span.kind in KINDS
        parts += [text[last : span.start], label(span.kind)]
        last = span.end
    assert "".join([*parts, text[last:]]) == result.text


@settings(max_examples=150, deadline=None, suppress_health_check=HEALTH)
@given(st.lists(TEXTS, max_size=6))
def test_alone_or_in_a_batch(redactor: Redactor, texts: list[str]) -> None:
    assert redactor.redact_many(texts) == [redactor.redact(text) for text in texts]


@settings(max_examples=300, deadline=None, suppress_health_check=HEALTH)
@given(TEXTS, TEXTS)
def test_a_label_is_never_taken_back(redactor: Redactor, before: str, after: str) -> None:
    text = f"{before} [REDACTED:github-token] {after}"
    result = redactor.redact(text)
    start = len(before) + 1
    end = start + len("[REDACTED:github-token]")
    swallowed = any(s.start <= start and end <= s.end for s in result.spans)
    untouched = all(s.end <= start or end <= s.start for s in result.spans)
    assert swallowed or untouched


@settings(max_examples=200, deadline=None, suppress_health_check=HEALTH)
@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_json_of_decoded_values_stays_json(redactor: Redactor, record: dict[str, str]) -> None:
    redacted = {key: redactor.redact(value).text for key, value in record.items()}
    assert json.loads(json.dumps(redacted)) == redacted


@pytest.mark.parametrize("lead", ["", "x ", '{"a": "'])
def test_a_secret_across_a_cut_is_found_in_the_whole(redactor: Redactor, lead: str) -> None:
    token = "ghp_Qz7Lm2Xr9Vt4Kb8Nw3Hs6Jd1Fg5Pc0YaTuEi"
    text = f"{lead}{token}"
    assert redactor.redact(text).spans == (RedactedSpan(len(lead), len(text), "github-token"),)
