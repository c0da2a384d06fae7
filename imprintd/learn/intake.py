"""
From a file on disk to the update that publishes what is new in it.

Decides where reading continues (a cursor that still fits, a file that moved, a
file that was replaced), feeds the client's reader piece by piece and hands the
events to the pipeline. Nothing is published here and nothing is ever taken
away from what was learned before.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from imprintd.config import ReadingConfig
from imprintd.errors import DamagedLine, Refused, SourceError
from imprintd.learn.pipeline import Base, RedactPort, SnapshotBuilder
from imprintd.learn.ports import Archive, Job, KnownHead, Outcome
from imprintd.learn.sidefiles import SessionFolder
from imprintd.learn.transcript import Transcript
from imprintd.model.reading import Cursor, Reading
from imprintd.model.snapshot import LEARNER_VERSION, Limits
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.readers import identify, with_stem
from imprintd.readers.base import Identity, Reader
from imprintd.text.canonical import parse

PIECE_BYTES: Final = 4 * 1024**2
TITLE_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where a reading begins and what it builds on."""

    known: KnownHead | None
    base: Base | None
    state: bytes
    offset: int
    lines: int
    fresh: bool
    notes: tuple[str, ...]
    rewrites: bool = False
    """The stored text is redacted by older rules: write it anew in front of what follows."""


