"""
What this device holds, as one link names it: hashed keys, ranges, digests.

Keys are hashed with a secret of the link, so a peer cannot ask for names it
does not know. Over ranges of keys runs an incremental sum, so that two
inventories that agree say so in one line, and two that differ find the
difference by halving ranges: fan-out 16, lists of up to 32.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_left
from itertools import accumulate

from imprintd.model.snapshot import Stamp
from imprintd.model.source import SourceId
from imprintd.wire import limits
from imprintd.wire.messages import Change, Span
from imprintd.wire.offer import version_hash

_MODULUS = 2**256


def source_key(link_key: bytes, source: SourceId) -> bytes:
    """16 bytes that name a source on one link."""
    mac = hmac.new(link_key, b"imprintd source 1", "sha256")
    for part in (source.workspace, source.project, source.key):
        raw = part.encode("utf-8", "surrogatepass")
        mac.update(len(raw).to_bytes(4, "big") + raw)
    return mac.digest()[:16]


class Inventory:
    """
    The heads of this device under one link's keys.

    Args:
        link_key: Secret of the link.
    """

    __slots__ = ("_heads", "_keys", "_link_key", "_sums", "change")

    def __init__(self, link_key: bytes) -> None:
        self._link_key = link_key
        self._heads: dict[bytes, tuple[SourceId, bytes]] = {}
        self._keys: list[bytes] | None = []
        self._sums: list[int] = [0]
        self.change = 0
        """Change number of the own log that this inventory stands at."""

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, source: SourceId, stamp: Stamp) -> bytes:
        """Note the head of a source; returns its key on this link."""
        key = source_key(self._link_key, source)
        self._heads[key] = (source, version_hash(stamp))
        self._keys = None
        return key

    def source(self, key: bytes) -> SourceId | None:
        """The source behind a key, if it is held."""
        found = self._heads.get(key)
        return None if found is None else found[0]

    def version(self, key: bytes) -> bytes | None:
        """Version hash of the head behind a key, if it is held."""
        found = self._heads.get(key)
        return None if found is None else found[1]

    def span(self, low: bytes, high: bytes) -> Span:
        """Digest of a range; empty `high` means to the end."""
        first, end = self._bounds(low, high)
        return self._span(low, high, first, end)

    def split(self, low: bytes, high: bytes) -> tuple[Span, ...]:
        """The range as up to 16 adjoining ranges of about equal length."""
        keys = self._sorted()
        first, end = self._bounds(low, high)
        parts = min(limits.RANGE_FAN_OUT, max(1, end - first))
        cuts = [first + (end - first) * part // parts for part in range(1, parts)]
        lows = [low, *(keys[cut] for cut in cuts)]
        highs = [*lows[1:], high]
        starts = [first, *cuts]
        ends = [*cuts, end]
        return tuple(self._span(*bounds) for bounds in zip(lows, highs, starts, ends, strict=True))

    def entries(self, low: bytes, high: bytes) -> tuple[Change, ...]:
        """All heads of a range, without change numbers."""
        keys = self._sorted()
        first, end = self._bounds(low, high)
        return tuple(Change(0, key, self._heads[key][1]) for key in keys[first:end])

    def _span(self, low: bytes, high: bytes, first: int, end: int) -> Span:
        total = (self._sums[end] - self._sums[first]) % _MODULUS
        count = end - first
        seen = hashlib.sha256(count.to_bytes(8, "big") + total.to_bytes(32, "big"))
        return Span(low, high, count, seen.digest()[:16])

    def _bounds(self, low: bytes, high: bytes) -> tuple[int, int]:
        keys = self._sorted()
        first = bisect_left(keys, low)
        return first, max(first, bisect_left(keys, high)) if high else len(keys)

    def _sorted(self) -> list[bytes]:
        if self._keys is None:
            self._keys = sorted(self._heads)
            hashes = (
                int.from_bytes(hashlib.sha256(key + self._heads[key][1]).digest(), "big")
                for key in self._keys
            )
            self._sums = list(accumulate(hashes, lambda a, b: (a + b) % _MODULUS, initial=0))
        return self._keys
