"""Which head stays: the order is total, continuation beats clocks, losers are named."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.model.snapshot import Stamp
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.sync.heads import CLOCK_AHEAD_MS_MAX, Verdict, judge, ratchet, relation
from imprintd.wire.messages import BlockRef, Offer
from imprintd.wire.offer import version_hash

NOW_MS = 1_000_000


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def blocks(text: str) -> list[bytes]:
    return [text[at : at + 4].encode() for at in range(0, len(text), 4)]


def head(text: str, ms: int, device: str = "A", counter: int = 0, origin: str = "") -> Offer:
    root = sha(text.encode())
    return Offer(
        key=bytes(16),
        source=SourceId("default", "/p", "claude:1"),
        meta=SourceMeta("claude", updated_ms=ms),
        stamp=Stamp(ms, counter, device, root),
        origin=origin or device,
        version=root.hex()[:32],
        profile="p",
        learner=3,
        blocks=tuple(BlockRef(sha(b), len(b), len(b)) for b in blocks(text)),
        chunks=1,
        total_chars=len(text),
        total_bytes=len(text),
        events=1,
        root=root,
        manifest_root=sha(root),
        coverage=Coverage(),
    )


def verdict(own: str, own_head: Offer | None, text: str, offered: Offer, *, seen: bool) -> Verdict:
    return judge(
        own_head,
        offered,
        device="ME",
        wall_ms=NOW_MS,
        own_block=lambda at: blocks(own)[at],
        offered_block=(lambda at: blocks(text)[at]) if seen else None,
    )


STAMPS = st.builds(
    Stamp,
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from("AB"),
    st.sampled_from([b"\0" * 32, b"\1" * 32]),
)


@given(STAMPS, st.integers(0, 5), st.sampled_from("ABC"))
def test_ratchet_is_above_and_no_later_than_needed(above: Stamp, ms: int, device: str) -> None:
    made = ratchet(above, ms, device, bytes(32))

    assert made > above
    assert made.update_ms == max(ms, above.update_ms)


@given(st.lists(STAMPS, min_size=3, max_size=3, unique=True))
def test_any_order_of_arrival_gives_one_head(stamps: list[Stamp]) -> None:
    heads = {s: replace(head(f"{n}xyz-text", 0, f"D{n}"), stamp=s) for n, s in enumerate(stamps)}
    results = set()
    for order in permutations(stamps):
        own = heads[order[0]]
        for stamp in order[1:]:
            offered = heads[stamp]
            found = judge(own, offered, device="ME", wall_ms=NOW_MS, own_block=lambda _: None)
            if found.action == "take":
                own = offered
        results.add(own.stamp)

    assert results == {max(stamps)}


@pytest.mark.parametrize(
    ("own", "offered", "seen", "expected"),
    [
        ("aaaabbbb", "aaaabbbb", False, "same"),
        ("aaaabbbb", "aaaabbbbcc", False, "continues"),
        ("aaaabb", "aaaabbcc", False, "may-continue"),
        ("aaaabb", "aaaabbcc", True, "continues"),
        ("aaaabb", "aaaabccc", True, "concurrent"),
        ("", "aaaa", False, "continues"),
        ("aaaabbcc", "aaaabb", False, "continued"),
        ("aaaabccc", "aaaabb", False, "concurrent"),
        ("aaaabb", "", False, "continued"),
        ("aaaabb", "xxxxbb", False, "concurrent"),
        ("aaaabb", "xxxxbbcccc", False, "concurrent"),
    ],
)
def test_relation(own: str, offered: str, seen: bool, expected: str) -> None:
    found = relation(
        head(own, 5, "A"),
        head(offered, 6, "B"),
        lambda at: blocks(own)[at],
        (lambda at: blocks(offered)[at]) if seen else None,
    )

    assert found == expected


def test_ancestors_and_one_device_are_not_concurrent() -> None:
    old, new = head("aaaabb", 5, "A"), head("xxxxyy", 6, "B")
    known = replace(new, after=(version_hash(old.stamp),))
    same_device = head("xxxxyy", 6, "A")
    restamped = replace(same_device, stamp=replace(same_device.stamp, device="C"))

    assert relation(old, known, lambda _: None) == "supersedes"
    assert relation(known, old, lambda _: None) == "superseded"
    assert relation(old, same_device, lambda _: None) == "supersedes"
    assert relation(same_device, old, lambda _: None) == "superseded"
    assert relation(old, restamped, lambda _: None) == "concurrent"


def test_first_head_is_taken() -> None:
    new = head("aaaa", NOW_MS)
    assert verdict("", None, "aaaa", new, seen=False) == Verdict("take", new.stamp)


def test_concurrent_newer_is_taken_and_the_loser_kept() -> None:
    own, new = head("aaaa", 5, "A"), head("bbbb", 6, "B")

    assert verdict("aaaa", own, "bbbb", new, seen=False) == Verdict(
        "take", new.stamp, keep_alternate=True
    )
    assert verdict("bbbb", new, "aaaa", own, seen=False) == Verdict("keep")


def test_longer_text_with_an_older_stamp_is_taken_above_our_own() -> None:
    own, new = head("aaaabb", 50, "A"), head("aaaabbcc", 6, "B")
    stamp = Stamp(50, 1, "ME", new.root)

    assert verdict("aaaabb", own, "aaaabbcc", new, seen=False) == Verdict(
        "take", stamp, certain=False
    )
    assert verdict("aaaabb", own, "aaaabbcc", new, seen=True) == Verdict("take", stamp)


def test_what_only_looked_like_a_continuation_is_not_taken() -> None:
    own, new = head("aaaabb", 50, "A"), head("aaaabccc", 6, "B")

    assert verdict("aaaabb", own, "aaaabccc", new, seen=False).action == "take"
    assert verdict("aaaabb", own, "aaaabccc", new, seen=True) == Verdict("keep")


def test_our_longer_text_rises_above_a_newer_shorter_one() -> None:
    own, short = head("aaaabbcc", 5, "A"), head("aaaabb", 60, "B")

    assert verdict("aaaabbcc", own, "aaaabb", short, seen=False) == Verdict(
        "raise", Stamp(60, 1, "ME", own.root)
    )


def test_the_same_text_adopts_the_higher_stamp() -> None:
    own, new = head("aaaa", 5, "A"), head("aaaa", 6, "B")

    assert verdict("aaaa", own, "aaaa", new, seen=False) == Verdict("adopt", new.stamp)
    assert verdict("aaaa", new, "aaaa", own, seen=False) == Verdict("keep")
    other_cut = replace(new, manifest_root=bytes(32))
    assert verdict("aaaa", own, "aaaa", other_cut, seen=False) == Verdict("take", new.stamp)


def test_a_stamp_from_the_future_is_held_unless_it_continues() -> None:
    edge = head("bbbb", NOW_MS + CLOCK_AHEAD_MS_MAX, "B")
    ahead = head("bbbb", NOW_MS + CLOCK_AHEAD_MS_MAX + 1, "B")
    own = head("bb", 5, "A")
    other = head("cc", 5, "A")

    assert verdict("", None, "bbbb", edge, seen=False).action == "take"
    assert verdict("", None, "bbbb", ahead, seen=False) == Verdict("hold")
    assert verdict("cc", other, "bbbb", ahead, seen=True) == Verdict("hold")
    assert verdict("bb", own, "bbbb", ahead, seen=True) == Verdict("take", ahead.stamp)
