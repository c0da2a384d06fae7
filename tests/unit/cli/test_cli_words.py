"""Times as people type them, harmless output, global flags, exit codes, configuration."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from imprintd.cli import main as cli_main
from imprintd.cli.output import harmless
from imprintd.cli.when import milliseconds
from imprintd.config import Config, Root, Watch, load, socket_path
from imprintd.errors import ConfigError, UsageError

NOW = dt.datetime(2026, 11, 5, 15, 30, tzinfo=dt.UTC)  # a Thursday


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2026-11-03", "2026-11-03T00:00:00+00:00"),
        ("2026-11-03T14:00", "2026-11-03T14:00:00+00:00"),
        ("2026-11-03T14:00:00+02:00", "2026-11-03T12:00:00+00:00"),
        ("2h", "2026-11-05T13:30:00+00:00"),
        ("3 days ago", "2026-11-02T15:30:00+00:00"),
        ("1w", "2026-10-29T15:30:00+00:00"),
        ("now", "2026-11-05T15:30:00+00:00"),
        ("today", "2026-11-05T00:00:00+00:00"),
        ("Yesterday", "2026-11-04T00:00:00+00:00"),
        ("tuesday", "2026-11-03T00:00:00+00:00"),
        ("last thursday", "2026-10-29T00:00:00+00:00"),
    ],
)
def test_times_as_people_type_them(words: str, expected: str) -> None:
    moment = dt.datetime.fromtimestamp(milliseconds(words, NOW) / 1000, dt.UTC)

    assert moment.isoformat() == expected


@pytest.mark.parametrize("words", ["", "soonish", "2 fortnights", "2026-13-01"])
def test_other_words_are_no_time(words: str) -> None:
    with pytest.raises(UsageError, match="no point in time"):
        milliseconds(words, NOW)


def test_nothing_a_terminal_obeys_is_printed() -> None:
    assert harmless("a\x1b[31mred\x07\tb\u202ec\ud800\n") == (
        "a\\x1b[31mred\\x07\tb\\u202ec\N{REPLACEMENT CHARACTER}\n"
    )


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli_main.main(list(arguments))
    out = capsys.readouterr()
    return int(stop.value.code or 0), out.out, out.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("sources",), 0),
        (("search", "nothing"), 3),
        (("read", "claude:none"), 3),
        (("get", "mnone"), 3),
        (("status",), 6),
        (("verify",), 2),
        (("read",), 2),
        (("search", "x", "--limit", "0"), 2),
        (("search", "x", "--since", "soonish"), 2),
        (("learn", "/does/not/exist"), 2),
        (("nonsense",), 2),
        (("--config", "/does/not/exist.toml", "status"), 78),
    ],
)
def test_exit_codes(capsys: Any, tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    assert run(capsys, "--data-dir", str(tmp_path / "data"), *arguments)[0] == code


def test_global_flags_count_before_and_after_the_command(capsys: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")

    before = run(capsys, "--data-dir", folder, "--json", "sources")
    after = run(capsys, "sources", "--data-dir", folder, "--json")

    assert before == after == (0, "[]\n", "")


def test_an_error_is_one_json_document_and_a_sentence(capsys: Any, tmp_path: Path) -> None:
    code, out, err = run(capsys, "get", "mnone", "--json", "--data-dir", str(tmp_path / "data"))

    assert (code, json.loads(out)["error"]["code"]) == (3, "not-known")
    assert err.startswith("imprintd: nothing has been learned")


def test_a_configuration_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[watch]\nroots = [{ path = "/x", client = "claude" }]\nsettle_ms = 5\n')

    assert load(file, {}) == Config(watch=Watch(roots=(Root("/x", "claude"),), settle_ms=5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[wach]\n", "unknown key wach; did you mean watch?"),
        ("[watch]\nsettle = 5\n", "unknown key watch.settle; did you mean watch.settle_ms"),
        ('[watch]\nsettle_ms = "5"\n', "watch.settle_ms must be a whole number, not a string"),
        ("[watch]\nsettle_ms = true\n", "must be a whole number, not true or false"),
        ('[watch]\nroots = [{ path = "/x" }]\n', "needs client"),
        ("[watch]\nroots = 3\n", "watch.roots must be a list"),
        ("watch = 3\n", r"\[watch\] must be a table"),
        ('[reading]\ndamaged_lines = "ignore"\n', "can be fail or salvage"),
        ("[chunker]\nhard_max = 100\n", "size_prose <= hard_max"),
        ("[embed]\nduty = 0\n", "duty must be from 1 to 100"),
        ("[watch\n", "config.toml"),
    ],
)
def test_a_wrong_configuration_names_the_key(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=said):
        load(file, {})


def test_two_data_directories_never_share_a_socket(tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}

    default = socket_path(Config(), tmp_path / "share" / "imprintd", environ)
    other = socket_path(Config(), tmp_path / "elsewhere", environ)

    assert default == tmp_path / "imprintd" / "imprintd.sock"
    assert other == tmp_path / "elsewhere" / "imprintd.sock"
