"""
The store as the learn room of the daemon sees it: asynchronous, one writer behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from imprintd.archive import active_rules
from imprintd.config import Config
from imprintd.learn.messages import EmbedBatch
from imprintd.learn.ports import Outcome
from imprintd.local import next_batch
from imprintd.model.snapshot import Head, Point, SnapshotUpdate
from imprintd.store import Store


class StoreShelf:
    """The store as the learn room sees it."""

    def __init__(self, store: Store, config: Config, data_dir: Path) -> None:
        self._store = store
        self._config = config
        self._data_dir = data_dir

    async def publish(self, updates: Sequence[SnapshotUpdate]) -> list[Head]:
        rules = active_rules(self._config, self._data_dir)
        return await asyncio.wrap_future(self._store.submit_publish(updates, rules))

    async def note_error(self, outcome: Outcome) -> None:
        self._store.record_error(
            outcome.job.path,
            code=outcome.reason,
            reason=outcome.reason,
            line=outcome.line,
            message=outcome.message,
            remedy=outcome.remedy,
        )

    async def clear_error(self, path: str) -> None:
        self._store.clear_error(path)

    async def owed(self, limit: int) -> EmbedBatch | None:
        return next_batch(self._store, active_rules(self._config, self._data_dir), limit)

    async def keep_points(self, points: Sequence[Point]) -> None:
        await asyncio.wrap_future(self._store.submit_points(points))
