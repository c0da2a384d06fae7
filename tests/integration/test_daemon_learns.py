"""The daemon as its user meets it: real process, real files, real socket."""

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_support import Conversation, Daemon, watching

KEY = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("daemon")
    projects = folder / "claude"
    for number in range(3):
        conversation = Conversation(projects, number)
        conversation.append(
            conversation.turn(
                f"How is the marmalade number {number} labelled?",
                f"With a paper label, glued by hand. token {KEY}",
            )
        )
    with Daemon(folder, watching(projects)) as running:
        running.wait_until_learned(3)
        yield running


def test_everything_on_disk_is_learned_and_verified(daemon: Daemon) -> None:
    verdict = daemon.json("verify", "--all")

    assert {k: verdict[k] for k in ("sources", "ok", "rebuilt_exactly", "missing", "extra")} == {
        "sources": 3,
        "ok": 3,
        "rebuilt_exactly": 3,
        "missing": 0,
        "extra": 0,
    }


def test_an_append_is_found_and_reads_back_exactly(daemon: Daemon) -> None:
    conversation = Conversation(daemon.data_dir.parent / "claude", 7)
    conversation.append(conversation.turn("What about quince?", "Quince jelly sets by itself."))
    daemon.wait_until_learned(4)
    before = daemon.json("read", conversation.key)
    conversation.append(conversation.turn("And zugzwang?", "That word is from chess."))

    daemon.wait_for(
        lambda: any(
            "zugzwang" in hit["excerpt"]
            for hit in daemon.client.get("/v1/search", {"q": "zugzwang"})["hits"]
        )
    )

    events = daemon.json("events", conversation.key)["events"]
    after = daemon.json("read", conversation.key, "--verify")
    assert [(e["role"], e["turn"], e["body"]) for e in events] == [
        ("user", 1, "What about quince?"),
        ("assistant", 1, "Quince jelly sets by itself."),
        ("user", 2, "And zugzwang?"),
        ("assistant", 2, "That word is from chess."),
    ]
    assert after["text"].startswith(before["text"])
    assert after["version"] != before["version"]
    assert after["integrity"]["missing"] == after["integrity"]["extra"] == []
    gone = daemon.run("read", conversation.key, "--version", before["version"], "--json")
    assert (gone.returncode, json.loads(gone.stdout)["error"]["code"]) == (4, "version-replaced")


def test_a_secret_is_on_disk_nowhere(daemon: Daemon) -> None:
    held = [
        str(path)
        for path in daemon.data_dir.rglob("*")
        if path.is_file() and KEY.encode() in path.read_bytes()
    ]

    assert held == []
    page = daemon.json("read", Conversation(daemon.data_dir.parent / "x", 0).key)
    assert "[REDACTED:github-token]" in page["text"]


def test_only_the_owner_can_read_what_is_stored(daemon: Daemon) -> None:
    modes = {
        (stat.S_ISDIR(mode), stat.S_IMODE(mode) & 0o077)
        for path in (daemon.data_dir, *daemon.data_dir.rglob("*"))
        for mode in [path.stat().st_mode]
    }

    assert modes == {(True, 0), (False, 0)}


def test_a_second_daemon_is_told_who_holds_the_directory(daemon: Daemon) -> None:
    second = daemon.run("run")

    assert second.returncode == 75
    assert "in use by" in second.stderr


def test_curl_can_ask_the_socket(daemon: Daemon) -> None:
    answer = subprocess.run(
        ["curl", "-s", "--unix-socket", str(daemon.client.path), "http://imprintd/v1/status"],
        capture_output=True,
        check=True,
    )

    status = json.loads(answer.stdout)
    assert (status["state"], status["schema"], status["peers"]) == ("running", 1, [])
    assert set(status["backlog"]) == {"sources", "bytes", "eta_seconds"}
    assert set(status["rooms"]) >= {"watch", "learn", "housekeeping"}


def test_a_damaged_line_is_named_and_everything_else_goes_on(daemon: Daemon) -> None:
    damaged = Conversation(daemon.data_dir.parent / "claude", 8)
    damaged.append(damaged.turn("Before the damage?", "Yes, before."))
    damaged.append(b'{"type":"user","uuid":"torn\n')
    daemon.wait_for(lambda: bool(daemon.client.get("/v1/status")["errors"]))

    (error,) = daemon.client.get("/v1/status")["errors"]
    salvaged = daemon.json("learn", str(damaged.path), "--salvage")

    assert (error["path"], error["line"], "--salvage" in error["remedy"]) == (
        str(damaged.path),
        3,
        True,
    )
    assert salvaged["omissions"] == {"damaged": 27}
    assert daemon.client.get("/v1/status")["errors"] == []
    assert len(daemon.json("events", damaged.key)["events"]) == 2


def test_stop_is_orderly_and_a_restart_reads_nothing_again(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path / "claude", 1)
    conversation.append(conversation.turn("One?", "Two."))
    daemon = Daemon(tmp_path, watching(tmp_path / "claude"))
    with daemon:
        daemon.wait_until_learned(1)
        assert daemon.stop() == 0
        assert not daemon.client.path.exists()
        daemon.start()
        status = daemon.wait_until_learned(1)

    assert status["learning"]["bytes_read"] == 0
