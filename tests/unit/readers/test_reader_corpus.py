"""Real transcripts, where they are at hand: all read, in pieces too, no word lost."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reader_support import CORPUS, Driver, MemoryLedger, bodies, read

from imprintd.errors import DamagedLine
from imprintd.readers import identify
from imprintd.readers.base import Reader

FILES = sorted(path for name in ("claude", "codex") for path in (CORPUS / name).glob("**/*.jsonl"))
TRANSCRIPTS = [path for path in FILES if path.name != "session_index.jsonl"]

pytestmark = pytest.mark.skipif(not FILES, reason="no corpus beside the checkout")


def opened(path: Path) -> tuple[Reader, bytes]:
    data = path.read_bytes()
    found = identify(str(path), data[: 64 * 1024])
    assert found is not None
    return found[0], data


def test_every_transcript_is_known_and_nothing_else() -> None:
    known = [path for path in FILES if identify(str(path), path.read_bytes()[:65536])]
    assert known == TRANSCRIPTS
    assert [opened(path)[0].client for path in TRANSCRIPTS] == [
        path.relative_to(CORPUS).parts[0] for path in TRANSCRIPTS
    ]


def test_every_transcript_is_read_or_refused_by_name() -> None:
    unknown: Counter[str] = Counter()
    refused = []
    for path in TRANSCRIPTS:
        reader, data = opened(path)
        try:
            got = read(reader, data)
        except DamagedLine as error:
            refused.append((path.name, error.line))
            got = read(reader, data, salvage=True)
        assert got.consumed == len(data)
        assert got.events or len(data) < 1000
        unknown.update(got.coverage.unknown)
    assert unknown == {}
    assert len(refused) <= 1


def test_pieces_give_the_same_as_the_whole() -> None:
    draw = random.Random(3)
    for path in TRANSCRIPTS:
        reader, data = opened(path)
        if len(data) > 700_000:
            continue
        whole = read(reader, data, salvage=True)
        cuts = [draw.randrange(len(data)) for _ in range(5)]
        assert read(reader, data, cuts, salvage=True) == whole


def test_a_growing_rollout_gives_each_event_once() -> None:
    versions = sorted((CORPUS / "codex" / "growth").glob("**/*.jsonl"))
    reader, last = opened(versions[-1])
    whole = read(reader, last)
    ledger = MemoryLedger()
    # each version seen as a file that replaced the one before
    got = []
    for number, path in enumerate(versions):
        driver = Driver(reader, ledger=ledger, fresh=number > 0)
        driver.feed(path.read_bytes(), final=True)
        got += bodies(driver)
    assert got == bodies(whole)


# Fields that are metadata, second copies or opaque: docs/readers.md lists them.
LEFT_OUT = re.compile(
    r"""^(?:
    .*\.(?:uuid|parentUuid|logicalParentUuid|sessionId|session_id|requestId|promptId|timestamp
        |cwd|slug|gitBranch|version|agentId|messageId|leafUuid|signature|encrypted_content
        |sourceToolAssistantUUID|sourceToolUseID|toolUseID|parentToolUseID|call_id|turn_id
        |trace_id|tool_use_id)
    |(?:user|assistant|system|attachment|progress)[^.]*\.message\.(?:id|model)
    |assistant[^.]*\.message\.content\[\]\.id
    |user[^.]*\.(?:toolUseResult\b.*|planContent|userFeedback|todos\b.*)
    |[^.]*\.type|attachment.*\.attachment\.(?:type|command|hookName|hookEvent)
    |attachment.*\.(?:names|addedNames|addedTypes)\[\]
    |system/(?:stop_hook_summary|turn_duration)\..*
    |system/microcompact_boundary\.(?:microcompactMetadata.*|subtype)
    |progress/.*|file-history-[a-z]+/.*|last-prompt/.*|summary/.*|ai-title/.*|custom-title/.*
    |.*\.source\.data
    |.*\.image_url
    |session_meta/.*|hdr/.*|turn_context/[^.]*\.payload\.(?!user_instructions|collaboration_mode).*
    |event_msg/(?:exec_command_end|patch_apply_end|task_\w+|thread_settings_applied|web_search_end)\..*
    |response_item/ghost_snapshot\..*|compacted/[^.]*\.payload\.replacement_history.*
    |(?:response_item/[^.]*\.payload|[a-z_]+/None)\.(?:id|type)
    |response_item/[^.]*\.payload\.type
    )$""",
    re.VERBOSE,
)


def leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}")
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, f"{path}[]")
    elif isinstance(value, str) and len(value) >= 20:
        yield path, value


def stands(words: str, text: str) -> bool:
    """Whether a string stands in the bodies, whole, decoded or split by typed parts."""
    if words in text:
        return True
    if words[:1] in "{[":
        try:
            inner = json.loads(words)
        except ValueError:
            inner = words
        if not isinstance(inner, str):
            return all(stands(leaf, text) for _, leaf in leaves(inner, ""))
    bare = re.sub(r"</?(?:command-args|bash-input)>", "\n", words)
    return all(line.strip() in text for line in bare.split("\n") if len(line) >= 20)


def test_every_readable_string_is_in_a_body_or_named_as_left_out() -> None:
    lost: Counter[str] = Counter()
    for path in TRANSCRIPTS:
        reader, data = opened(path)
        got = read(reader, data, salvage=True)
        text = "\0".join(bodies(got))
        for line in data.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            inner = record.get("attachment") or record.get("data") or record.get("payload") or {}
            kind = record.get("type") or record.get("record_type") or "hdr"
            sort = inner.get("type") if isinstance(inner, dict) else None
            name = f"{kind}/{sort or record.get('subtype')}"
            lost.update(
                where
                for where, words in leaves(record, name)
                if not LEFT_OUT.match(where) and not stands(words, text)
            )
    assert lost == {}
