"""Search over the real store: what is published is found, what goes is gone."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from imprintd.archive import base_of, open_store
from imprintd.clock import ManualClock
from imprintd.learn.pipeline import extend
from imprintd.model.event import Event
from imprintd.model.snapshot import Limits, Point
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.search.engine import Search
from imprintd.search.ports import Held, Query
from imprintd.store import Store

RULES = "axes"
LIMITS = Limits()


@dataclass(frozen=True)
class Same:
    text: str


class AsItIs:
    profile = "none"

    def redact_many(self, texts: Sequence[str], /) -> list[Same]:
        return [Same(text) for text in texts]


def axis(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A text's vector: one of sixteen axes, by its longest word."""
    vector = np.zeros(16, np.float32)
    vector[sum(max(text.split(), key=len).encode()) % 16] = 1
    return vector


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with contextlib.closing(open_store(tmp_path / "data", ManualClock())) as opened:
        yield opened


@pytest.fixture
def search(store: Store, tmp_path: Path) -> Iterator[Search]:
    with contextlib.closing(Search(store, tmp_path / "data", axis, RULES)) as opened:
        yield opened


def say(store: Store, key: str, *bodies: str, project: str = "/shop") -> SourceId:
    """Publish a conversation, or go on with it, in the user's and the assistant's turns."""
    source = SourceId("default", project, key)
    base = base_of(store, source)
    events = [
        Event("assistant" if n % 2 else "user", "message", body, 1 + n // 2,
              timestamp="2026-11-05T10:00:00.000Z")
        for n, body in enumerate(bodies)
    ]  # fmt: skip
    update = extend(
        source, base, events, meta=SourceMeta("claude", updated_ms=1), coverage=Coverage(),
        state=b"", cursor=None, record_keys=(), redactor=AsItIs(), limits=LIMITS,
    )  # fmt: skip
    store.publish([update], RULES)
    return source


def embed(store: Store) -> None:
    while owed := store.take_owed(RULES, 100):
        store.add_points(
            [
                Point(one.content_digest, 0, 1, RULES, axis(one.content).astype("<f2").tobytes())
                for one in owed
            ]
        )


def manifest(store: Store, source: SourceId) -> dict[str, bytes]:
    head = store.head(source)
    assert head is not None
    return {row.memory_id: row.content_digest for row in store.chunk_rows(head)}


def found(search: Search, text: str) -> list[str]:
    return [hit.source for hit in search.query(Query(text, mode="lexical")).hits]


def test_published_text_is_found_with_its_exact_place(store: Store, search: Search) -> None:
    source = say(store, "claude:one", "x " * 4000, "the heron stands in the reeds")

    (hit,) = search.query(Query("heron reeds")).hits

    assert (hit.source, hit.role, hit.kind) == ("claude:one", "assistant", "message")
    assert store.text_of(source, hit.start, hit.end) == hit.excerpt
    assert hit.memory_id in manifest(store, source)


def test_an_append_is_found_and_the_old_end_is_not_twice(store: Store, search: Search) -> None:
    say(store, "claude:one", "first about herons")
    assert found(search, "herons") == ["claude:one"]

    source = say(store, "claude:one", "then about storks")

    assert found(search, "storks") == ["claude:one"]
    assert len(search.query(Query("herons")).hits) == 1
    assert set(search.caches.words.rows()) == {row.row for row in store.chunks_born_after(0, 99)}
    assert search.membership(source, manifest(store, source)) == Held()


def test_vectors_are_followed(store: Store, search: Search) -> None:
    source = say(store, "claude:one", "albatross")
    assert search.query(Query("albatross", mode="vector")).hits == ()
    embed(store)

    hits = search.query(Query("albatross", mode="vector")).hits

    assert [hit.source for hit in hits] == ["claude:one"]
    assert search.membership(source, manifest(store, source)) == Held()


def test_a_purged_source_is_gone_from_every_cache(store: Store, search: Search) -> None:
    source = say(store, "claude:one", "the xyzzyplugh is out")
    say(store, "claude:two", "harmless")
    embed(store)
    search.refresh()

    store.delete_source(source, kind="purge")
    search.refresh()

    terms = search.caches.words._searcher.terms_with_prefix("body", "", limit=100)
    assert "xyzzyplugh" not in [term for term, _ in terms]
    assert found(search, "xyzzyplugh") == []
    assert (len(search.caches.table), len(search.caches.vectors)) == (1, 1)


def test_the_same_content_in_two_sources_is_one_hit(store: Store, search: Search) -> None:
    say(store, "claude:one", "rotate the keys")
    say(store, "claude:two", "rotate the keys", project="/other")

    (hit,) = search.query(Query("rotate keys")).hits

    assert sorted(place["source"] for place in hit.places) == ["claude:one", "claude:two"]
    assert len(search.query(Query("rotate keys", project="other")).hits[0].places) == 1


def test_caches_continue_after_a_restart(store: Store, tmp_path: Path) -> None:
    for n in range(30):
        say(store, f"claude:{n}", f"topic number{n}")
    embed(store)
    first = Search(store, tmp_path / "data", axis, RULES)
    first.refresh()
    first.close()
    say(store, "claude:late", "topic latest")

    second = Search(store, tmp_path / "data", axis, RULES)

    assert found(second, "latest") == ["claude:late"]
    assert second.change == store.change()
    for head in store.heads():
        assert second.membership(head.source, manifest(store, head.source)) == Held()


def test_questions_from_several_threads_while_text_is_published(
    store: Store, search: Search
) -> None:
    say(store, "claude:0", "pelican number0")
    stop = threading.Event()

    def ask_on() -> list[int]:
        counts = []
        while not stop.is_set():
            counts.append(len(search.query(Query("pelican", limit=100)).hits))
        return counts

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask_on) for _ in range(3)]
        for n in range(1, 25):
            say(store, f"claude:{n}", f"pelican number{n}")
            embed(store)
        stop.set()
        seen = [counts.result() for counts in asking]

    # what was found once is found from then on
    assert all(counts == sorted(counts) for counts in seen)
    assert len(search.query(Query("pelican", limit=100)).hits) == 25


def test_a_long_output_is_found_deep_inside(store: Store, search: Search) -> None:
    log = "".join(f"step {n} done\n" for n in range(40_000))
    middle = len(log) // 2
    say(store, "claude:one", "run it", log[:middle] + "the ostrich exploded\n" + log[middle:])

    hits = search.query(Query("ostrich exploded", mode="lexical")).hits

    assert 1 <= len(hits) <= 2  # two where the cut repeats the line
    assert all("ostrich exploded" in hit.excerpt for hit in hits)
