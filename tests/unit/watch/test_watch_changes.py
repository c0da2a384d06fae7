"""
What is told, in which order, how often; checked against a plain model.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from imprintd.watch.changes import Changes, WallNs, signature
from imprintd.watch.scan import FileState

NOW = 1000.0
WALL = WallNs(1_700_000_000 * 10**9)


def _file(path: str, size: int = 1, mtime_ns: int = 5, inode: int = 1) -> FileState:
    return FileState(path, 1, inode, size, mtime_ns, 0)


def _changes(known: dict[str, tuple[int, int, int, int]] | None = None) -> Changes:
    return Changes(known or {}, settle_ms=1000, settle_ms_max=10_000, quiet_s=30)


def test_what_is_known_is_not_told() -> None:
    same, grown, replaced = _file("same"), _file("grown"), _file("replaced")
    changes = _changes({f.path: signature(f) for f in (same, grown, replaced)})
    grown, replaced = grown._replace(size=2), replaced._replace(inode=2)
    for state in (same, grown, replaced):
        changes.found(state, NOW, WALL)
    assert sorted(changes.take(10)) == [grown, replaced]


def test_the_newest_come_first_and_newer_ones_overtake() -> None:
    changes = _changes()
    for number in (3, 1, 2):
        changes.looked(_file(f"f{number}", mtime_ns=number))
    assert [f.path for f in changes.take(1)] == ["f3"]
    changes.looked(_file("f9", mtime_ns=9))
    changes.looked(_file("f1", mtime_ns=8))
    assert [(f.path, f.mtime_ns) for f in changes.take(9)] == [("f9", 9), ("f1", 8), ("f2", 2)]
    assert changes.take(9) == []


def test_a_file_that_was_just_written_settles_even_when_a_scan_found_it() -> None:
    changes = _changes()
    fresh, old, ahead = (
        _file("fresh", mtime_ns=WALL - 10**8),
        _file("old", mtime_ns=WALL - 10**10),
        _file("ahead", mtime_ns=WALL + 10**14),
    )
    for state in (fresh, old, ahead):
        changes.found(state, NOW, WALL)
    assert {f.path for f in changes.take(9)} == {"old", "ahead"}
    assert changes.settling == 1
    assert changes.due(NOW + 1) == [("fresh", 0)]
    assert changes.settling == 1  # until it has been looked at
    changes.all_looked()
    assert changes.settling == 0


def test_a_failed_batch_is_told_again_and_a_later_change_wins() -> None:
    changes = _changes()
    changes.looked(_file("a"))
    changes.looked(_file("b"))
    batch = changes.take(9)
    changes.looked(_file("b", size=7))
    changes.undone(batch)
    assert sorted(changes.take(9)) == [_file("a"), _file("b", size=7)]


def test_a_change_during_the_telling_is_told_once_more() -> None:
    changes = _changes()
    changes.looked(_file("a"))
    batch = changes.take(9)
    changes.looked(_file("a"))  # what is in flight already
    assert changes.pending == 1
    changes.looked(_file("a", size=2))
    assert changes.pending == 2
    changes.done(batch, NOW)
    assert changes.take(9) == [_file("a", size=2)]


def test_quiet_comes_once_after_the_last_telling() -> None:
    changes = _changes()
    changes.looked(_file("a"))
    changes.done(changes.take(9), NOW)
    assert changes.next_due() == NOW + 30
    changes.looked(_file("a", size=2))
    changes.done(changes.take(9), NOW + 20)
    assert changes.still(NOW + 49) == []
    assert changes.still(NOW + 50) == [("a", 0)]
    assert changes.still(NOW + 500) == []
    assert changes.next_due() is None


def test_a_pending_change_is_not_quiet() -> None:
    changes = _changes()
    changes.looked(_file("a"))
    changes.done(changes.take(9), NOW)
    changes.looked(_file("a", size=2))
    assert changes.still(NOW + 100) == []


def test_pruning_forgets_only_what_is_gone_below_the_folder() -> None:
    files = [_file("/r/a"), _file("/r/b"), _file("/rx/c")]
    changes = _changes({f.path: signature(f) for f in files})
    changes.prune("/r", {"/r/a"})
    assert [changes.is_known(f) for f in files] == [True, False, True]


class ChangesModel(RuleBasedStateMachine):
    """The last state seen of each file is what the caller ends up with."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = _changes()
        self.disk: dict[str, FileState] = {}
        self.caller: dict[str, FileState] = {}
        self.flying: list[FileState] = []
        self.now = NOW

    @rule(path=st.sampled_from("abcd"), size=st.integers(0, 3), mtime=st.integers(0, 3))
    def write(self, path: str, size: int, mtime: int) -> None:
        self.disk[path] = _file(path, size, mtime)
        self.changes.looked(self.disk[path])

    @precondition(lambda self: not self.flying)
    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        self.flying = self.changes.take(count)
        times = [state.mtime_ns for state in self.flying]
        assert times == sorted(times, reverse=True)

    @precondition(lambda self: self.flying)
    @rule(succeeds=st.booleans())
    def answer(self, succeeds: bool) -> None:
        if succeeds:
            self.changes.done(self.flying, self.now)
            self.caller.update({state.path: state for state in self.flying})
        else:
            self.changes.undone(self.flying)
        self.flying = []

    @rule()
    def settle_down(self) -> None:
        if self.flying:
            self.answer(succeeds=True)
        for _ in range(10):
            batch = self.changes.take(2)
            self.changes.done(batch, self.now)
            self.caller.update({state.path: state for state in batch})
        assert self.caller == self.disk
        assert self.changes.pending == 0

    @invariant()
    def pending_is_bounded_by_the_files(self) -> None:
        assert self.changes.pending <= len(self.disk) + len(self.flying)


TestChangesModel = ChangesModel.TestCase


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40, unique=True))
def test_batches_drain_in_order_of_time(times: list[int]) -> None:
    changes = _changes()
    for time in times:
        changes.looked(_file(str(time), mtime_ns=time))
    told: list[int] = []
    while batch := changes.take(7):
        told += [state.mtime_ns for state in batch]
        changes.done(batch, NOW)
    assert told == sorted(times, reverse=True)
