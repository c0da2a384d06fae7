"""Which source a file is, and where clients keep theirs."""

from __future__ import annotations

import pytest
from reader_support import SAMPLES, claude_user, codex, jsonl

from imprintd.readers import identify, with_stem
from imprintd.readers.base import Identity
from imprintd.readers.roots import (
    ClientRoot,
    default_roots,
    is_transcript,
    preferred,
    side_folder,
)

SESSION = "3f0c8a52-6d1b-4e7a-9c44-0a1b2c3d4e5f"
THREAD = "019c0a10-5b6c-7d00-8e1f-a0b1c2d3e4f5"
PARENT = "019c0a00-0000-7d00-8e1f-a0b1c2d3e4f5"


def told(path: str, head: bytes) -> Identity | None:
    found = identify(path, head)
    if found is None:
        return None
    assert found[1].key.startswith(found[0].client + ":")
    return found[1]


def test_every_sample() -> None:
    got = {}
    for path in sorted(SAMPLES.glob("*/**/*.jsonl")):
        identity = told(str(path), path.read_bytes()[: 64 * 1024])
        got[path.stem[:16] + path.parent.name[:4]] = identity
    loom = "/home/ada/loom"
    main = f"claude:{SESSION}"
    assert got == {
        "3f0c8a52-6d1b-4e-hom": Identity(main, project=loom),
        "5a7d1c90-2b3e-4f-hom": Identity(
            "claude:5a7d1c90-2b3e-4f60-8a71-b2c3d4e5f607", project=loom
        ),
        "agent-a1b2c3d4-hom": Identity(f"{main}:a1b2c3d4", parent=main, project=loom),
        "agent-e5f60718suba": Identity(f"{main}:e5f60718", parent=main, project=loom),
        "agent-0a0b0c0dwf_1": Identity(f"{main}:0a0b0c0d", parent=main, project=loom),
        "journalwf_1": None,
        "rollout-2025-09-01": Identity(
            "codex:6b1f2a34-5c6d-4e7f-8a9b-0c1d2e3f4a5b", project="/home/ada/forge"
        ),
        "rollout-2026-03-05": Identity(
            "codex:019c0a20-1111-7d00-8e1f-a0b1c2d3e4f6", project="/home/ada/kiln"
        ),
    }


@pytest.mark.parametrize(
    "path",
    [
        f"/x/projects/-loom/{SESSION}.jsonl",
        f"/elsewhere/{SESSION}.jsonl",
        f"C:/Users/ada/.claude/projects/C--loom/{SESSION.upper()}.jsonl",
    ],
)
def test_a_session_is_its_uuid_wherever_it_lies(path: str) -> None:
    head = jsonl(claude_user(1, "hello"))
    assert told(path, head) == Identity(f"claude:{SESSION}", project="/home/ada/loom")


def test_a_session_with_nothing_readable_yet_is_known_by_its_place() -> None:
    for head in (b"", b"\0" * 9000, b'{"parentUuid":null,"isSidechain":fal'):
        found = told(f"/h/.claude/projects/-loom/{SESSION}.jsonl", head)
        assert found == Identity(f"claude:{SESSION}")
    assert told(f"/tmp/{SESSION}.jsonl", b"") is None


def test_a_first_record_longer_than_the_head() -> None:
    head = jsonl(claude_user(1, "x" * 100_000) | {"sessionId": SESSION})[: 64 * 1024]
    assert told("/tmp/export.jsonl", head) == Identity(
        f"claude:{SESSION}", project="/home/ada/loom", named=False
    )


def test_an_unusual_name_takes_the_session_of_its_content() -> None:
    head = jsonl(claude_user(1, "hello") | {"sessionId": SESSION})
    found = told("/tmp/full.jsonl", head)
    assert found == Identity(f"claude:{SESSION}", project="/home/ada/loom", named=False)
    second = with_stem(found, "/tmp/other copy.v2.jsonl")
    assert second.key == f"claude:{SESSION}:other-copy"


def test_a_session_id_is_never_a_path() -> None:
    for name in ("../../etc/passwd", "a:b", "x" * 200, "", "a b", 7):
        head = jsonl(claude_user(1, "hello") | {"sessionId": name})
        assert told("/tmp/full.jsonl", head) is None


@pytest.mark.parametrize(
    "name", ["history.jsonl", "journal.jsonl", "notes.txt", "x.json", "session_index.jsonl"]
)
def test_what_is_no_transcript(name: str) -> None:
    lines = jsonl(
        {"display": "hi", "pastedContents": {}, "timestamp": 1, "project": "/p"},
        {"id": THREAD, "thread_name": "n", "updated_at": "2026-01-01T00:00:00Z"},
        {"session_id": THREAD, "ts": 1, "text": "hi"},
    )
    assert told(f"/h/.claude/{name}", lines) is None


ROLLOUT = f"rollout-2026-03-05T11-00-00-{THREAD}"
META = codex("session_meta", id=THREAD, cwd="/home/ada/kiln", cli_version="0.104.0")


