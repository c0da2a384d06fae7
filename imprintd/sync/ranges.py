"""
Sets of item numbers as rising ranges, so that 100,000 items stay cheap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from imprintd.wire.messages import Ranges


class Items:
    """A mutable set of non-negative integers, kept as (first, end) ranges."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Ranges = ()) -> None:
        self._ranges: list[tuple[int, int]] = []
        for first, count in ranges:
            self.add(first, count)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __len__(self) -> int:
        return sum(end - first for first, end in self._ranges)

    def __iter__(self) -> Iterator[int]:
        for first, end in list(self._ranges):
            yield from range(first, end)

    def __contains__(self, item: int) -> bool:
        at = bisect_right(self._ranges, (item, 1 << 62)) - 1
        return at >= 0 and item < self._ranges[at][1]

    def add(self, first: int, count: int = 1) -> None:
        """Put `count` numbers from `first` on into the set."""
        if count < 1:
            return
        end = first + count
        low = bisect_right(self._ranges, (first, -1))
        if low and self._ranges[low - 1][1] >= first:
            low -= 1
            first = self._ranges[low][0]
        high = low
        while high < len(self._ranges) and self._ranges[high][0] <= end:
            end = max(end, self._ranges[high][1])
            high += 1
        self._ranges[low:high] = [(first, end)]

    def discard(self, first: int, count: int = 1) -> None:
        """Take `count` numbers from `first` on out of the set, if they are in it."""
        end = first + count
        low = bisect_right(self._ranges, (first, -1))
        if low and self._ranges[low - 1][1] > first:
            low -= 1
        high = low
        left: list[tuple[int, int]] = []
        while high < len(self._ranges) and self._ranges[high][0] < end:
            start, stop = self._ranges[high]
            if start < first:
                left.append((start, first))
            if stop > end:
                left.append((end, stop))
            high += 1
        self._ranges[low:high] = left

    def discard_all(self, ranges: Ranges) -> None:
        """Take ranges out."""
        for first, count in ranges:
            self.discard(first, count)

    def meets(self, ranges: Ranges) -> bool:
        """Whether any number of these ranges is in the set."""
        for first, count in ranges:
            at = bisect_right(self._ranges, (first, 1 << 62)) - 1
            if at >= 0 and self._ranges[at][1] > first:
                return True
            if at + 1 < len(self._ranges) and self._ranges[at + 1][0] < first + count:
                return True
        return False

    def first(self) -> int:
        """The lowest number; the set must not be empty."""
        return self._ranges[0][0]

    def ranges(self, limit: int | None = None) -> Ranges:
        """The first `limit` ranges as (first, count)."""
        return tuple((first, end - first) for first, end in self._ranges[:limit])
