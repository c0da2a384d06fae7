"""
The OFFER message: the longest one, with its own checks.

Its digest names the transfer, so that resuming after a restart of either
side meets the same staging, and a changed offer never does.
"""

from __future__ import annotations

import hashlib
from typing import Any

from imprintd.errors import RemoteProtocolError
from imprintd.model.snapshot import (
    BLOCK_BYTES_MAX,
    MANIFEST_ENTRIES_MAX,
    TEXT_BYTES_MAX,
    Stamp,
)
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.wire import limits, messages
from imprintd.wire.codec import pack
from imprintd.wire.fields import Fields, number, octets, row, text


def write(m: messages.Offer) -> dict[str, Any]:
    """The body of an OFFER."""
    return {
        "key": m.key,
        "source": [m.source.workspace, m.source.project, m.source.key],
        "meta": [
            m.meta.client,
            m.meta.title[: limits.TITLE_CHARS_MAX],
            m.meta.parent,
            m.meta.updated_ms,
            m.meta.language,
        ],
        "stamp": stamp_row(m.stamp),
        "origin": m.origin,
        "version": m.version,
        "profile": m.profile,
        "learner": m.learner,
        "blocks": [[block.digest, block.size, block.chars] for block in m.blocks],
        "chunks": m.chunks,
        "chars": m.total_chars,
        "bytes": m.total_bytes,
        "events": m.events,
        "root": m.root,
        "manifest": m.manifest_root,
        "coverage": _coverage(m.coverage),
        "rules": list(m.rules),
        "after": list(m.after),
    }


def read(f: Fields) -> messages.Offer:
    """
    The offer in a body.

    Raises:
        RemoteProtocolError: A field is wrong or over a limit, or the sizes
            of the blocks do not add up to the totals.
    """
    offer = messages.Offer(
        key=f.octets("key", 16),
        source=_source(f),
        meta=_meta(f),
        stamp=f.stamp("stamp"),
        origin=f.text("origin"),
        version=f.text("version", 32),
        profile=f.text("profile"),
        learner=f.integer("learner"),
        blocks=f.many("blocks", limits.BLOCKS_MAX, _block),
        chunks=f.integer("chunks", 0, MANIFEST_ENTRIES_MAX),
        total_chars=f.integer("chars", 0, TEXT_BYTES_MAX),
        total_bytes=f.integer("bytes", 0, TEXT_BYTES_MAX),
        events=f.integer("events"),
        root=f.octets("root", 32),
        manifest_root=f.octets("manifest", 32),
        coverage=f.coverage("coverage"),
        rules=f.many("rules", limits.RULES_MAX, _name),
        after=f.many("after", limits.AFTER_MAX, lambda v, e: octets(v, e, 16)),
    )
    if sum(block.size for block in offer.blocks) != offer.total_bytes:
        raise f.bad("bytes")
    if sum(block.chars for block in offer.blocks) != offer.total_chars:
        raise f.bad("chars")
    return offer


def transfer_id(m: messages.Offer) -> bytes:
    """
    16 bytes that name this offer between its two devices.

    The rules and ancestors are left out: they may change while a transfer
    is on its way without changing what is transferred.
    """
    body = write(m)
    del body["rules"], body["after"]
    return hashlib.sha256(b"imprintd offer 1\0" + pack(body)).digest()[:16]


def transcript(m: messages.Offer) -> bytes:
    """What DONE says about the whole of a transfer, 32 bytes."""
    seen = hashlib.sha256(b"imprintd transcript 1\0" + transfer_id(m))
    for block in m.blocks:
        seen.update(block.digest)
    seen.update(m.manifest_root + m.items.to_bytes(8, "big"))
    return seen.digest()


def version_hash(stamp: Stamp) -> bytes:
    """16 bytes that name a version, the same on every device: a hash of its stamp."""
    packed = pack(stamp_row(stamp))
    return hashlib.sha256(b"imprintd version 1\0" + packed).digest()[:16]


def stamp_row(stamp: Stamp) -> list[Any]:
    """A stamp as it is written in messages."""
    return [stamp.update_ms, stamp.counter, stamp.device, stamp.digest]


def _source(f: Fields) -> SourceId:
    error = f.bad("source")
    parts = f.many("source", 8, lambda v, _: v)
    row(list(parts), error, 3)
    source = SourceId(
        text(parts[0], error, limits.NAME_CHARS_MAX),
        text(parts[1], error, limits.PROJECT_CHARS_MAX),
        text(parts[2], error, limits.KEY_CHARS_MAX),
    )
    if not source.workspace or not source.key:
        raise error
    return source


def _meta(f: Fields) -> SourceMeta:
    error = f.bad("meta")
    parts = f.many("meta", 16, lambda v, _: v)
    row(list(parts), error, 5)
    return SourceMeta(
        text(parts[0], error, limits.NAME_CHARS_MAX),
        text(parts[1], error, limits.TITLE_CHARS_MAX, clean=False),
        None if parts[2] is None else text(parts[2], error, limits.KEY_CHARS_MAX),
        number(parts[3], error),
        None if parts[4] is None else text(parts[4], error, limits.NAME_CHARS_MAX),
    )


def _block(value: Any, error: RemoteProtocolError) -> messages.BlockRef:
    parts = row(value, error, 3)
    return messages.BlockRef(
        octets(parts[0], error, 32),
        number(parts[1], error, 1, BLOCK_BYTES_MAX),
        number(parts[2], error, 1, BLOCK_BYTES_MAX),
    )


def _name(value: Any, error: RemoteProtocolError) -> str:
    return text(value, error, limits.NAME_CHARS_MAX)


def _coverage(coverage: Coverage) -> list[Any]:
    return [
        _bounded(coverage.omissions),
        _bounded(coverage.unknown),
        coverage.zero_filled_lines,
        coverage.joined_lines,
        coverage.repeated_records,
        coverage.pending_tail_bytes,
    ]


def _bounded(counts: Any) -> dict[str, int]:
    """Counts in a fixed order, so that the same offer has the same digest."""
    names = sorted(counts)[: limits.COUNTS_MAX]
    return {name[: limits.NAME_CHARS_MAX]: counts[name] for name in names}
