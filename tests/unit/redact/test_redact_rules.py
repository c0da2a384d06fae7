"""
The room's inner parts: cache, profile, bounded work, the golden file.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from imprintd.redact import KINDS, Redactor
from imprintd.redact.cache import load, save
from imprintd.redact.engine import Pattern, Prefilter
from imprintd.redact.found import Found, merge
from imprintd.redact.names import promise
from imprintd.redact.profile import profile

GOLDEN = Path(__file__).with_name("redact_golden.json")


@pytest.fixture(scope="module")
def redactor(request: pytest.FixtureRequest) -> Redactor:
    return Redactor(Path(request.config.cache.mkdir("redact-rules")))


def test_kinds_are_few_and_coarse() -> None:
    assert 30 <= len(KINDS) <= 40
    assert len(set(KINDS)) == len(KINDS)
    assert all(set(kind) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for kind in KINDS)


def test_no_label_is_matched_by_a_rule(redactor: Redactor) -> None:
    labels = " ".join(f"[REDACTED:{kind}]" for kind in KINDS)
    pairs = "\n".join(f"password=[REDACTED:{kind}]\n{kind}: [REDACTED:{kind}]" for kind in KINDS)
    assert [r.spans for r in redactor.redact_many([labels, pairs])] == [(), ()]


def test_cache_files_are_private_and_checked(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    save(folder, "one", "key", b"content")
    file = folder / "one"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load(folder, "one", "key") == b"content"
    assert load(folder, "one", "other key") is None
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    assert load(folder, "one", "key") is None
    assert load(folder, "absent", "key") is None


def test_a_damaged_database_is_compiled_again(tmp_path: Path) -> None:
    patterns = [Pattern(7, "needle[0-9]", start=True)]
    expected = [(8, 1, 7)]
    assert Prefilter(patterns, tmp_path).scan(b" needle1 ") == expected
    (file,) = tmp_path.glob("*.hs")
    good = file.read_bytes()
    file.write_bytes(good[:-9] + bytes(9))
    assert Prefilter(patterns, tmp_path).scan(b" needle1 ") == expected
    assert file.read_bytes() == good


def test_a_lenient_prefilter_leaves_out_what_does_not_compile() -> None:
    patterns = [Pattern(1, "good"), Pattern(2, "(?=bad)")]
    assert Prefilter(patterns, lenient=True).scan(b"good bad") == [(4, 0, 1)]


def test_merging_takes_the_most_telling_kind() -> None:
    found = [Found(4, 9, "password"), Found(0, 5, "github-token"), Found(9, 12, "token")]
    assert merge(found) == [Found(0, 9, "github-token"), Found(9, 12, "token")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DB_PASSWORD", "password"), ("dbPassword", "password"), ("PASS", "pass"), ("client_secret", "secret"),
        ("apiKey", "key"), ("GITHUB_TOKEN", "token"), ("sessionid", "auth"), ("key", "loose"),
        ("max_tokens", ""), ("secretName", ""), ("primary_key", ""), ("tokenizationId", ""), ("password_file", ""),
        ("publicKey", ""), ("monkeys-audio", ""), ("forgot_password", ""), ("ClientRequestToken", ""),
    ],
)  # fmt: skip
def test_what_a_name_promises(name: str, expected: str) -> None:
    assert promise(name) == expected


def test_profile_is_the_same_everywhere(redactor: Redactor) -> None:
    assert redactor.profile == profile()
    assert len(profile()) == 64


def golden(redactor: Redactor) -> dict[str, Any]:
    """What the golden file should hold now."""
    from test_redact_kept import KEPT
    from test_redact_spellings import CASES, marked

    texts = [marked(text)[0] for _, text in CASES] + KEPT
    return {
        "profile": redactor.profile,
        "spans": [[[s.start, s.end, s.kind] for s in redactor.redact(t).spans] for t in texts],
    }


def test_a_changed_result_needs_a_new_profile(redactor: Redactor) -> None:
    stored, now = json.loads(GOLDEN.read_text()), golden(redactor)
    if stored["spans"] != now["spans"]:
        assert stored["profile"] != now["profile"], "raise STEPS in profile.py"
    assert stored == now, f"write the golden file anew: python {Path(__file__).name}"


def calls(redactor: Redactor, text: str) -> int:
    """How many calls, of Python and of C, one redaction makes."""
    count = 0

    def step(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(step)
    try:
        redactor.redact(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit",
    [
        "password=x ", "key:", "value: ", "name: x, value: ", "http://a:b@", "Cookie: a=b; ", "ghp_", "sk-", "eyJ", "\\", '\\"',
        "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----\n", "curl -u ", "\x1b[0m", "Password={",
        "password=Tundra7kelp ", "[REDACTED:password]", "<password>", "A" * 63 + "\n", "AKIA", "token ", "authorization: basic ",
    ],
)  # fmt: skip
def test_work_grows_with_the_text_and_not_faster(redactor: Redactor, unit: str) -> None:
    size = 16_000
    small = calls(redactor, unit * (size // len(unit)))
    large = calls(redactor, unit * (4 * size // len(unit)))
    assert large <= 5 * small + 2_000


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        GOLDEN.write_text(json.dumps(golden(Redactor(Path(folder))), indent=0) + "\n")
