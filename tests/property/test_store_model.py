"""
The store against a model of it in a few lines of Python.

Whatever is published, continued, replaced, moved or deleted, in any order: the
text, the rows, the counts of references and what a cache learns by following
change numbers are what the model says.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "store"))

from store_support import SmallCodec, point_of, update_of

from imprintd.clock import ManualClock
from imprintd.errors import VersionReplaced
from imprintd.model.snapshot import SnapshotUpdate
from imprintd.model.source import SourceId
from imprintd.store import Store

SOURCES = [
    SourceId("default", "", "c:1"),
    SourceId("default", "/p", "c:2"),
    SourceId("w", "", "c:1"),
]
# few letters and short cuts, so that blocks and contents are often the same
TEXTS = st.text("ab\n", min_size=0, max_size=40)
SOURCE = st.sampled_from(SOURCES)
cut = partial(update_of, block_chars=8, chunk_chars=4)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.codec = SmallCodec()
        self.store = Store.open(Path(self.folder.name), self.clock, codec=self.codec)
        self.texts: dict[SourceId, tuple[str, SnapshotUpdate]] = {}
        self.cache: dict[int, tuple[SourceId, str]] = {}
        self.cache_change = 0
        self.embedded: set[str] = set()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def _publish(self, source: SourceId, text: str, *, keep: bool) -> None:
        base = self.texts.get(source)
        update = cut(
            text,
            source=source,
            base_text=base[0] if base else None,
            base_version=base[1].version if base else None,
            keep=keep,
        )
        (head,) = self.store.publish([update], "r1")
        assert head.version == update.version
        self.texts[source] = (text, update)

    @rule(source=SOURCE, text=TEXTS)
    def put(self, source: SourceId, text: str) -> None:
        self._publish(source, text, keep=True)

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), more=TEXTS)
    def append(self, data: st.DataObject, more: str) -> None:
        source = data.draw(st.sampled_from(sorted(self.texts)))
        self._publish(source, self.texts[source][0] + more, keep=True)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def learn_again(self, data: st.DataObject) -> None:
        source = data.draw(st.sampled_from(sorted(self.texts)))
        self._publish(source, self.texts[source][0], keep=False)

    @rule(source=SOURCE)
    def delete(self, source: SourceId) -> None:
        assert self.store.delete_source(source) == (source in self.texts)
        self.texts.pop(source, None)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def stale(self, data: st.DataObject) -> None:
        source = data.draw(st.sampled_from(sorted(self.texts)))
        update = cut("late", source=source, base_version="f" * 32)
        with pytest.raises(VersionReplaced):
            self.store.publish([update], "r1")

    @rule(limit=st.integers(1, 5))
    def embed(self, limit: int) -> None:
        owed = self.store.take_owed("r1", limit)
        self.store.add_points([point_of(one.content) for one in owed])

    @rule(page=st.integers(1, 7))
    def follow(self, page: int) -> None:
        upto = self.store.change()
        row = 0
        while dead := self.store.chunks_died_after(self.cache_change, page, after_row=row):
            for one in dead:
                self.cache.pop(one.row, None)
            row = dead[-1].row
        row = 0
        while born := self.store.chunks_born_after(self.cache_change, page, after_row=row):
            for chunk in born:
                assert chunk.content is not None
                self.cache[chunk.row] = (chunk.source, chunk.content)
            row = born[-1].row
        self.cache_change = upto
        assert sorted(self.cache.values()) == sorted(
            (source, text[chunk.start : chunk.end])
            for source, (text, _) in self.texts.items()
            for chunk in cut(text, source=source).chunks
        )

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(Path(self.folder.name), self.clock, codec=self.codec)

    @invariant()
    def texts_are_right(self) -> None:
        heads = {head.source: head for head in self.store.heads()}
        assert set(heads) == set(self.texts)
        for source, (text, _) in self.texts.items():
            assert self.store.text(heads[source]) == text
            verdict = self.store.verify(heads[source])
            assert verdict.sound, verdict

    @invariant()
    def counts_are_right(self) -> None:
        assert self.store.audit() == []
        contents = {
            text[chunk.start : chunk.end]
            for source, (text, _) in self.texts.items()
            for chunk in cut(text, source=source).chunks
        }
        blocks = {
            block.digest
            for source, (text, _) in self.texts.items()
            for block in cut(text, source=source).blocks
        }
        statistics = self.store.statistics()
        assert (statistics.contents, statistics.blocks) == (len(contents), len(blocks))
        # each content has its vector or is owed one
        assert statistics.points + statistics.owed == len(contents)


StoreMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreModel = StoreMachine.TestCase
