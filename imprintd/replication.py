"""
The effects of the sync engine, carried out on the store.

Every method blocks and belongs on a worker thread, one effect at a time.
Nothing a peer sent reaches the database before it was put together, verified
and redacted again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from imprintd.archive import base_of
from imprintd.clock import Clock
from imprintd.errors import (
    ImprintdError,
    IntegrityError,
    Refused,
    RemoteProtocolError,
    VersionReplaced,
)
from imprintd.journal import StoreJournal, acknowledged_key
from imprintd.model.snapshot import Chunk, Head, Limits, Point, SnapshotUpdate
from imprintd.received import Assembled, assemble
from imprintd.staging import Staging
from imprintd.store import Store
from imprintd.store.exchange import Exchange
from imprintd.sync import effects, events
from imprintd.sync.ranges import Items
from imprintd.text import blocks
from imprintd.text.redacted import RedactPort
from imprintd.wire import frames
from imprintd.wire.messages import Offer, Ranges
from imprintd.wire.pages import decode_page, decode_points, encode_points

ASSEMBLED_MAX: Final = 8
"""Versions kept between Check and Publish; one that fell out is put together again."""


class Receiver:
    """
    Carries out the effects of a replica that concern the store.

    Args:
        store: Opened for writing.
        journal: Over the same store and staging.
        staging: The staging area.
        redactor: Runs over everything that comes in.
        limits: Chunker limits of this device.
        rules: As for the journal.
        vector_bytes: Bytes of a vector under these rules; 0 without a model.
        clock: For alternates and expiry.
    """

    def __init__(
        self,
        store: Store,
        journal: StoreJournal,
        staging: Staging,
        *,
        redactor: RedactPort,
        limits: Limits,
        rules: str | None,
        vector_bytes: int,
        clock: Clock,
    ) -> None:
        self._store = store
        self._exchange = Exchange(store)
        self._journal = journal
        self._staging = staging
        self._redactor = redactor
        self._limits = limits
        self._rules = rules
        self._vector_bytes = vector_bytes
        self._clock = clock
        self._assembled: OrderedDict[bytes, Assembled] = OrderedDict()

    def run(self, effect: effects.Effect) -> events.SyncEvent | None:
        """
        Carry an effect out, whole or not at all.

        Returns:
            What came of it, for the replica; None for effects without an
            answer and for those that are not the store's.
        """
        if isinstance(effect, effects.Discard):
            self._drop(effect.transfer)
            return None
        if isinstance(effect, effects.Acknowledge):
            value = json.dumps([effect.index.hex(), effect.change])
            self._store.set_setting(acknowledged_key(effect.peer), value)
            return None
        if not isinstance(
            effect,
            effects.Stage | effects.StagePoints | effects.Check | effects.Publish | effects.Restamp,
        ):
            return None
        try:
            return self._answered(effect)
        except VersionReplaced:
            return events.Refused(effect.peer, effect.transfer, "head-moved")
        except Refused as error:
            return events.Refused(effect.peer, effect.transfer, error.reason)
        except (IntegrityError, RemoteProtocolError):
            return events.Refused(effect.peer, effect.transfer, "not-verified")
        except ImprintdError as error:
            return events.Refused(effect.peer, effect.transfer, error.code, error.retryable)

    def _answered(
        self,
        effect: effects.Stage
        | effects.StagePoints
        | effects.Check
        | effects.Publish
        | effects.Restamp,
    ) -> events.SyncEvent:
        if isinstance(effect, effects.Stage):
            is_block = effect.item < effect.offer.first_page
            data = blocks.pack(effect.plain).packed if is_block else effect.plain
            self._staging.put(effect.transfer, effect.item, data)
            return events.Staged(effect.peer, effect.transfer, ((effect.item, 1),))
        if isinstance(effect, effects.StagePoints):
            self._stage_points(effect)
            return events.Staged(effect.peer, effect.transfer, effect.items)
        if isinstance(effect, effects.Check):
            return events.Checked(effect.peer, effect.transfer, self._check(effect))
        if isinstance(effect, effects.Publish):
            head = self._publish(effect)
        else:
            head = self._exchange.restamp(effect.source, effect.stamp, expected=effect.expected)
        return events.Committed(effect.peer, effect.transfer, head.change)

    def _stage_points(self, effect: effects.StagePoints) -> None:
        """One file for each chunk, so that what came is known by its item."""
        by_content: dict[bytes, list[Point]] = {}
        for point in effect.points:
            if self._is_vector(point.vector):
                by_content.setdefault(point.content_digest, []).append(point)
        chunks = self._kept(effect.transfer, effect.offer).update
        for item in Items(effect.items):
            ordinal = item - effect.offer.first_point - chunks.keep_chunks
            known = 0 <= ordinal < len(chunks.chunks)
            points = by_content.get(chunks.chunks[ordinal].content_digest, []) if known else []
            self._staging.put(effect.transfer, item, encode_points(points))

    def _is_vector(self, vector: bytes) -> bool:
        """A float16 vector of the right length, finite and of length one."""
        if len(vector) != self._vector_bytes:
            return False
        import numpy as np

        norm = float(np.linalg.norm(np.frombuffer(vector, "<f2").astype(np.float32)))
        return abs(norm - 1.0) < 0.01

    def _check(self, effect: effects.Check) -> Ranges:
        offer, transfer = effect.offer, effect.transfer
        missing = Items()
        for position in range(len(offer.blocks)):
            if not self._has(transfer, offer, position):
                missing.add(position)
        if missing:
            return missing.ranges()
        assembled = self._assemble(transfer, offer)
        if assembled.pages:
            staged = set(self._staging.items(transfer))
            for item in range(offer.first_page, offer.first_point):
                if item not in staged:
                    missing.add(item)
            return missing.ranges()
        if not assembled.altered:
            self._lacking(transfer, offer, assembled.update, missing)
        return missing.ranges()

    def _has(self, transfer: bytes, offer: Offer, position: int) -> bool:
        reference = offer.blocks[position]
        staged = self._staging.get(transfer, position)
        if staged is not None:
            try:
                blocks.unpack(staged, reference.digest)
            except IntegrityError:
                return False
            return True
        return bool(self._exchange.held(offer.source.workspace, (reference.digest,)))

    def _lacking(
        self, transfer: bytes, offer: Offer, update: SnapshotUpdate, missing: Items
    ) -> None:
        """Points to ask for: of new chunks, under equal rules, neither here nor staged."""
        if self._rules is None or self._rules not in offer.rules[:1]:
            return
        staged = set(self._staging.items(transfer))
        for ordinal, chunk in enumerate(update.chunks, update.keep_chunks):
            item = offer.first_point + ordinal
            if item not in staged and not self._exchange.points(
                offer.source, chunk.content_digest, self._rules
            ):
                missing.add(item)

    def _assemble(self, transfer: bytes, offer: Offer) -> Assembled:
        def block(position: int) -> bytes:
            plain = self._journal.arrived(transfer, offer, position)
            if plain is None:
                raise IntegrityError("a block of a received version is not there (any more)")
            return plain

        assembled = assemble(
            offer,
            block,
            base=base_of(self._store, offer.source),
            redactor=self._redactor,
            limits=self._limits,
            manifest=self._manifest(transfer, offer),
        )
        # our own reader goes on where it stood
        state = self._store.reader_state(offer.source)
        assembled = replace(assembled, update=replace(assembled.update, state=state))
        self._assembled[transfer] = assembled
        self._assembled.move_to_end(transfer)
        if len(self._assembled) > ASSEMBLED_MAX:
            self._assembled.popitem(last=False)
        return assembled

    def _manifest(self, transfer: bytes, offer: Offer) -> list[Chunk] | None:
        found: list[Chunk] = []
        for item in range(offer.first_page, offer.first_point):
            page = self._staging.get(transfer, item)
            if page is None:
                return None
            found += decode_page(page)
        return found

    def _kept(self, transfer: bytes, offer: Offer) -> Assembled:
        return self._assembled.get(transfer) or self._assemble(transfer, offer)

    def _publish(self, effect: effects.Publish) -> Head:
        offer, transfer = effect.offer, effect.transfer
        assembled = self._kept(transfer, offer)
        update = assembled.update
        head = self._exchange.publish(
            replace(
                update,
                origin=offer.origin,
                stamp=effect.stamp,
                points=self._points(transfer, offer, update),
            ),
            self._rules,
            expected=effect.expected,
            keep_alternate=effect.keep_alternate,
            offered=frames.encode(offer) if assembled.altered else None,
            now_ms=self._clock.wall_ms(),
        )
        self._drop(transfer)
        return head

    def _points(self, transfer: bytes, offer: Offer, update: SnapshotUpdate) -> tuple[Point, ...]:
        """Staged points, each for the very content that its chunk has here."""
        if self._rules is None:
            return ()
        found: list[Point] = []
        for item in self._staging.items(transfer):
            ordinal = item - offer.first_point - update.keep_chunks
            if not 0 <= ordinal < len(update.chunks):
                continue
            content = update.chunks[ordinal].content_digest
            data = self._staging.get(transfer, item)
            points = decode_points(data or b"\x90", self._rules)
            found += [point for point in points if point.content_digest == content]
        return tuple(found)

    def _drop(self, transfer: bytes) -> None:
        self._staging.drop(transfer)
        self._assembled.pop(transfer, None)

    def expire(self) -> Mapping[str, int]:
        """Drop transfers that nobody went on with for a day."""
        return {"expired": self._staging.expire(self._clock.wall_ms() / 1000)}
