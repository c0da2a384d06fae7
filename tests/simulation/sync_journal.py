"""
A store in memory that keeps what a real one keeps, for the simulation.

It is a whole implementation of the port and of every effect, with blocks of
64 bytes and chunks of some 50 characters, so that small texts have many.
What is in it outlives a crash; what is not, does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from imprintd.model.event import EventSpan
from imprintd.model.snapshot import Chunk, Point, Stamp
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.sync import effects
from imprintd.sync.events import Checked, Committed, Refused, Staged, SyncEvent
from imprintd.sync.heads import ratchet
from imprintd.sync.ports import HeadLine
from imprintd.sync.ranges import Items
from imprintd.wire.messages import BlockRef, Offer, Ranges
from imprintd.wire.offer import transfer_id, version_hash
from imprintd.wire.pages import decode_page

BLOCK = 64


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def blocks_of(text: str) -> list[bytes]:
    raw = text.encode()
    return [raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK)]


def root_of(blocks: Sequence[bytes]) -> bytes:
    return sha(b"".join(sha(block) for block in blocks) + str(sum(map(len, blocks))).encode())


def chunks_of(text: str, width: int) -> tuple[Chunk, ...]:
    found = []
    for start in range(0, len(text), width):
        end = min(len(text), start + width)
        digest = sha(text[start:end].encode())
        span = EventSpan(start, end, "user", "message", start // width, None)
        found.append(Chunk(f"m{digest.hex()[:25]}", start, end, digest, False, False, (span,)))
    return tuple(found)


def manifest_of(chunks: Sequence[Chunk]) -> bytes:
    return sha(b"".join(chunk.content_digest + chunk.start.to_bytes(4, "big") for chunk in chunks))


@dataclass
class Head:
    offer: Offer
    text: str
    chunks: tuple[Chunk, ...]
    change: int


@dataclass
class Journal:
    """One device's durable state. `width` is its chunker's only rule."""

    device: str
    width: int = 50
    rules: str = "r1"
    index_id: bytes = b""
    heads: dict[SourceId, Head] = field(default_factory=dict)
    last: int = 0
    points_by_content: dict[bytes, Point] = field(default_factory=dict)
    staging: dict[bytes, dict[int, bytes]] = field(default_factory=dict)
    staged_points: dict[bytes, list[Point]] = field(default_factory=dict)
    acks: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    alternates: list[tuple[SourceId, str]] = field(default_factory=list)
    excluded: set[SourceId] = field(default_factory=set)
    moves: list[tuple[SourceId, str | None, str]] = field(default_factory=list)
    full_disk: int = 0

    def __post_init__(self) -> None:
        self.index_id = self.index_id or sha(self.device.encode())[:8]

    # the port

    def change(self) -> int:
        return self.last

    def heads_after(self, change: int, limit: int) -> Sequence[HeadLine]:
        lines = sorted(
            (
                HeadLine(h.change, s, h.offer.stamp)
                for s, h in self.heads.items()
                if h.change > change
            ),
            key=lambda line: line.change,
        )
        return lines[:limit]

    def describe(self, source: SourceId, key: bytes) -> Offer | None:
        head = self.heads.get(source)
        return None if head is None else replace(head.offer, key=key)

    def _at(self, source: SourceId, stamp: Stamp) -> Head | None:
        head = self.heads.get(source)
        return head if head is not None and head.offer.stamp == stamp else None

    def block(self, source: SourceId, stamp: Stamp, position: int) -> bytes | None:
        head = self._at(source, stamp)
        return None if head is None else blocks_of(head.text)[position]

    def chunks(
        self, source: SourceId, stamp: Stamp, first: int, count: int
    ) -> Sequence[Chunk] | None:
        head = self._at(source, stamp)
        return None if head is None else head.chunks[first : first + count]

    def points(
        self, source: SourceId, stamp: Stamp, ordinal: int, rules: str
    ) -> Sequence[Point] | None:
        head = self._at(source, stamp)
        if head is None:
            return None
        point = self.points_by_content.get(head.chunks[ordinal].content_digest)
        return () if point is None else (point,)

    def held(self, workspace: str, digests: Collection[bytes]) -> Collection[bytes]:
        return set(digests) & set(self._blocks())

    def staged(self, transfer: bytes) -> Ranges:
        return Items(tuple((item, 1) for item in self.staging.get(transfer, ()))).ranges()

    def arrived(self, transfer: bytes, offer: Offer, position: int) -> bytes | None:
        found = self.staging.get(transfer, {}).get(position)
        return found if found is not None else self._blocks().get(offer.blocks[position].digest)

    def refusal(self, offer: Offer) -> str | None:
        return "excluded" if offer.source in self.excluded else None

    def relays(self, source: SourceId) -> bool:
        return True

    def acknowledged(self, peer: str) -> tuple[bytes, int] | None:
        return self.acks.get(peer)

    def _blocks(self) -> dict[bytes, bytes]:
        return {sha(b): b for h in self.heads.values() for b in blocks_of(h.text)}

    # learning

    def learn(self, source: SourceId, text: str, updated_ms: int) -> Head:
        """Publish a text of this device's own."""
        old = self.heads.get(source)
        root = root_of(blocks_of(text))
        stamp = Stamp(updated_ms, 0, self.device, root)
        after: tuple[bytes, ...] = ()
        if old is not None:
            if updated_ms <= old.offer.stamp.update_ms:
                stamp = ratchet(old.offer.stamp, updated_ms, self.device, root)
            after = (version_hash(old.offer.stamp), *old.offer.after)[:16]
        chunks = chunks_of(text, self.width)
        for chunk in chunks:
            self._point(chunk)
        blocks = blocks_of(text)
        offer = Offer(
            key=b"",
            source=source,
            meta=SourceMeta("claude", "title", None, updated_ms),
            stamp=stamp,
            origin=self.device,
            version=root.hex()[:32],
            profile="p1",
            learner=3,
            blocks=tuple(BlockRef(sha(b), len(b), len(b)) for b in blocks),
            chunks=len(chunks),
            total_chars=len(text),
            total_bytes=len(text),
            events=1,
            root=root,
            manifest_root=manifest_of(chunks),
            coverage=Coverage({"image": 1}),
            rules=(self.rules,),
            after=after,
        )
        return self._put(source, offer, text, chunks)

    def _put(self, source: SourceId, offer: Offer, text: str, chunks: tuple[Chunk, ...]) -> Head:
        old = self.heads.get(source)
        assert old is None or old.offer.stamp < offer.stamp, "a head went down in the order"
        self.moves.append((source, None if old is None else old.text, text))
        self.last += 1
        head = self.heads[source] = Head(offer, text, chunks, self.last)
        return head

    def _point(self, chunk: Chunk) -> None:
        digest = chunk.content_digest
        self.points_by_content[digest] = Point(digest, 0, 1, self.rules, digest[:16])

    # effects

    def run(self, effect: effects.Effect) -> SyncEvent | None:
        """Carry an effect out, whole or not at all, and say what came of it."""
        if isinstance(effect, effects.Stage):
            if self.full_disk:
                self.full_disk -= 1
                return Refused(effect.peer, effect.transfer, "disk-full", retryable=True)
            self.staging.setdefault(effect.transfer, {})[effect.item] = effect.plain
            return Staged(effect.peer, effect.transfer, ((effect.item, 1),))
        if isinstance(effect, effects.StagePoints):
            parts = self.staging.setdefault(effect.transfer, {})
            for item in Items(effect.items):
                parts[item] = b""
            self.staged_points.setdefault(effect.transfer, []).extend(effect.points)
            return Staged(effect.peer, effect.transfer, effect.items)
        if isinstance(effect, effects.Check):
            return self._check(effect)
        if isinstance(effect, effects.Publish):
            return self._publish(effect)
        if isinstance(effect, effects.Restamp):
            head = self.heads[effect.source]
            if head.offer.stamp != effect.expected:
                return Refused(effect.peer, effect.transfer, "head-moved")
            after = (version_hash(head.offer.stamp), *head.offer.after)[:16]
            offer = replace(head.offer, stamp=effect.stamp, after=after)
            self._put(effect.source, offer, head.text, head.chunks)
            return Committed(effect.peer, effect.transfer, self.last)
        if isinstance(effect, effects.Discard):
            self.staging.pop(effect.transfer, None)
            self.staged_points.pop(effect.transfer, None)
        elif isinstance(effect, effects.Acknowledge):
            held = self.acks.get(effect.peer)
            assert held is None or held[0] != effect.index or held[1] < effect.change
            self.acks[effect.peer] = (effect.index, effect.change)
        return None

    def _assembled(self, transfer: bytes, offer: Offer) -> tuple[str, list[int]]:
        parts = [self.arrived(transfer, offer, at) for at in range(len(offer.blocks))]
        missing = [at for at, part in enumerate(parts) if part is None]
        return b"".join(part or b"" for part in parts).decode(), missing

    def _manifest(self, transfer: bytes, offer: Offer, text: str) -> tuple[Chunk, ...] | None:
        own = chunks_of(text, self.width)
        if manifest_of(own) == offer.manifest_root:
            return own
        parts = self.staging.get(transfer, {})
        pages = [parts.get(offer.first_page + at) for at in range(offer.pages)]
        if any(page is None for page in pages):
            return None
        return tuple(chunk for page in pages if page is not None for chunk in decode_page(page))

    def _check(self, effect: effects.Check) -> SyncEvent:
        transfer, offer = effect.transfer, effect.offer
        assert transfer == transfer_id(offer)
        text, missing = self._assembled(transfer, offer)
        if missing:
            return Checked(effect.peer, transfer, Items(tuple((m, 1) for m in missing)).ranges())
        if root_of(blocks_of(text)) != offer.root:
            return Refused(effect.peer, transfer, "not-verified")
        chunks = self._manifest(transfer, offer, text)
        if chunks is None:
            return Checked(effect.peer, transfer, ((offer.first_page, offer.pages),))
        if manifest_of(chunks) != offer.manifest_root or any(
            sha(text[c.start : c.end].encode()) != c.content_digest for c in chunks
        ):
            return Refused(effect.peer, transfer, "not-verified")
        parts = self.staging.get(transfer, {})
        lacking = Items()
        for ordinal, chunk in enumerate(chunks):
            item = offer.first_point + ordinal
            if chunk.content_digest not in self.points_by_content and item not in parts:
                lacking.add(item)
        return Checked(effect.peer, transfer, lacking.ranges())

    def _publish(self, effect: effects.Publish) -> SyncEvent:
        offer = effect.offer
        old = self.heads.get(offer.source)
        if (None if old is None else old.offer.stamp) != effect.expected:
            return Refused(effect.peer, effect.transfer, "head-moved")
        text, missing = self._assembled(effect.transfer, offer)
        chunks = self._manifest(effect.transfer, offer, text)
        assert not missing
        assert root_of(blocks_of(text)) == offer.root
        assert chunks is not None
        if effect.keep_alternate:
            assert old is not None
            self.alternates.append((offer.source, old.text))
        for point in self.staged_points.pop(effect.transfer, ()):
            self.points_by_content[point.content_digest] = point
        after = offer.after
        if effect.stamp != offer.stamp:
            after = (version_hash(offer.stamp), *after)[:16]
        self._put(
            offer.source, replace(offer, key=b"", stamp=effect.stamp, after=after), text, chunks
        )
        self.staging.pop(effect.transfer, None)
        return Committed(effect.peer, effect.transfer, self.last)
