"""Publishing: what a head is afterwards, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_support import SOURCE, SmallCodec, append_of, cursor_at, update_of

from imprintd.errors import IntegrityError, NotKnown, Refused, UsageError, VersionReplaced
from imprintd.model.snapshot import MANIFEST_ENTRIES_MAX, TEXT_BYTES_MAX, Head, Stamp
from imprintd.model.source import SourceId, SourceMeta
from imprintd.store import Store

TEXT = "".join(f"line {n} of a conversation\n" for n in range(40))


def test_a_new_source_has_exactly_the_head_that_was_published(store: Store) -> None:
    update = update_of(TEXT, cursor=cursor_at("/t/a.jsonl"))
    (head,) = store.publish([update], None)
    assert head == Head(
        source=SOURCE,
        meta=update.meta,
        version=update.version,
        profile="p1",
        learner=3,
        stamp=Stamp(1_000, 0, store.device, update.root),
        origin=store.device,
        change=1,
        revision=1,
        blocks=len(update.blocks),
        chunks=len(update.chunks),
        total_chars=len(TEXT),
        total_bytes=len(TEXT),
        events=len(update.chunks),
        root=update.root,
        manifest_root=update.manifest_root,
        coverage=update.coverage,
    )
    assert store.head(SOURCE) == head
    assert store.text(head) == TEXT
    assert store.change() == 1


def test_an_append_keeps_rows_and_replaces_the_last(store: Store) -> None:
    first = update_of(TEXT)
    store.publish([first], None)
    before = {row.ordinal: row.row for row in store.chunks_of(1)}
    second = append_of(first, TEXT, "and one more turn\n", updated_ms=2_000)
    (head,) = store.publish([second], None)
    assert store.text(head) == TEXT + "and one more turn\n"
    assert (head.revision, head.change, head.stamp.update_ms) == (2, 2, 2_000)
    after = {row.ordinal: row.row for row in store.chunks_of(1)}
    last = len(first.chunks) - 1
    assert {n: row for n, row in after.items() if n < last} == {
        n: row for n, row in before.items() if n < last
    }
    born = store.chunks_born_after(1, 100)
    assert [row.ordinal for row in born] == list(range(last, head.chunks))
    assert [row.content for row in born] == [
        (TEXT + "and one more turn\n")[row.start : row.end] for row in born
    ]
    assert store.chunks_died_after(1, 100) == [(before[last], 2)]
    assert store.died_floor() == 0
    assert store.forget_died(2) == 1
    assert store.forget_died(1) == 0
    assert (store.died_floor(), store.chunks_died_after(0, 100)) == (2, [])


def test_the_base_is_what_an_append_needs(store: Store, codec: SmallCodec) -> None:
    update = update_of(TEXT)
    store.publish([update], None)
    codec.opened = 0
    base = store.base_of(SOURCE)
    assert base is not None
    assert (base.version, base.meta, base.profile, base.learner, base.tail) == (
        update.version,
        update.meta,
        "p1",
        3,
        update.tail,
    )
    assert (base.coverage, base.state) == (update.coverage, b"state")
    assert base.open_block.decode() == TEXT[update.tail.closed_chars :]
    assert base.open_text == TEXT[update.tail.open_start :]
    assert codec.opened <= 3
    assert store.base_of(SourceId("default", "", "claude:none")) is None


def test_a_stale_update_is_refused_and_changes_nothing(store: Store) -> None:
    first = update_of(TEXT)
    (head,) = store.publish([first], None)
    winner = append_of(first, TEXT, "the winner")
    (head,) = store.publish([winner], None)
    for stale in (append_of(first, TEXT, "too late"), update_of(TEXT + "anew")):
        with pytest.raises(VersionReplaced):
            store.publish([stale], None)
    assert store.head(SOURCE) == head
    assert store.text(head) == TEXT + "the winner"
    assert store.change() == 2


def test_a_batch_is_published_together_or_not_at_all(store: Store) -> None:
    other = SourceId("default", "", "codex:9")
    stale = replace(update_of(TEXT, source=other), base_version="0" * 32)
    with pytest.raises(VersionReplaced):
        store.publish([update_of(TEXT), stale], None)
    assert list(store.heads()) == []
    heads = store.publish([update_of(TEXT), update_of(TEXT, source=other)], None)
    assert [head.change for head in heads] == [1, 2]


def test_the_same_text_again_is_no_new_version(store: Store) -> None:
    first = update_of(TEXT)
    (head,) = store.publish([first], None)
    again = update_of(
        TEXT, base_version=first.version, cursor=cursor_at("/t/b.jsonl"), state=b"further"
    )
    assert store.publish([again], None) == [head]
    assert store.change() == 1
    assert store.reader_state(SOURCE) == b"further"
    assert store.cursor("default", "/t/b.jsonl") == (SOURCE.key, again.cursor)


def test_a_new_title_is_a_change_but_no_new_version(store: Store) -> None:
    first = update_of(TEXT)
    (head,) = store.publish([first], None)
    named = update_of(TEXT, base_version=first.version, title="Better")
    (after,) = store.publish([named], None)
    assert after == replace(head, meta=named.meta, change=2)
    assert store.chunks_born_after(1, 10) == []


def test_a_stamp_never_goes_back(store: Store) -> None:
    first = update_of("a" * 40, updated_ms=9_000)
    store.publish([first], None)
    second = append_of(first, "a" * 40, "b", updated_ms=5_000)
    (head,) = store.publish([second], None)
    assert head.stamp == Stamp(9_000, 1, store.device, second.root)
    third = append_of(second, "a" * 40 + "b", "c", updated_ms=9_000)
    (head,) = store.publish([third], None)
    assert head.stamp == Stamp(9_000, 2, store.device, third.root)
    fourth = append_of(third, "a" * 40 + "bc", "d", updated_ms=9_001)
    (head,) = store.publish([fourth], None)
    assert head.stamp == Stamp(9_001, 0, store.device, fourth.root)


def test_a_given_stamp_and_origin_are_kept(store: Store) -> None:
    stamp = Stamp(77, 3, "dpeer", b"x" * 32)
    (head,) = store.publish([replace(update_of(TEXT), stamp=stamp, origin="dpeer")], None)
    assert (head.stamp, head.origin) == (stamp, "dpeer")


def test_learning_anew_with_a_newer_learner_starts_the_ledger_over(store: Store) -> None:
    first = update_of(TEXT, learner=2, record_keys=(b"k" * 8, b"l" * 8))
    store.publish([first], None)
    rows = [row.row for row in store.chunks_of(1)]
    anew = update_of(TEXT, base_version=first.version, learner=3, record_keys=(b"k" * 8,))
    (head,) = store.publish([anew], None)
    assert (head.learner, head.version) == (3, anew.version)
    assert store.ledger_counts(SOURCE, [b"k" * 8, b"l" * 8]) == {b"k" * 8: 1}
    # cut the same way, every chunk stays the row it was
    assert [row.row for row in store.chunks_of(1)] == rows


def test_a_stricter_rewriting_keeps_the_ledger(store: Store) -> None:
    first = update_of(TEXT, record_keys=(b"k" * 8,))
    store.publish([first], None)
    stricter = update_of(
        TEXT.replace("line 7", "[hidden]"),
        base_version=first.version,
        profile="p2",
        record_keys=(b"l" * 8,),
    )
    (head,) = store.publish([stricter], None)
    assert (head.profile, head.revision) == ("p2", 2)
    assert "line 7 " not in store.text(head)
    assert store.ledger_counts(SOURCE, [b"k" * 8, b"l" * 8]) == {b"k" * 8: 1, b"l" * 8: 1}
    # caches of words hear that text was taken away
    assert store.setting("erased_change") == "2"


def test_the_ledger_counts_every_taking(store: Store) -> None:
    first = update_of(TEXT, record_keys=(b"k" * 8, b"k" * 8, b"l" * 8))
    store.publish([first], None)
    store.publish([append_of(first, TEXT, "x", record_keys=(b"k" * 8,))], None)
    assert store.ledger_counts(SOURCE, [b"k" * 8, b"l" * 8, b"m" * 8]) == {
        b"k" * 8: 3,
        b"l" * 8: 1,
    }
    assert store.ledger_counts(SourceId("w", "", "x"), [b"k" * 8]) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"total_chars": len(TEXT) + 1},
        {"keep_blocks": 1},
        {"keep_chunks": 1},
        {"version": "short"},
        {"chunks": ()},
    ],
)
def test_an_update_that_contradicts_itself_is_refused(
    store: Store, wrong: dict[str, object]
) -> None:
    with pytest.raises(IntegrityError):
        store.publish([replace(update_of(TEXT), **wrong)], None)  # type: ignore[arg-type]
    assert store.head(SOURCE) is None


def test_a_gap_behind_the_kept_chunks_is_refused(store: Store) -> None:
    first = update_of(TEXT)
    store.publish([first], None)
    more = append_of(first, TEXT, "x" * 64)
    gap = replace(more, chunks=more.chunks[1:])
    with pytest.raises(IntegrityError):
        store.publish([gap], None)
    assert store.text_of(SOURCE) == TEXT


def test_limits_are_named(store: Store) -> None:
    with pytest.raises(Refused) as large:
        store.publish([replace(update_of(TEXT), total_bytes=TEXT_BYTES_MAX + 1)], None)
    assert large.value.reason == "text-too-large"
    with pytest.raises(Refused) as many:
        store.publish([replace(update_of(TEXT), keep_chunks=MANIFEST_ENTRIES_MAX)], None)
    assert many.value.reason == "too-many-chunks"


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": SourceId("default", "", "k" * 1025)},
        {"source": SourceId("default", "p" * 8193, "k")},
        {"meta": SourceMeta("claude", "t" * 4097)},
        {"meta": SourceMeta("c" * 1025)},
        {"state": bytes(8 * 1024 * 1024 + 1)},
    ],
)
def test_what_is_too_long_is_refused(store: Store, wrong: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        store.publish([replace(update_of(TEXT), **wrong)], None)  # type: ignore[arg-type]
    assert refused.value.reason == "too-long"


def test_blocks_are_shared_and_go_with_their_last_user(store: Store) -> None:
    other = SourceId("default", "", "codex:9")
    one, two = update_of(TEXT), update_of(TEXT, source=other)
    store.publish([one, two], None)
    assert store.statistics().blocks == len(one.blocks)
    store.publish([update_of("short", source=other, base_version=two.version)], None)
    assert store.statistics().blocks == len(one.blocks) + 1
    assert store.text_of(SOURCE) == TEXT
    store.delete_source(SOURCE)
    assert store.statistics().blocks == 1


def test_an_empty_text_is_a_snapshot_too(store: Store) -> None:
    (head,) = store.publish([update_of("")], None)
    assert (store.text(head), head.blocks, head.chunks) == ("", 0, 0)
    page = store.page(head)
    assert (page.text, page.next_start, page.total_chars) == ("", None, 0)


def test_odd_characters_survive(store: Store) -> None:
    text = "nul \0, lone \ud800, astral \U0001f40d, line\u2028end " * 9
    update = update_of(text, title="a\ud800title")
    (head,) = store.publish([update], None)
    assert store.text(head) == text
    assert head.meta.title.startswith("a")
    assert [row.content for row in store.chunks_of(1, content=True)] == [
        text[c.start : c.end] for c in update.chunks
    ]


def test_pages_add_up_to_the_text(store: Store, codec: SmallCodec) -> None:
    (head,) = store.publish([update_of(TEXT)], None)
    at: int | None = 0
    read = ""
    version = None
    while at is not None:
        codec.opened = 0
        page = store.page(head, at, 100, version)
        assert codec.opened <= 3
        read, at, version = read + page.text, page.next_start, page.version
    assert read == TEXT


def test_a_page_does_not_mix_versions(store: Store) -> None:
    first = update_of(TEXT)
    (head,) = store.publish([first], None)
    page = store.page(head, 0, 100)
    (new,) = store.publish([append_of(first, TEXT, "more")], None)
    with pytest.raises(VersionReplaced):
        store.page(head, page.next_start or 0, 100, page.version)
    with pytest.raises(VersionReplaced):
        store.text(head)
    assert store.page(head, 0, 100).version == new.version


@pytest.mark.parametrize(("start", "size"), [(0, 99), (0, 12_001), (-1, 100), (len(TEXT) + 1, 100)])
def test_a_page_out_of_range_is_refused(store: Store, start: int, size: int) -> None:
    (head,) = store.publish([update_of(TEXT)], None)
    with pytest.raises(UsageError):
        store.page(head, start, size)


def test_a_unique_prefix_names_a_source(store: Store) -> None:
    keys = ["claude:aa1", "claude:aa11", "claude:ab", "codex:zz", "codex:z\U0010ffff"]
    for key in keys:
        store.publish([update_of(TEXT, source=SourceId("default", "/p", key))], None)
    store.publish([update_of(TEXT, source=SourceId("default", "/q", "codex:zz"))], None)
    assert store.resolve("default", "claude:ab").source.key == "claude:ab"
    assert store.resolve("default", "claude:aa1").source.key == "claude:aa1"
    assert store.resolve("default", "codex:z\U0010ffff").source.key == "codex:z\U0010ffff"
    assert store.resolve("default", "codex:zz", "/q").source.project == "/q"
    store.publish([update_of(TEXT, source=SourceId("default", "/q/r", "codex:zz"))], None)
    store.publish([update_of(TEXT, source=SourceId("default", "", "codex:zz"))], None)
    assert store.resolve("default", "codex:zz", "/q/").source.project == "/q"
    assert store.resolve("default", "codex:zz", "r").source.project == "/q/r"
    assert store.resolve("default", "codex:zz", "").source.project == ""
    assert store.resolve("default", "codex:zz", "q").source.project == "/q"
    with pytest.raises(NotKnown):
        store.resolve("default", "codex:zz", "/")
    with pytest.raises(UsageError, match=r"claude:aa1 .*claude:aa11 .*claude:ab"):
        store.resolve("default", "claude:a")
    with pytest.raises(UsageError, match="several"):
        store.resolve("default", "codex:zz")
    for workspace, prefix in (("default", "gemini:"), ("other", "claude:ab"), ("default", "_%")):
        with pytest.raises(NotKnown):
            store.resolve(workspace, prefix)


def test_heads_can_be_filtered_and_followed(store: Store) -> None:
    a = SourceId("default", "/a", "claude:1")
    b = SourceId("work", "/b", "codex:2")
    store.publish([update_of(TEXT, source=a, updated_ms=5)], None)
    store.publish([update_of(TEXT, source=b, updated_ms=9)], None)
    assert [h.source for h in store.heads()] == [b, a]
    assert [h.source for h in store.heads(workspace="work")] == [b]
    assert [h.source for h in store.heads(project="/a")] == [a]
    assert [h.source for h in store.heads(changed_after=1)] == [b]
    assert [h.source for h in store.heads(changed_after=0, limit=1)] == [a]
    assert [h.source for h in store.heads(origin="nobody")] == []
    known = store.known("work", "codex:2")
    assert known is not None
    assert known.source == b
    assert store.known("default", "codex:2") is None


def test_chunks_are_found_by_memory_id(store: Store) -> None:
    update = update_of(TEXT)
    (head,) = store.publish([update], None)
    wanted = update.chunks[3]
    row = store.chunk_by_memory_id("default", wanted.memory_id)
    assert row.chunk == wanted
    assert row.content == TEXT[wanted.start : wanted.end] == store.content_of(row)
    assert (row.client, row.device, row.title) == ("claude", store.device, "A title")
    assert (row.roles, row.kinds) == (1, 1)
    assert row.first_ms == row.last_ms == 1_777_629_603_250
    assert [r.chunk for r in store.chunk_rows(head, 2, 3)] == list(update.chunks[2:5])
    for workspace, memory_id in (("default", "mnothing"), ("other", wanted.memory_id)):
        with pytest.raises(NotKnown):
            store.chunk_by_memory_id(workspace, memory_id)


def test_the_feed_continues_inside_one_change(store: Store) -> None:
    update = update_of(TEXT)
    store.publish([update], None)
    seen: list[int] = []
    after = 0
    while page := store.chunks_born_after(0, 7, after_row=after):
        seen += [row.ordinal for row in page]
        after = page[-1].row
    assert seen == list(range(len(update.chunks)))