@pytest.mark.parametrize(
    "path",
    [
        f"/h/.codex/sessions/2026/03/05/{ROLLOUT}.jsonl",
        f"/h/.codex/archived_sessions/{ROLLOUT}.jsonl",
        f"/h/.codex/archived_sessions/{ROLLOUT}.jsonl.zst",
        f"/h/.codex/sessions/2026/03/05/{ROLLOUT}_{PARENT}.jsonl",
        f"/tmp/{ROLLOUT}.v2.jsonl",
    ],
)
def test_a_thread_is_its_uuid_wherever_it_lies(path: str) -> None:
    assert told(path, jsonl(META)) == Identity(f"codex:{THREAD}", project="/home/ada/kiln")


def test_a_thread_under_an_unusual_name() -> None:
    found = told("/tmp/export.jsonl", jsonl(META))
    assert found == Identity(f"codex:{THREAD}", project="/home/ada/kiln", named=False)
    headless = jsonl(codex("event_msg", type="task_started", turn_id="t"))
    assert told("/tmp/part.jsonl", headless) == Identity("codex:part")


def test_a_first_thread_record_longer_than_the_head() -> None:
    long = codex("session_meta", id=THREAD, base_instructions={"text": "x" * 100_000})
    head = jsonl(long)[: 64 * 1024]
    assert told("/tmp/export.jsonl", head) == Identity(f"codex:{THREAD}", named=False)
    assert told(f"/h/{ROLLOUT}.jsonl", head) == Identity(f"codex:{THREAD}")


@pytest.mark.parametrize(
    ("more", "parent"),
    [
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
            PARENT,
        ),
        ({"source": {"subagent": "review"}, "forked_from_id": PARENT}, PARENT),
        ({"source": {"subagent": "review"}}, None),
        ({"thread_source": "subagent", "parent_thread_id": PARENT}, PARENT),
        ({"source": "cli", "forked_from_id": PARENT}, None),
        ({"source": {"subagent": "review"}, "forked_from_id": "../x"}, None),
        ({"source": {"subagent": "review"}, "forked_from_id": THREAD}, None),
    ],
)
def test_a_sub_agent_has_a_parent_and_a_fork_has_none(
    more: dict[str, object], parent: str | None
) -> None:
    found = told(f"/h/{ROLLOUT}.jsonl", jsonl(META | {"payload": META["payload"] | more}))
    assert found == Identity(
        f"codex:{THREAD}", parent=f"codex:{parent}" if parent else None, project="/home/ada/kiln"
    )


def test_default_roots() -> None:
    claude, config = "/home/ada/.claude/projects", "/home/ada/.config/claude/projects"
    kept = "/home/ada/.codex/sessions", "/home/ada/.codex/archived_sessions"
    standard = (
        ClientRoot("claude", claude),
        ClientRoot("claude", config),
        ClientRoot("codex", kept[0]),
        ClientRoot("codex", kept[1]),
    )
    assert default_roots({}, "/home/ada") == standard
    # as the clients do: empty is unset, `~` is a folder of that name
    assert default_roots({"CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}, "/home/ada") == standard
    assert default_roots({"CLAUDE_CONFIG_DIR": "~/x"}, "/home/ada") == standard
    assert default_roots(
        {"CLAUDE_CONFIG_DIR": "/srv/claude", "CODEX_HOME": "/srv/codex"}, "/home/ada"
    ) == (
        ClientRoot("claude", "/srv/claude/projects"),
        ClientRoot("claude", claude),
        ClientRoot("claude", config),
        ClientRoot("codex", "/srv/codex/sessions"),
        ClientRoot("codex", "/srv/codex/archived_sessions"),
    )
    assert default_roots({}, "C:\\Users\\ada", windows=True)[0] == ClientRoot(
        "claude", "C:\\Users\\ada\\.claude\\projects"
    )


@pytest.mark.parametrize(
    ("client", "relative", "expected"),
    [
        ("claude", f"-loom/{SESSION}.jsonl", True),
        ("claude", f"-loom/{SESSION}/subagents/workflows/wf_1/agent-1.jsonl", True),
        ("claude", f"-loom/{SESSION}/subagents/workflows/wf_1/journal.jsonl", False),
        ("claude", f"-loom/{SESSION}/tool-results/x.jsonl", False),
        ("claude", "-loom/memory/notes.md", False),
        ("claude", f"-loom/{SESSION}.jsonl.zst", False),
        ("codex", f"2026/03/05/{ROLLOUT}.jsonl", True),
        ("codex", f"2026/03/05/{ROLLOUT}.jsonl.zst", True),
        ("codex", f"2026/03/05/{ROLLOUT}.jsonl.tmp", False),
    ],
)
def test_which_files_can_be_transcripts(client: str, relative: str, expected: bool) -> None:
    assert is_transcript(client, relative) is expected


def test_the_plain_file_is_preferred() -> None:
    assert preferred(["b.jsonl.zst", "a.jsonl.zst", "a.jsonl", "a.jsonl"]) == (
        "b.jsonl.zst",
        "a.jsonl",
    )


def test_side_folders() -> None:
    folder = f"/p/-loom/{SESSION}/tool-results"
    assert side_folder(f"/p/-loom/{SESSION}.jsonl") == folder
    assert side_folder(f"/p/-loom/{SESSION}/subagents/agent-1.jsonl") == folder
    assert side_folder(f"/p/-loom/{SESSION}/subagents/workflows/w/agent-1.jsonl") == folder
