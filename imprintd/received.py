"""
A received version put together, verified, redacted again and cut.

Everything is worked out anew from the blocks: parsed into events, redacted,
written, cut into blocks and chunks. Where that gives the offered roots, the
text, every span, every content digest and every memory id are proven at
once. A version that continues our head is worked out from its new part only.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from imprintd.errors import IntegrityError, Refused
from imprintd.learn.pipeline import Base, SnapshotBuilder, extend
from imprintd.model.event import Event, EventSpan
from imprintd.model.snapshot import Chunk, Limits, SnapshotUpdate
from imprintd.model.source import SourceMeta
from imprintd.text import blocks
from imprintd.text.canonical import parse, render_all
from imprintd.text.chunking import ChunkNamer
from imprintd.text.redacted import RedactPort
from imprintd.wire.messages import BlockRef, Offer

BlockBytes = Callable[[int], bytes]
"""Plain bytes of an offered block by position."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """
    What a received version is here.

    Attributes:
        update: Ready to publish but for stamp, origin and points.
        pages: The origin's manifest pages are needed first: its chunks are
            cut by other rules than ours.
        altered: Redaction here changed the text; the chunks are our own.
    """

    update: SnapshotUpdate
    pages: bool = False
    altered: bool = False


def assemble(
    offer: Offer,
    block: BlockBytes,
    *,
    base: Base | None,
    redactor: RedactPort,
    limits: Limits,
    manifest: Sequence[Chunk] | None,
) -> Assembled:
    """
    Work a received version out.

    Args:
        offer: What was offered.
        block: Its blocks, each one known to match its digest.
        base: Our head as learning continues it, None without one.
        redactor: Runs over everything again.
        limits: Our own chunker limits.
        manifest: The origin's chunks, once they are here.

    Raises:
        IntegrityError: The blocks do not give the offered roots, the text is
            not canonical, or the manifest does not fit it.
        Refused: A limit, or a name that redaction would change.
    """
    _check_root(offer)
    meta = _named(offer, redactor)
    offer = replace(offer, meta=meta)
    if base is not None and base.profile == redactor.profile:
        update = _continued(offer, block, base, redactor, limits)
        if update is not None and update.manifest_root == offer.manifest_root:
            return Assembled(update)
    raw = b"".join(block(at) for at in range(len(offer.blocks)))
    events = parse(blocks.decode(raw))
    builder = SnapshotBuilder(
        offer.source,
        None,
        redactor=redactor,
        limits=limits,
        replaces=None if base is None else base.version,
    )
    builder.add(events)
    update = builder.finish(meta=meta, coverage=offer.coverage)
    if update.root != offer.root:
        return Assembled(update, altered=True)
    if update.manifest_root == offer.manifest_root:
        return Assembled(update)
    if manifest is None:
        return Assembled(update, pages=True)
    return Assembled(_with_manifest(offer, update, raw, events, manifest))


def _check_root(offer: Offer) -> None:
    link = _chain(offer.blocks)
    root = blocks.close_chain(link, len(offer.blocks), offer.total_chars, offer.total_bytes)
    if root != offer.root:
        raise IntegrityError("the offered blocks do not give the offered root")


def _chain(references: Sequence[BlockRef]) -> bytes:
    link = blocks.CHAIN_START
    for reference in references:
        link = blocks.chain(link, reference.digest, reference.size)
    return link


def _named(offer: Offer, redactor: RedactPort) -> SourceMeta:
    """The description, its title redacted; a name that would change is refused."""
    meta, source = offer.meta, offer.source
    names = [source.workspace, source.project, source.key, meta.client, meta.parent or ""]
    results = [result.text for result in redactor.redact_many([meta.title, *names])]
    if results[1:] != names:
        raise Refused("a name of the source holds a secret", reason="bad-name")
    return replace(meta, title=results[0])


def _continued(
    offer: Offer,
    block: BlockBytes,
    base: Base,
    redactor: RedactPort,
    limits: Limits,
) -> SnapshotUpdate | None:
    """The update worked out from the new part alone; None where that does not prove it."""
    tail = base.tail
    closed = tail.closed_blocks
    if offer.total_chars < tail.total_chars or len(offer.blocks) < closed:
        return None
    if _chain(offer.blocks[:closed]) != tail.closed_blocks_chain:
        return None
    raw = b"".join(block(at) for at in range(closed, len(offer.blocks)))
    if not raw.startswith(base.open_block):
        return None
    events: list[Event] = parse(blocks.decode(raw[len(base.open_block) :]))
    update = extend(
        offer.source,
        base,
        events,
        meta=offer.meta,
        coverage=offer.coverage,
        state=b"",
        cursor=None,
        record_keys=(),
        redactor=redactor,
        limits=limits,
    )
    return update if update.root == offer.root else None


def _with_manifest(
    offer: Offer,
    update: SnapshotUpdate,
    raw: bytes,
    events: Sequence[Event],
    manifest: Sequence[Chunk],
) -> SnapshotUpdate:
    """The update with the origin's chunks in place of ours, each one checked."""
    text = blocks.decode(raw)
    namer = ChunkNamer(offer.source)
    link = blocks.CHAIN_START
    reached = 0
    closed_link = link
    for chunk in manifest:
        content = hashlib.sha256(blocks.encode(text[chunk.start : chunk.end])).digest()
        if (
            not chunk.start <= reached < chunk.end
            or content != chunk.content_digest
            or namer.memory_id(chunk.start, chunk.end, content) != chunk.memory_id
        ):
            raise IntegrityError("a chunk of the offered manifest does not fit the text")
        reached = chunk.end
        closed_link = link
        link = blocks.chain_chunk(link, chunk)
    root = blocks.close_chain(link, len(manifest), offer.total_chars, offer.total_bytes)
    if reached != len(text) or root != offer.manifest_root:
        raise IntegrityError("the offered manifest does not give its root")
    _, spans = render_all(events)
    open_chunks = 0 if not manifest or manifest[-1].long_event else 1
    open_start = manifest[-1].start if open_chunks else len(text)
    tail = replace(
        update.tail,
        closed_chunks=len(manifest) - open_chunks,
        closed_chunks_chain=closed_link if open_chunks else link,
        open_start=open_start,
        open_events=tuple(span for span in spans if span.end > open_start),
    )
    return replace(
        update,
        keep_chunks=0,
        chunks=tuple(_own_spans(chunk, spans) for chunk in manifest),
        manifest_root=root,
        version=blocks.version_of(update.root, root, update.profile),
        tail=tail,
    )


def _own_spans(chunk: Chunk, spans: Sequence[EventSpan]) -> Chunk:
    """The chunk with the event spans that the text itself shows."""
    first = bisect_right(spans, chunk.start, key=lambda span: span.end)
    end = bisect_left(spans, chunk.end, key=lambda span: span.start)
    inside = tuple(
        replace(span, start=max(span.start, chunk.start), end=min(span.end, chunk.end))
        for span in spans[first:end]
    )
    return replace(chunk, events=inside)
