"""Deleting, purging, excluding; verifying and repairing."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_support import SOURCE, SmallCodec, append_of, cursor_at, point_of, update_of

from imprintd.clock import ManualClock
from imprintd.errors import IntegrityError, NotKnown, Refused, UsageError, VersionReplaced
from imprintd.model.source import SourceId
from imprintd.store import Store
from imprintd.store.connection import FILE_NAME

TEXT = "".join(f"line {n} of a conversation\n" for n in range(40))
OTHER = SourceId("default", "/home/ada/engine/part", "codex:2")


def sql(store: Store, statement: str) -> None:
    store._writer.run(lambda connection: connection.execute(statement).fetchall())


def test_a_deleted_source_leaves_a_fence_and_nothing_else(store: Store) -> None:
    update = update_of(TEXT, cursor=cursor_at("/t/a"), record_keys=(b"k" * 8,))
    (head,) = store.publish([update, update_of(TEXT, source=OTHER)], "r1")[:1]
    rows = [row.row for row in store.chunk_rows(head)]
    store.add_points([point_of(TEXT[:16])])
    assert store.delete_source(SOURCE)
    assert not store.delete_source(SOURCE)
    assert store.head(SOURCE) is None
    assert store.cursors_of("default", SOURCE.key) == []
    assert store.ledger_counts(SOURCE, [b"k" * 8]) == {}
    assert store.text_of(OTHER) == TEXT
    assert [dead.row for dead in store.chunks_died_after(2, 999)] == rows
    (fence,) = store.fences_after(0)
    assert (fence.kind, fence.source, fence.change) == ("delete", SOURCE, 3)
    assert (fence.stamp_ms, fence.stamp_counter) == (head.stamp.update_ms, 1)
    # it may come back
    store.publish([update], None)
    assert store.text_of(SOURCE) == TEXT


def test_what_was_purged_stays_out(store: Store) -> None:
    assert not store.delete_source(SOURCE, kind="purge")
    with pytest.raises(Refused) as refused:
        store.publish([update_of(TEXT)], None)
    assert refused.value.reason == "purged"
    assert store.lift_fence(SOURCE)
    store.publish([update_of(TEXT)], None)
    with pytest.raises(UsageError):
        store.delete_source(SOURCE, kind="hide")


@pytest.mark.parametrize(
    ("kind", "value", "out"),
    [
        ("project", "/home/ada", True),
        ("project", "/home/ada/engine/", True),
        ("project", "/home/ad", False),
        ("project", "engine", False),
        ("source", SOURCE.key, True),
        ("source", "claude:000", False),
        ("workspace", "default", True),
    ],
)
def test_exclusions_hold_below_their_folder(store: Store, kind: str, value: str, out: bool) -> None:
    store.exclude(kind, value)
    if out:
        with pytest.raises(Refused):
            store.publish([update_of(TEXT)], None)
        store.exclude(kind, value, excluded=False)
    assert store.publish([update_of(TEXT)], None)[0].total_chars == len(TEXT)
    with pytest.raises(UsageError):
        store.exclude("mood", "bad")


def test_deleted_text_is_not_in_the_files(tmp_path: Path) -> None:
    codec = SmallCodec(stored=True)
    secret = "the-quick-brown-secret"
    other = update_of(TEXT * 20, source=OTHER, codec=codec)
    with Store.open(tmp_path, ManualClock(), codec=codec) as store:
        text = TEXT * 20 + f" {secret} " * 50
        store.publish([other], None)
        store.publish([update_of(text, codec=codec, title=secret, block_chars=9000)], None)
        files = [tmp_path / (FILE_NAME + suffix) for suffix in ("", "-wal")]
        assert any(secret.encode() in file.read_bytes() for file in files)
        store.delete_source(SOURCE, kind="purge")
        assert not store.erasure_pending
        assert not any(secret.encode() in file.read_bytes() for file in files)
        assert store.text_of(OTHER) == TEXT * 20


def test_a_reader_in_the_way_of_an_erasure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imprintd.store.connection.BUSY_MS", 50)
    with Store.open(tmp_path, ManualClock(), codec=SmallCodec()) as store:
        store.publish([update_of(TEXT)], None)
        with store._reading() as connection:
            assert connection.execute("SELECT count(*) FROM heads").fetchone() == (1,)
            store.delete_source(SOURCE)
            assert store.erasure_pending
        assert store.checkpoint(truncate=True)
        assert not store.erasure_pending


def test_a_sound_snapshot_verifies(store: Store) -> None:
    (head,) = store.publish([update_of(TEXT)], "r1")
    verdict = store.verify(head)
    assert verdict.sound
    assert (verdict.pending, verdict.chars, verdict.version) == (
        store.statistics().contents,
        len(TEXT),
        head.version,
    )
    store.delete_source(SOURCE)
    with pytest.raises(NotKnown):
        store.verify(head)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        ("DELETE FROM chunks WHERE ordinal = 4", "missing"),
        ("DELETE FROM chunks WHERE ordinal > 30", "missing"),
        ("UPDATE chunks SET memory_id = 'mwrong' WHERE ordinal = 4", "changed"),
        ("UPDATE chunks SET start = start + 1 WHERE ordinal = 4", "changed"),
        ("UPDATE contents SET digest = zeroblob(32) WHERE id = 5", "changed"),
        ("UPDATE heads SET chunks = chunks - 2", "extra"),
        ("UPDATE blocks SET packed = x'00' WHERE id = 2", "faults"),
        ("UPDATE blocks SET chars = chars + 1 WHERE id = 2", "faults"),
        ("DELETE FROM snapshot_blocks WHERE position = 3", "faults"),
        ("UPDATE snapshot_blocks SET block = 1 WHERE position = 2", "faults"),
        ("UPDATE heads SET root = zeroblob(32)", "faults"),
        ("UPDATE heads SET manifest_root = zeroblob(32)", "faults"),
        ("UPDATE heads SET bytes = bytes + 1", "faults"),
    ],
)
def test_every_damage_is_told(tmp_path: Path, damage: str, field: str) -> None:
    with Store.open(tmp_path, ManualClock(), codec=SmallCodec()) as store:
        (head,) = store.publish([update_of(TEXT)], None)
        sql(store, damage)
        verdict = store.verify(head)
    assert not verdict.sound
    assert getattr(verdict, field)


def test_wrong_ids_are_repaired_from_the_text(store: Store) -> None:
    update = update_of(TEXT)
    (head,) = store.publish([update], "r1")
    sql(store, "UPDATE chunks SET memory_id = 'mwrong' WHERE ordinal IN (4, 7)")
    assert store.repair_chunks(head) == 2
    after = store.head(SOURCE)
    assert after is not None
    assert store.verify(after).sound
    assert [row.chunk for row in store.chunk_rows(head)] == list(update.chunks)
    assert store.repair_chunks(after) == 0


def test_lost_rows_are_repaired_from_a_manifest_cut_anew(store: Store) -> None:
    update = update_of(TEXT)
    (head,) = store.publish([update], "r1")
    sql(
        store,
        "UPDATE contents SET refs = 0 WHERE id = (SELECT content FROM chunks WHERE ordinal = 5)",
    )
    sql(store, "DELETE FROM chunks WHERE ordinal = 5")
    sql(store, "DELETE FROM contents WHERE refs = 0")
    with pytest.raises(IntegrityError):
        store.repair_chunks(head)
    with pytest.raises(IntegrityError):
        store.repair_chunks(head, update.chunks[1:])
    assert store.repair_chunks(head, update.chunks) == 1
    assert store.verify(head).sound
    assert store.owed_count() == store.statistics().contents
    store.publish([append_of(update, TEXT, "x")], None)
    with pytest.raises(VersionReplaced):
        store.repair_chunks(head)


def test_a_damaged_block_fails_the_read_and_not_the_store(tmp_path: Path) -> None:
    with Store.open(tmp_path, ManualClock(), codec=SmallCodec()) as store:
        (head, _) = store.publish([update_of(TEXT), update_of("fine" * 9, source=OTHER)], None)
        sql(store, "UPDATE blocks SET packed = x'00' WHERE id = 1")
        with pytest.raises(IntegrityError):
            store.page(head)
        assert store.page(head, 640, 100).text == TEXT[640:740]
        assert store.text_of(OTHER) == "fine" * 9