class Intake:
    """
    Learns files one by one.

    Args:
        archive: What is already known.
        base_of: Gives the pipeline's base of a stored head.
        redactor: Redacts before anything is stored.
        limits: Chunker limits.
        reading: Admission limits.
        workspace: Where new sources belong.
        excluded: Projects that are never read, with everything below them.
    """

    def __init__(
        self,
        archive: Archive,
        base_of: BaseOf,
        redactor: RedactPort,
        limits: Limits,
        reading: ReadingConfig,
        *,
        workspace: str = "default",
        excluded: Sequence[str] = (),
    ) -> None:
        self._archive = archive
        self._base_of = base_of
        self._redactor = redactor
        self._limits = limits
        self._reading = reading
        self._workspace = workspace
        self._excluded = tuple(p.rstrip("/") for p in excluded)

    def learn(self, job: Job) -> Outcome:
        """
        Read what is new in one file.

        Returns:
            An outcome with the update to publish, or why there is none. Errors
            of this one source never raise.
        """
        try:
            with Transcript(job.path, self._reading.file_bytes_max) as transcript:
                return self._learn(job, transcript)
        except SourceError as error:
            return Outcome(
                job,
                "failed",
                reason=error.reason,
                message=error.message,
                remedy=error.remedy,
                line=error.line,
            )

    def _learn(self, job: Job, transcript: Transcript) -> Outcome:
        stored = self._archive.cursor(self._workspace, job.path)
        if stored and not job.force and not job.final and _same_file(transcript, stored[1]):
            return Outcome(job, "unchanged", key=stored[0])
        head = transcript.head()
        if not head.strip(b"\0\r\n\t "):
            if stored:
                return Outcome(
                    job, "unchanged", key=stored[0], notes=("file-emptied",), bytes_read=len(head)
                )
            return Outcome(job, "skipped", reason="empty", bytes_read=len(head))
        found = identify(job.path, head)
        if found is None:
            return Outcome(
                job,
                "skipped",
                reason="not-a-transcript",
                message="not a transcript of a client that imprintd knows",
                bytes_read=len(head),
            )
        reader, identity = found
        identity = self._distinct(job.path, transcript, head, identity)
        plan = self._plan(job, transcript, head, identity)
        if plan.known and self._is_excluded(plan.known.source.project):
            return Outcome(job, "skipped", key=identity.key, reason="excluded")
        try:
            return self._read(job, transcript, reader, identity, plan)
        except SourceError as error:
            return Outcome(
                job,
                "failed",
                key=identity.key,
                reason=error.reason,
                message=error.message,
                remedy=error.remedy,
                line=error.line,
                bytes_read=transcript.bytes_read,
            )

    def _plan(self, job: Job, transcript: Transcript, head: bytes, identity: Identity) -> _Plan:
        known = self._archive.known(self._workspace, identity.key)
        if known is None:
            return _Plan(None, None, b"", 0, 0, fresh=False, notes=())
        if known.learner < LEARNER_VERSION:
            return _Plan(known, None, b"", 0, 0, fresh=False, notes=("learned-again",))
        rewrites = known.profile != self._redactor.profile
        base = None if rewrites else self._base_of(known.source)
        notes = ("redacted-again",) if rewrites else ()
        for cursor in self._candidates(job.path, identity.key):
            if transcript.continues(cursor, head):
                return _Plan(
                    known,
                    base,
                    self._archive.reader_state(known.source),
                    cursor.offset,
                    cursor.lines,
                    fresh=False,
                    notes=notes if cursor.path == job.path else (*notes, "file-moved"),
                    rewrites=rewrites,
                )
        notes = (*notes, "file-replaced")
        return _Plan(known, base, b"", 0, 0, fresh=True, notes=notes, rewrites=rewrites)

    def _distinct(
        self, path: str, transcript: Transcript, head: bytes, identity: Identity
    ) -> Identity:
        """Two files under unusual names may hold one session id: then both are sources."""
        if identity.named:
            return identity
        own = with_stem(identity, path)
        stored = self._archive.cursor(self._workspace, path)
        if stored is not None:
            return own if stored[0] == own.key else identity
        cursors = self._archive.cursors_of(self._workspace, identity.key)
        living = [c for c in cursors if os.path.lexists(c.path)]
        if not living or any(transcript.continues(cursor, head) for cursor in living):
            return identity
        return own

    def _candidates(self, path: str, key: str) -> list[Cursor]:
        """Cursors of the source, this path's own first, then the furthest."""
        cursors = self._archive.cursors_of(self._workspace, key)
        return sorted(cursors, key=lambda c: (c.path != path, -c.offset))

    def _is_excluded(self, project: str) -> bool:
        return any(project == e or project.startswith(e + "/") for e in self._excluded)

    def _read(
        self, job: Job, transcript: Transcript, reader: Reader, identity: Identity, plan: _Plan
    ) -> Outcome:
        salvage = job.salvage or self._reading.damaged_lines == "salvage"
        source = plan.known.source if plan.known else None
        from_scratch = plan.base is None and not plan.rewrites
        ledger = _PassLedger(self._archive, None if from_scratch else source)
        side = SessionFolder(job.path, lambda: self._earlier_outputs(source))
        pass_ = _Pass(plan, identity)
        builder: SnapshotBuilder | None = None
        pending = b""
        wanted = PIECE_BYTES
        pieces = transcript.pieces(plan.offset, PIECE_BYTES)
        at_end = False
        while not at_end:
            piece = next(pieces, b"")
            at_end = not piece
            pending += piece
            if len(pending) < wanted and not at_end:
                continue
            if not pending:
                break
            try:
                reading = reader.read(
                    pending,
                    state=pass_.state,
                    fresh=plan.fresh,
                    final=job.final and at_end,
                    salvage=salvage,
                    ledger=ledger,
                    side=side,
                )
            except DamagedLine as error:
                error.line = pass_.lines + (error.line or 1)
                raise
            pass_.take(reading)
            ledger.add(reading.record_keys)
            if builder is None and reading.events:
                source = source or self._source(identity, pass_.project)
                if self._is_excluded(source.project):
                    return Outcome(job, "skipped", key=identity.key, reason="excluded")
                builder = self._builder(source, plan)
            if builder is not None and reading.events:
                builder.add(reading.events)
            pending = pending[reading.consumed :]
            # a line longer than a piece: look again only when twice as much is here
            longer = min(2 * max(len(pending), PIECE_BYTES), self._reading.line_bytes_max + 1)
            wanted = PIECE_BYTES if reading.consumed else longer
            if len(pending) > self._reading.line_bytes_max:
                raise Refused(
                    f"line {pass_.lines + 1} has more than {self._reading.line_bytes_max:,} bytes",
                    reason="line-too-long",
                    remedy="raise [reading] line_bytes_max if it is meant to be learned",
                )
        coverage = replace(pass_.coverage, pending_tail_bytes=len(pending))
        return self._finish(job, transcript, identity, plan, pass_, builder, source, coverage)

    def _finish(
        self,
        job: Job,
        transcript: Transcript,
        identity: Identity,
        plan: _Plan,
        pass_: _Pass,
        builder: SnapshotBuilder | None,
        source: SourceId | None,
        coverage: Coverage,
    ) -> Outcome:
        if builder is None and plan.known is None:
            reason = "no-events" if not coverage.pending_tail_bytes else "unfinished"
            return Outcome(
                job, "skipped", key=identity.key, reason=reason, bytes_read=transcript.bytes_read
            )
        if builder is None and pass_.consumed == 0 and not plan.notes:
            return Outcome(
                job,
                "unchanged",
                key=identity.key,
                bytes_read=transcript.bytes_read,
                coverage=coverage,
            )
        assert source is not None or plan.known is not None
        target = source if plan.known is None else plan.known.source
        assert target is not None
        builder = builder or self._builder(target, plan)
        update = builder.finish(
            meta=self._meta(identity, plan, pass_, transcript),
            coverage=(plan.known.coverage.plus(coverage) if plan.known and plan.base else coverage),
            state=pass_.state,
            cursor=transcript.cursor(plan.offset + pass_.consumed, pass_.lines),
            record_keys=tuple(pass_.record_keys),
        )
        return Outcome(
            job,
            "learned",
            update=update,
            key=identity.key,
            bytes_read=transcript.bytes_read,
            notes=plan.notes,
            coverage=coverage,
        )

    def _builder(self, source: SourceId, plan: _Plan) -> SnapshotBuilder:
        replaces = plan.known.version if plan.known and plan.base is None else None
        builder = SnapshotBuilder(
            source, plan.base, redactor=self._redactor, limits=self._limits, replaces=replaces
        )
        if plan.rewrites:
            # never un-redacts: what older rules took out stays out
            builder.add(parse(self._archive.text_of(source)))
        return builder

    def _source(self, identity: Identity, project: str | None) -> SourceId:
        raw = project or identity.project or ""
        return SourceId(self._workspace, self._redactor.redact_many([raw])[0].text, identity.key)

    def _meta(
        self, identity: Identity, plan: _Plan, pass_: _Pass, transcript: Transcript
    ) -> SourceMeta:
        earlier = plan.known.meta if plan.known else None
        if pass_.title:
            title = self._clean(pass_.title)
        elif earlier and earlier.title:
            title = earlier.title
        else:
            title = self._clean(pass_.first_question or "")
        updated = _milliseconds(pass_.updated) or transcript.state.mtime_ns // 1_000_000
        return SourceMeta(
            client=identity.key.partition(":")[0],
            title=title,
            parent=identity.parent or (earlier.parent if earlier else None),
            updated_ms=max(updated, earlier.updated_ms) if earlier else updated,
            language=earlier.language if earlier else None,
        )

    def _clean(self, title: str) -> str:
        """First line of a title, redacted as a whole before it is cut."""
        whole = self._redactor.redact_many([title])[0].text
        line = next((part.strip() for part in whole.splitlines() if part.strip()), "")
        return line[:TITLE_CHARS_MAX]

    def _earlier_outputs(self, source: SourceId | None) -> Mapping[str, str]:
        if source is None:
            return {}
        return {
            event.call_id: event.body
            for event in parse(self._archive.text_of(source))
            if event.kind == "tool_output" and event.call_id
        }


