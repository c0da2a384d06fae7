"""Deleting one memory: its text is gone, also from its neighbours and from the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from store_support import SOURCE, SmallCodec, append_of, cursor_at, point_of, update_of

from imprintd.clock import ManualClock
from imprintd.errors import NotKnown, Refused
from imprintd.model.snapshot import Chunk, SnapshotUpdate
from imprintd.model.source import SourceId
from imprintd.store import Store
from imprintd.store.connection import FILE_NAME
from imprintd.store.rows import digest_of

TEXT = "0123456789abcdefTHE-SECRET-IS-42ghijklmnopqrstuv"
SPANS = [(0, 20), (16, 32), (28, 40), (40, 48)]


def overlapping(codec: SmallCodec) -> SnapshotUpdate:
    """Chunks of 0-20, 16-32, 28-40 and 40-48; the second one is the secret."""
    plain = update_of(TEXT, codec=codec, cursor=cursor_at("/t/a"), record_keys=(b"k" * 8,))
    event = plain.chunks[0].events[0]
    chunks = tuple(
        Chunk(
            codec.memory_id(SOURCE, start, end, digest_of(TEXT[start:end])),
            start,
            end,
            digest_of(TEXT[start:end]),
            False,
            False,
            (replace(event, start=start, end=end),),
        )
        for start, end in SPANS
    )
    manifest_root = codec.manifest_root(chunks, len(TEXT), len(TEXT))
    return replace(plain, chunks=chunks, manifest_root=manifest_root)


def test_the_text_is_gone_and_the_rest_stays(tmp_path: Path) -> None:
    codec = SmallCodec(stored=True)
    update = overlapping(codec)
    secret = update.chunks[1]
    with Store.open(tmp_path, ManualClock(), codec=codec) as store:
        (head,) = store.publish([update], "r1")
        store.add_points([point_of(TEXT[start:end]) for start, end in SPANS])
        rows = [row.row for row in store.chunk_rows(head)]
        assert store.forget_memory("default", secret.memory_id) == SOURCE
        left = store.chunks_of(1, content=True)
        assert [(row.ordinal, row.start, row.end, row.content) for row in left] == [
            (0, 0, 16, TEXT[:16]),
            (1, 32, 40, TEXT[32:40]),
            (2, 40, 48, TEXT[40:48]),
        ]
        assert [(row.events[0].start, row.events[0].end) for row in left] == [
            (row.start, row.end) for row in left
        ]
        assert [row.memory_id for row in left] == [
            codec.memory_id(SOURCE, row.start, row.end, row.content_digest) for row in left
        ]
        assert {dead.row for dead in store.chunks_died_after(1, 9)} <= set(rows)
        assert store.chunk_by_memory_id("default", left[1].memory_id).version == ""
        assert store.content_of(left[2]) == TEXT[40:48]
        # the untouched one keeps its vector, the cut ones are owed new ones
        assert [point.content_digest for point in store.points_after(0, 9)] == [
            digest_of(TEXT[40:48])
        ]
        assert sorted(o.content for o in store.take_owed("r1", 9)) == [TEXT[:16], TEXT[32:40]]
        assert store.head(SOURCE) is None
        assert store.sources_without_text() == [SOURCE]
        with pytest.raises(NotKnown, match="no full text"):
            store.resolve("default", SOURCE.key)
        with pytest.raises(NotKnown):
            store.page(head)
        with pytest.raises(NotKnown):
            store.forget_memory("default", secret.memory_id)
        assert store.audit() == []
        assert not store.erasure_pending
        for suffix in ("", "-wal"):
            content = (tmp_path / (FILE_NAME + suffix)).read_bytes()
            assert b"SECRET" not in content
            assert b"THE-" not in content


def test_only_a_changed_text_or_the_user_brings_it_back(store: Store, codec: SmallCodec) -> None:
    update = overlapping(codec)
    store.publish([update], None)
    store.forget_memory("default", update.chunks[1].memory_id)
    with pytest.raises(Refused) as refused:
        store.publish([update], None)
    assert refused.value.reason == "forgotten"
    assert [fence.kind for fence in store.fences_after(0)] == ["forget"]
    assert store.ledger_counts(SOURCE, [b"k" * 8]) == {}
    # the cursor stays, so that a rescan of the same bytes reads nothing
    assert store.cursor("default", "/t/a") == (SOURCE.key, update.cursor)
    changed = append_of(update, TEXT, " changed", keep=False)
    store.publish([replace(changed, base_version=None)], None)
    assert store.text_of(SOURCE) == TEXT + " changed"
    assert store.sources_without_text() == []
    store.delete_source(SOURCE)
    assert store.lift_fence(SOURCE)
    store.publish([update], None)
    assert store.text_of(SOURCE) == TEXT


def test_a_separate_chunk_can_be_forgotten_too(store: Store, codec: SmallCodec) -> None:
    update = overlapping(codec)
    store.publish([update], None)
    store.forget_memory("default", update.chunks[1].memory_id)
    store.forget_memory("default", update.chunks[3].memory_id)
    assert [row.content for row in store.chunks_of(1, content=True)] == [TEXT[:16], TEXT[32:40]]


def test_forgetting_in_the_middle_of_a_chunk_leaves_both_sides(store: Store) -> None:
    codec = SmallCodec()
    update = overlapping(codec)
    wide = replace(
        update.chunks[0],
        end=40,
        content_digest=digest_of(TEXT[:40]),
        memory_id=codec.memory_id(SOURCE, 0, 40, digest_of(TEXT[:40])),
    )
    chunks = (wide, *update.chunks[1:])
    manifest_root = codec.manifest_root(chunks, len(TEXT), len(TEXT))
    store.publish([replace(update, chunks=chunks, manifest_root=manifest_root)], None)
    store.forget_memory("default", update.chunks[1].memory_id)
    assert [row.content for row in store.chunks_of(1, content=True)] == [
        TEXT[:16],
        TEXT[32:40],
        TEXT[32:40],
        TEXT[40:],
    ]


def test_a_workspace_goes_as_a_whole(store: Store) -> None:
    for number in range(3):
        store.publish([update_of(TEXT, source=SourceId("w", "", f"c:{number}"))], None)
    store.publish([update_of(TEXT)], None)
    assert store.delete_workspace("w", kind="purge") == 3
    assert [head.source for head in store.heads()] == [SOURCE]
    assert len(store.fences_after(0)) == 3
    assert store.delete_workspace("w") == 0
