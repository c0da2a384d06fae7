"""
From events to the update that publishes them: redact, write, cut, chunk, name.

Pure: no I/O and no clock. What an append costs depends on what is appended,
never on the conversation before it: the base is a hash chain over what is
closed and the text of what is still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from imprintd.errors import IntegrityError, Refused
from imprintd.model.event import Event, EventSpan
from imprintd.model.reading import Cursor
from imprintd.model.snapshot import (
    BLOCK_BYTES_MAX,
    LEARNER_VERSION,
    MANIFEST_ENTRIES_MAX,
    TEXT_BYTES_MAX,
    Chunk,
    Limits,
    SnapshotUpdate,
    Tail,
)
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.text.blocks import (
    BlockWriter,
    chain,
    chain_chunk,
    close_chain,
    decode,
    encode,
    pack,
    version_of,
)
from imprintd.text.canonical import render_all
from imprintd.text.chunking import chunk_events
from imprintd.text.redacted import RedactPort, redacted_events

__all__ = ["Base", "RedactPort", "SnapshotBuilder", "extend"]

BATCH_CHARS: Final = 256 * 1024
"""Written and cut at a time: stays in the processor's cache (a third faster than
4 MiB), and one emoji does not make four bytes of every character elsewhere."""


@dataclass(frozen=True, slots=True)
class Base:
    """
    What the store hands over about the head that is continued.

    Attributes:
        version: The head's version.
        meta: Its description.
        profile: Redaction profile of its text.
        tail: From its last update.
        coverage: Counts so far.
        open_block: Plain bytes of the last block if it is not full, else b"".
        open_text: Text from `tail.open_start` to the end.
    """

    version: str
    meta: SourceMeta
    profile: str
    tail: Tail
    coverage: Coverage
    open_block: bytes
    open_text: str


def extend(
    source: SourceId,
    base: Base | None,
    events: Sequence[Event],
    *,
    meta: SourceMeta,
    coverage: Coverage,
    state: bytes,
    cursor: Cursor | None,
    record_keys: Sequence[bytes],
    redactor: RedactPort,
    limits: Limits,
) -> SnapshotUpdate:
    """
    Continue a source by some events; see `SnapshotBuilder` for long ones.

    Args:
        source: Which source; project and key as they are shown (redacted).
        base: The head that is continued, None for a new source.
        events: What follows, unredacted, each tool output whole.
        meta: Description after this update.
        coverage: Counts from the first byte on, this reading included.
        state: The reader's continuation.
        cursor: How far the file is read now.
        record_keys: Keys of the records that gave the events.
        redactor: Runs over every body and header field.
        limits: Chunker limits.

    Raises:
        Refused: `text-too-large` or `too-many-chunks`; nothing is published
            and the head stays.
        IntegrityError: The base contradicts itself.
    """
    builder = SnapshotBuilder(source, base, redactor=redactor, limits=limits)
    builder.add(events)
    return builder.finish(
        meta=meta, coverage=coverage, state=state, cursor=cursor, record_keys=record_keys
    )


class SnapshotBuilder:
    """
    Continues a source by events that arrive piece by piece.

    Any division of the events into calls gives the same update. What is held
    in memory is the compressed new blocks, the new chunks, and the text of the
    open block and the open chunk.

    Args:
        source: Which source.
        base: The head that is continued, None to write the text from its start.
        redactor: Runs over every body and header field.
        limits: Chunker limits.
        replaces: Without a base: version of the head that the new text takes
            the place of as a whole (a newer redaction, an older learner).
        block_bytes_max: Plain bytes of a block; only tests set it.

    Raises:
        IntegrityError: The base contradicts itself.
    """

    def __init__(
        self,
        source: SourceId,
        base: Base | None,
        *,
        redactor: RedactPort,
        limits: Limits,
        replaces: str | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
    ) -> None:
        self._source = source
        self._base_version = base.version if base else replaces
        # a continued text is as strict as its oldest part; rewriting it is another task
        self._profile = base.profile if base else redactor.profile
        self._redactor = redactor
        self._limits = limits
        self._tail = tail = base.tail if base else Tail()
        if base:
            _check(base)
        self._writer = BlockWriter(
            base.open_block if base else b"", tail.closed_blocks_chain, size_max=block_bytes_max
        )
        self._open_text = base.open_text if base else ""
        self._open_start = tail.open_start
        self._open_events = tail.open_events
        self._open_chunks: list[Chunk] = []
        self._rechunk = bool(base)
        self._closed: list[Chunk] = []
        self._chunk_link = tail.closed_chunks_chain
        self._total_chars = tail.total_chars
        self._events = tail.events
        self._last_event_start = tail.last_event_start

    def add(self, events: Sequence[Event]) -> None:
        """
        Take the next events.

        Raises:
            Refused: `text-too-large` or `too-many-chunks`.
            IntegrityError: An event has a role, kind or turn that none can have.
        """
        if any(len(event.body) > TEXT_BYTES_MAX for event in events):
            # said before redaction, which would take its time over it
            raise _too_large()
        batch: list[Event] = []
        chars = 0
        for event in redacted_events(events, self._redactor):
            batch.append(event)
            chars += len(event.body)
            if chars >= BATCH_CHARS:
                self._write(batch)
                batch, chars = [], 0
        if batch:
            self._write(batch)

    def finish(
        self,
        *,
        meta: SourceMeta,
        coverage: Coverage,
        state: bytes = b"",
        cursor: Cursor | None = None,
        record_keys: Sequence[bytes] = (),
    ) -> SnapshotUpdate:
        """
        The update that publishes everything added; arguments as for `extend`.

        Raises:
            Refused: `too-many-chunks`.
        """
        if self._rechunk:
            self._cut(self._open_text, self._open_events)
        before = self._tail
        writer = self._writer
        blocks = tuple(writer.closed)
        link = writer.link
        if writer.open_block:
            last = pack(writer.open_block)
            link = chain(link, last.digest, last.size)
            blocks += (last,)
        chunks = (*self._closed, *self._open_chunks)
        chunk_link = self._chunk_link
        for chunk in self._open_chunks:
            chunk_link = chain_chunk(chunk_link, chunk)
        size = self._total_bytes
        root = close_chain(link, before.closed_blocks + len(blocks), self._total_chars, size)
        manifest_root = close_chain(
            chunk_link, before.closed_chunks + len(chunks), self._total_chars, size
        )
        return SnapshotUpdate(
            source=self._source,
            meta=meta,
            base_version=self._base_version,
            version=version_of(root, manifest_root, self._profile),
            profile=self._profile,
            learner=LEARNER_VERSION,
            keep_blocks=before.closed_blocks,
            blocks=blocks,
            keep_chunks=before.closed_chunks,
            chunks=chunks,
            total_chars=self._total_chars,
            total_bytes=size,
            events=self._events,
            root=root,
            manifest_root=manifest_root,
            coverage=coverage,
            tail=Tail(
                closed_blocks=before.closed_blocks + len(writer.closed),
                closed_blocks_chain=writer.link,
                closed_bytes=before.closed_bytes + writer.closed_bytes,
                closed_chars=before.closed_chars + writer.closed_chars,
                closed_chunks=before.closed_chunks + len(self._closed),
                closed_chunks_chain=self._chunk_link,
                open_start=self._open_start,
                total_chars=self._total_chars,
                events=self._events,
                last_event_start=self._last_event_start,
                open_events=self._open_events,
            ),
            state=state,
            cursor=cursor,
            record_keys=tuple(record_keys),
        )

    @property
    def _total_bytes(self) -> int:
        w = self._writer
        return self._tail.closed_bytes + w.closed_bytes + len(w.open_block)

    def _write(self, events: Sequence[Event]) -> None:
        text, spans = render_all(events, self._total_chars)
        self._writer.write(encode(text))
        self._total_chars += len(text)
        self._events += len(spans)
        self._last_event_start = spans[-1].start
        if self._total_bytes > TEXT_BYTES_MAX:
            raise _too_large()
        self._cut(self._open_text + text, (*self._open_events, *spans))

    def _cut(self, text: str, spans: tuple[EventSpan, ...]) -> None:
        """Chunk from the open chunk's start and close what can change no more."""
        chunks = chunk_events(text, self._open_start, spans, self._source, self._limits)
        # a long event shares its chunk with nothing: its last piece is final, too
        closing = len(chunks) if chunks and chunks[-1].long_event else max(0, len(chunks) - 1)
        for chunk in chunks[:closing]:
            self._chunk_link = chain_chunk(self._chunk_link, chunk)
        self._closed += chunks[:closing]
        self._open_chunks = chunks[closing:]
        count = self._tail.closed_chunks + len(self._closed) + len(self._open_chunks)
        if count > MANIFEST_ENTRIES_MAX:
            raise Refused(
                f"more than {MANIFEST_ENTRIES_MAX:,} chunks",
                reason="too-many-chunks",
                remedy="raise [chunker] size_prose; what was learned before stays",
            )
        start = self._open_chunks[0].start if self._open_chunks else self._total_chars
        self._open_text = text[start - self._open_start :]
        self._open_start = start
        self._open_events = tuple(s for s in spans if s.end > start)
        self._rechunk = False


def _too_large() -> Refused:
    return Refused(
        f"more than {TEXT_BYTES_MAX:,} bytes of readable text",
        reason="text-too-large",
        remedy="start a new conversation; what was learned before stays",
    )


def _check(base: Base) -> None:
    tail = base.tail
    if len(base.open_text) != tail.total_chars - tail.open_start:
        raise IntegrityError("the open text of the head is not as long as its tail says")
    if tail.open_events and tail.open_events[-1].end != tail.total_chars:
        raise IntegrityError("the open events of the head do not end where its text ends")
    chars = tail.total_chars - tail.closed_chars
    if len(decode(base.open_block)) != chars:
        raise IntegrityError("the open block of the head is not as long as its tail says")
    if bool(base.open_text) != bool(tail.open_events):
        raise IntegrityError("the open text of the head has no events")
