"""
When is a changed file ready to be read: quiet for a moment, or long enough busy.

Pure: whoever drives it passes the time. The cap matters: collecting until
idle starves a file that never is.
"""

from __future__ import annotations

import heapq


class Settle:
    """
    Files that were seen changing, each released once it is due.

    A file is due `settle_ms` after its last change, and at the latest
    `settle_ms_max` after the first one. All times are seconds of one
    monotonic clock. Every operation costs O(log n).
    """

    def __init__(self, settle_ms: int, settle_ms_max: int) -> None:
        self._quiet_s = settle_ms / 1000
        self._cap_s = max(settle_ms_max, settle_ms) / 1000
        self._seen: dict[str, tuple[float, float]] = {}
        # one entry a file, lazily moved: a touch must not cost a push
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._seen)

    def touch(self, path: str, now: float) -> None:
        """Note that a file changed just now."""
        entry = self._seen.get(path)
        if entry is not None:
            self._seen[path] = (entry[0], now)
            return
        self._seen[path] = (now, now)
        heapq.heappush(self._heap, (self._due((now, now)), path))

    def ready(self, now: float) -> list[str]:
        """Release every file that is due, in the order in which they became so."""
        released: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            noted, path = heapq.heappop(self._heap)
            entry = self._seen.get(path)
            if entry is None:
                continue
            due = self._due(entry)
            if due > noted:  # it was touched again: later, and in its order
                heapq.heappush(self._heap, (due, path))
                continue
            del self._seen[path]
            released.append(path)
        return released

    def next_due(self) -> float | None:
        """When to ask again, at the earliest; None while nothing waits."""
        return self._heap[0][0] if self._seen and self._heap else None

    def _due(self, entry: tuple[float, float]) -> float:
        first, last = entry
        return min(last + self._quiet_s, first + self._cap_s)