class _Pass:
    """What one pass over a file has gathered so far."""

    def __init__(self, plan: _Plan, identity: Identity) -> None:
        self.state = plan.state
        self.lines = plan.lines
        self.consumed = 0
        self.coverage = Coverage()
        self.record_keys: list[bytes] = []
        self.project = identity.project
        self.title: str | None = None
        self.first_question: str | None = None
        self.updated: str | None = None

    def take(self, reading: Reading) -> None:
        self.state = reading.state
        self.lines += reading.lines
        self.consumed += reading.consumed
        self.coverage = self.coverage.plus(reading.coverage)
        self.record_keys.extend(reading.record_keys)
        self.project = self.project or reading.project
        self.title = reading.title or self.title
        self.first_question = self.first_question or reading.first_question
        self.updated = max(filter(None, (self.updated, reading.updated)), default=None)


class _PassLedger:
    """The stored ledger and what this pass took itself."""

    def __init__(self, archive: Archive, source: SourceId | None) -> None:
        self._archive = archive
        self._source = source
        self._taken: Counter[bytes] = Counter()

    def counts(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        stored = self._archive.ledger_counts(self._source, keys) if self._source else {}
        counts = {key: stored.get(key, 0) + self._taken[key] for key in keys}
        return {key: count for key, count in counts.items() if count}

    def add(self, keys: Sequence[bytes]) -> None:
        self._taken.update(keys)


class BaseOf(Protocol):
    """Gives the pipeline's base of a stored source, at constant cost."""

    def __call__(self, source: SourceId) -> Base | None: ...


def _same_file(transcript: Transcript, cursor: Cursor) -> bool:
    state = transcript.state
    return (
        cursor.device == state.device
        and cursor.inode == state.inode
        and cursor.size == state.size
        and cursor.mtime_ns == state.mtime_ns
    )


def _milliseconds(timestamp: str | None) -> int:
    """Milliseconds of an ISO 8601 timestamp, 0 where it cannot be read."""
    if not timestamp:
        return 0
    try:
        moment = dt.datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1000)
