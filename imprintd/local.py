"""
Work on a data directory while no daemon runs: the command line's other half.

Answers are read-only and need no lock. Learning and repairing take the lock
that the daemon would hold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from imprintd.archive import active_rules, open_store
from imprintd.clock import SystemClock
from imprintd.config import Config
from imprintd.errors import ImprintdError, NotKnown, VersionReplaced
from imprintd.finding import files_at, files_in, roots
from imprintd.learn.messages import EmbedBatch, Owed, Setup
from imprintd.learn.ports import Job, Outcome
from imprintd.learn.report import LearnReport
from imprintd.model.snapshot import Head
from imprintd.ops.lock import DataLock
from imprintd.recall.memory import Memory
from imprintd.recall.operations import answer
from imprintd.searching import open_search
from imprintd.store import Store
from imprintd.store.connection import FILE_NAME
from imprintd.watch.scan import FileState
from imprintd.worker import Hands

Tell = Callable[[Mapping[str, Any]], None]
Document = dict[str, Any]

PUBLISH_BATCH: Final = 32
PUBLISH_CHARS: Final = 8_000_000
"""Outcomes wait for one durable commit together, up to these."""
SOME_CONTENTS: Final = 64
"""Chunks that `learn --embed some` gives vectors to before it returns."""


_SEARCHING: Final = frozenset({"search"})
_EMPTY: Final[dict[str, Document]] = {
    "sources": {"sources": []},
    "search": {"hits": [], "mode": "lexical", "notes": ["nothing is learned yet"], "took_ms": 0.0},
}
"""Answers where there is no database yet; everything else is not known."""


def answer_from_disk(
    data_dir: Path, config: Config, operation: str, given: Mapping[str, Any]
) -> Document:
    """Answer one question from the data directory, as its last writer left it."""
    if operation in _EMPTY and not (data_dir / FILE_NAME).exists():
        return _EMPTY[operation]
    with _opened(data_dir, read_only=True) as store:
        if operation not in _SEARCHING and not given.get("verify"):
            return answer(Memory(store, None), operation, given)
        # the caches have one writer at a time; an answer may have to bring them up to date
        with DataLock.acquire(data_dir):
            search = open_search(store, data_dir, config)
            try:
                return answer(Memory(store, search), operation, given)
            finally:
                search.close()


def learn_here(
    data_dir: Path, config: Config, workspace: str, wish: Mapping[str, Any], tell: Tell
) -> Document:
    """
    Learn files and folders to the end.

    Args:
        wish: `paths`, `salvage`, `force` and `embed` (`some`, `all`, `none`).
        tell: Told how far it is.
    """
    started = time.monotonic()
    files = files_at(wish["paths"])
    report = LearnReport(files=len(files), bytes=sum(f.size for f in files))
    with DataLock.acquire(data_dir), _opened(data_dir) as store:
        hands = Hands(Setup(str(data_dir), workspace, config))
        try:
            _learn_files(store, hands, config, data_dir, files, wish, report, tell)
            _embed(store, hands, config, data_dir, wish["embed"], report)
        finally:
            hands.close()
        search = open_search(store, data_dir, config)
        search.refresh()
        search.close()
        document = report.document(time.monotonic() - started)
        document["pending"] = store.owed_count()
    return document


def _learn_files(
    store: Store,
    hands: Hands,
    config: Config,
    data_dir: Path,
    files: list[FileState],
    wish: Mapping[str, Any],
    report: LearnReport,
    tell: Tell,
) -> None:
    rules = active_rules(config, data_dir)
    waiting: list[tuple[Outcome, int]] = []
    chars = 0
    for file in files:
        job = Job(file.path, final=True, salvage=wish["salvage"], force=wish["force"])
        outcome = hands.learn(job)
        if outcome.update is not None and _collides(outcome, waiting):
            _publish(store, hands, waiting, rules, report)
            outcome = hands.learn(job)
        waiting.append((outcome, file.size))
        chars += outcome.update.total_chars if outcome.update else 0
        if len(waiting) >= PUBLISH_BATCH or chars >= PUBLISH_CHARS:
            _publish(store, hands, waiting, rules, report)
            chars = 0
            tell(report.progress())
    _publish(store, hands, waiting, rules, report)
    tell(report.progress())


def _collides(outcome: Outcome, waiting: list[tuple[Outcome, int]]) -> bool:
    """Whether an update of the same source waits: this one was read too early."""
    return any(other.key == outcome.key for other, _ in waiting if other.update is not None)


def _publish(
    store: Store,
    hands: Hands,
    waiting: list[tuple[Outcome, int]],
    rules: str | None,
    report: LearnReport,
) -> None:
    updates = [outcome.update for outcome, _ in waiting if outcome.update is not None]
    try:
        heads = iter(store.publish(updates, rules) if updates else [])
        settled = [(o, next(heads) if o.update is not None else None, s) for o, s in waiting]
    except ImprintdError:
        # one of them is in the way: each on its own
        settled = [(*_publish_one(store, hands, o, rules), s) for o, s in waiting]
    for outcome, head, size in settled:
        if outcome.status == "failed":
            store.record_error(
                outcome.job.path,
                code=outcome.reason,
                reason=outcome.reason,
                line=outcome.line,
                message=outcome.message,
                remedy=outcome.remedy,
            )
        elif outcome.status in {"learned", "unchanged"}:
            store.clear_error(outcome.job.path)
        report.take(outcome, head, size)
    waiting.clear()


def _publish_one(
    store: Store, hands: Hands, outcome: Outcome, rules: str | None
) -> tuple[Outcome, Head | None]:
    if outcome.update is None:
        return outcome, None
    try:
        return outcome, store.publish([outcome.update], rules)[0]
    except VersionReplaced:
        again = hands.learn(outcome.job)
        return again, store.publish([again.update], rules)[0] if again.update else None
    except ImprintdError as error:
        failed = Outcome(
            outcome.job,
            "failed",
            key=outcome.key,
            reason=error.code,
            message=error.message,
            remedy=error.remedy,
        )
        return failed, None


def next_batch(store: Store, rules: str | None, limit: int) -> EmbedBatch | None:
    """What lacks vectors and comes first: first windows before all others."""
    if rules is None:
        return None
    owed = store.take_owed(rules, limit)
    if not owed:
        return None
    stage = owed[0].stage
    chosen = [o for o in owed if o.stage == stage][: limit if stage == 0 else 1]
    return EmbedBatch(
        tuple(Owed(o.content_digest, o.content, o.have) for o in chosen), first_only=stage == 0
    )


def _embed(
    store: Store, hands: Hands, config: Config, data_dir: Path, wish: str, report: LearnReport
) -> None:
    rules = active_rules(config, data_dir)
    made_for = 0
    while wish == "all" or (wish == "some" and made_for < SOME_CONTENTS):
        batch = next_batch(store, rules, 8)
        if batch is None:
            return
        made = hands.embed(batch)
        if made.error:
            report.notes["embedding-failed"] = 1
            return
        store.add_points(made.points)
        report.embedded += made.windows
        report.reused += made.reused
        made_for += len(batch.contents)


def verify_here(data_dir: Path, config: Config, wish: Mapping[str, Any], tell: Tell) -> Document:
    """Verify and, where asked, repair, under the lock."""
    with DataLock.acquire(data_dir), _opened(data_dir) as store:
        search = open_search(store, data_dir, config)
        try:
            search.refresh()
            return verify(store, Memory(store, search), search, wish, tell)
        finally:
            search.close()


def verify(
    store: Store, memory: Memory, search: Any, wish: Mapping[str, Any], tell: Tell
) -> Document:
    """Verify; with `repair`, mend chunk rows and caches and verify again."""
    scope = (wish["workspace"], wish["source"], wish["project"])
    verdict = memory.verify(*scope, tell=tell)
    if not wish["repair"] or verdict["ok"] == verdict["sources"]:
        return verdict
    repaired = 0
    for problem in verdict["problems"]:
        head = store.resolve(problem["workspace"], problem["source"], problem["project"])
        try:
            store.repair_chunks(head)
            repaired += 1
        except ImprintdError:
            continue
    search.rebuild()
    after = memory.verify(*scope, tell=tell)
    after["repaired"] = repaired
    return after


def survey(config: Config) -> list[Document]:
    """What would be read: folders, files, sizes; no content is looked at."""
    rows = []
    for root in roots(config, os.environ):
        files = files_in([root])
        rows.append(
            {
                "client": root.client,
                "path": root.path,
                "files": len(files),
                "bytes": sum(file.size for file in files),
            }
        )
    return rows


@contextmanager
def _opened(data_dir: Path, *, read_only: bool = False) -> Iterator[Store]:
    try:
        store = open_store(data_dir, SystemClock(), read_only=read_only)
    except NotKnown:
        raise NotKnown(
            f"nothing has been learned in {data_dir} yet",
            remedy="imprintd learn PATH, or imprintd run",
        ) from None
    try:
        yield store
    finally:
        store.close()
