"""
The store as the sync engine reads it.

What is described and given here is what the stamp names: a text that was
redacted further on this device is described as its origin described it, and
is not given to anyone in its place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from imprintd.errors import IntegrityError, NotKnown, VersionReplaced
from imprintd.model.snapshot import Chunk, Head, Point, Stamp
from imprintd.model.source import SourceId
from imprintd.staging import Staging
from imprintd.store import Store
from imprintd.store.exchange import Exchange
from imprintd.sync.ports import HeadLine
from imprintd.sync.ranges import Items
from imprintd.text import blocks
from imprintd.wire import frames
from imprintd.wire.codec import digest
from imprintd.wire.messages import BlockRef, Offer, Ranges


def index_bytes(index_id: str) -> bytes:
    """The store's index id as the protocol's 8 bytes."""
    return digest(index_id.encode())[:8]


class StoreJournal:
    """
    Committed state as the engine reads it; follows `imprintd.sync.ports.Journal`.

    Args:
        store: The store.
        staging: What transfers left.
        rules: Fingerprint of the active model's rules, None without a model.
        device: Id under which peers know this device; None: the store's own.
    """

    def __init__(
        self, store: Store, staging: Staging, *, rules: str | None, device: str | None = None
    ) -> None:
        self._store = store
        self._exchange = Exchange(store)
        self._staging = staging
        self._rules = rules
        self._device = device or store.device

    @property
    def device(self) -> str:
        return self._device

    @property
    def index_id(self) -> bytes:
        return index_bytes(self._store.index_id)

    def change(self) -> int:
        return self._store.change()

    def heads_after(self, change: int, limit: int) -> Sequence[HeadLine]:
        return [
            HeadLine(head.change, head.source, head.stamp)
            for head in self._store.heads(changed_after=change, limit=limit)
        ]

    def describe(self, source: SourceId, key: bytes) -> Offer | None:
        head = self._store.head(source)
        if head is None:
            return None
        offered = self._offered(head)
        if offered is not None:
            return replace(offered, key=key, stamp=head.stamp, rules=())
        try:
            stored = self._store.blocks_of(head)
        except (VersionReplaced, NotKnown):
            return None
        return Offer(
            key=key,
            source=source,
            meta=head.meta,
            stamp=head.stamp,
            origin=head.origin,
            version=head.version,
            profile=head.profile,
            learner=head.learner,
            blocks=tuple(BlockRef(block.digest, block.size, block.chars) for block in stored),
            chunks=head.chunks,
            total_chars=head.total_chars,
            total_bytes=head.total_bytes,
            events=head.events,
            root=head.root,
            manifest_root=head.manifest_root,
            coverage=head.coverage,
            rules=() if self._rules is None else (self._rules,),
        )

    def block(self, source: SourceId, stamp: Stamp, position: int) -> bytes | None:
        head = self._at(source, stamp)
        if head is None:
            return None
        try:
            found = self._store.blocks_of(head, position, 1, packed=True)
        except (VersionReplaced, NotKnown):
            return None
        if not found:
            return None
        offered = self._offered(head)
        if offered is not None and (
            position >= len(offered.blocks) or offered.blocks[position].digest != found[0].digest
        ):
            return None
        return blocks.unpack(found[0].packed, found[0].digest)

    def chunks(
        self, source: SourceId, stamp: Stamp, first: int, count: int
    ) -> Sequence[Chunk] | None:
        head = self._at(source, stamp)
        if head is None or self._offered(head) is not None:
            return None
        return [row.chunk for row in self._store.chunk_rows(head, first, count)]

    def points(
        self, source: SourceId, stamp: Stamp, ordinal: int, rules: str
    ) -> Sequence[Point] | None:
        found = self.chunks(source, stamp, ordinal, 1)
        if not found:
            return None
        points = self._exchange.points(source, found[0].content_digest, rules)
        # windows still to come would make a half content look like a whole one
        return points if points and len(points) == points[0].windows else ()

    def held(self, workspace: str, digests: Collection[bytes]) -> Collection[bytes]:
        return self._exchange.held(workspace, digests)

    def staged(self, transfer: bytes) -> Ranges:
        return Items(tuple((item, 1) for item in self._staging.items(transfer))).ranges()

    def arrived(self, transfer: bytes, offer: Offer, position: int) -> bytes | None:
        reference = offer.blocks[position]
        staged = self._staging.get(transfer, position)
        if staged is not None:
            try:
                return blocks.unpack(staged, reference.digest)
            except IntegrityError:
                # torn by a power cut: as if it had not come
                return None
        return self._exchange.block(offer.source.workspace, reference.digest)

    def refusal(self, offer: Offer) -> str | None:
        return self._exchange.refusal(offer.source, offer.stamp, offer.root)

    def relays(self, source: SourceId) -> bool:
        head = self._store.head(source)
        return head is not None and self._offered(head) is None

    def acknowledged(self, peer: str) -> tuple[bytes, int] | None:
        stored = self._store.setting(acknowledged_key(peer))
        if stored is None:
            return None
        index, change = json.loads(stored)
        return bytes.fromhex(index), int(change)

    def _at(self, source: SourceId, stamp: Stamp) -> Head | None:
        head = self._store.head(source)
        return head if head is not None and head.stamp == stamp else None

    def _offered(self, head: Head) -> Offer | None:
        """How the origin described a head that was redacted further here."""
        if head.stamp.digest == head.root:
            return None
        packed = self._exchange.offered(head.source)
        if packed is None:
            return None
        found = frames.decode(packed)
        return found if isinstance(found, Offer) else None


def acknowledged_key(peer: str) -> str:
    """Name of the setting that keeps how far a peer's log is settled."""
    return f"sync.acknowledged.{peer}"
