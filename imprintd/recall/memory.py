"""
The questions and their answers as documents (the keys are a public interface).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

from imprintd.errors import UsageError
from imprintd.model.snapshot import Head
from imprintd.model.source import Coverage
from imprintd.recall.ports import Archive, ChunkRow, Finder, Question
from imprintd.text.canonical import parse, parse_spans

PAGE_CHARS_MIN: Final = 100
PAGE_CHARS_MAX: Final = 12_000
CHUNKS_PER_PAGE: Final = 50

Document = dict[str, Any]


class Memory:
    """
    Everything that is known, to be asked.

    Args:
        archive: The store, for reading.
        finder: Search; None answers everything but searches and integrity.
    """

    def __init__(self, archive: Archive, finder: Finder | None) -> None:
        self._archive = archive
        self._finder = finder

    def sources(self, workspace: str, project: str | None, client: str | None) -> Document:
        """What is known, the latest update first."""
        heads = self._archive.heads(workspace=workspace, client=client)
        return {
            "sources": [
                _described(head)
                for head in heads
                if project is None or in_project(head.source.project, project)
            ]
        }

    def search(self, question: Question) -> Document:
        """Hits, best first, with bounded excerpts and how to expand them."""
        if not question.text.strip():
            raise UsageError("the query is empty")
        if self._finder is None:
            raise UsageError("search is not available here")
        results = self._finder.query(question)
        return {
            "hits": [
                {
                    "memory_id": hit.memory_id,
                    "score": round(hit.score, 4),
                    "source": hit.source,
                    "project": hit.project,
                    "workspace": hit.workspace,
                    "client": hit.client,
                    "kind": hit.kind,
                    "role": hit.role,
                    "start": hit.start,
                    "end": hit.end,
                    "excerpt": hit.excerpt,
                    "expand": f"imprintd get {hit.memory_id}",
                    "places": [dict(place) for place in hit.places],
                }
                for hit in results.hits
            ],
            "mode": results.mode,
            "notes": list(results.notes),
            "took_ms": round(results.took_ms, 2),
        }

    def get(self, workspace: str, memory_id: str, start: int, max_chars: int) -> Document:
        """One chunk, in bounded windows."""
        size = _page_size(max_chars)
        row = self._archive.chunk_by_memory_id(workspace, memory_id)
        content = row.content or ""
        if start > len(content):
            raise UsageError(f"the chunk has {len(content)} characters, start is {start}")
        end = min(start + size, len(content))
        return {
            "memory_id": memory_id,
            "content": content[start:end],
            "next_start": end if end < len(content) else None,
            "total_chars": len(content),
            "source": row.source.key,
            "project": row.source.project,
            "start": row.start,
            "end": row.end,
            "content_hash": row.content_digest.hex(),
            "version": row.version,
            "long_event": row.long_event,
            "source_read": {
                "source": row.source.key,
                "project": row.source.project,
                "start": row.start,
                "max_chars": max(PAGE_CHARS_MIN, min(PAGE_CHARS_MAX, row.end - row.start)),
            },
        }

    def chunks(
        self, workspace: str, source: str, project: str | None, start: int, end: int | None
    ) -> Document:
        """A source's chunks by index; long contents are cut with a hint."""
        head = self._head(workspace, source, project)
        stop = min(head.chunks, start + CHUNKS_PER_PAGE if end is None else end)
        stop = min(stop, start + CHUNKS_PER_PAGE)
        rows = self._archive.chunk_rows(head, start, max(0, stop - start), content=True)
        return {
            "source": head.source.key,
            "project": head.source.project,
            "version": head.version,
            "chunks": [_chunk_document(start + i, row) for i, row in enumerate(rows)],
            "next_start": stop if stop < (head.chunks if end is None else end) else None,
            "total": head.chunks,
        }

    def read(
        self,
        workspace: str,
        source: str,
        project: str | None,
        start: int,
        max_chars: int,
        version: str | None,
        *,
        verify: bool,
    ) -> Document:
        """A page of the exact text; a replaced version fails."""
        size = _page_size(max_chars)
        head = self._head(workspace, source, project)
        page = self._archive.page(head, start, size, version)
        document = {
            "source": head.source.key,
            "project": head.source.project,
            "text": page.text,
            "start": start,
            "next_start": page.next_start,
            "version": page.version,
            "total_chars": page.total_chars,
        }
        if verify:
            verdict = self._verdict(head)
            document["integrity"] = {
                name: verdict[name] for name in ("missing", "changed", "extra", "pending")
            }
        return document

    def events(self, workspace: str, source: str, project: str | None) -> Document:
        """The events read back from the text."""
        head = self._head(workspace, source, project)
        return {
            "source": head.source.key,
            "project": head.source.project,
            "version": head.version,
            "events": [
                {
                    "role": event.role,
                    "kind": event.kind,
                    "turn": event.turn,
                    "timestamp": event.timestamp,
                    "call_id": event.call_id,
                    "language": event.language,
                    "audio_start": event.audio_start,
                    "audio_end": event.audio_end,
                    "body": event.body,
                }
                for event in parse(self._archive.text(head))
            ],
        }

    def blocks(self, workspace: str, source: str, project: str | None) -> Document:
        """A source in blocks for a reader: its events with their spans."""
        head = self._head(workspace, source, project)
        return {
            "source": head.source.key,
            "project": head.source.project,
            "version": head.version,
            "title": head.meta.title,
            "blocks": [
                {
                    "start": span.start,
                    "end": span.end,
                    "role": event.role,
                    "kind": event.kind,
                    "turn": event.turn,
                    "timestamp": event.timestamp,
                    "text": event.body,
                    "topic": False,
                }
                for event, span in parse_spans(self._archive.text(head))
            ],
        }

    def verify(
        self,
        workspace: str | None,
        source: str | None,
        project: str | None,
        *,
        tell: Callable[[Mapping[str, Any]], None],
    ) -> Document:
        """
        Manifests against the index, and the rebuild of every text.

        Args:
            workspace: None: all of them.
            source: None: every source.
            project: Where the source key alone is not clear.
            tell: Told how many of how many are done.
        """
        if source is not None:
            heads = [self._head(workspace or "default", source, project)]
        else:
            heads = list(self._archive.heads(workspace=workspace, client=None))
        total: Document = {
            "sources": 0,
            "ok": 0,
            "missing": 0,
            "changed": 0,
            "extra": 0,
            "pending": 0,
            "rebuilt_exactly": 0,
            "repaired": 0,
            "problems": [],
        }
        for number, head in enumerate(heads):
            tell({"done": number, "total": len(heads)})
            verdict = self._verdict(head)
            total["sources"] += 1
            total["ok"] += verdict["ok"]
            total["rebuilt_exactly"] += verdict["rebuilt_exactly"]
            for name in ("missing", "changed", "extra"):
                total[name] += len(verdict[name])
            total["pending"] += verdict["pending"]
            if not verdict["ok"]:
                total["problems"].append(
                    {
                        "source": head.source.key,
                        "project": head.source.project,
                        "workspace": head.source.workspace,
                        **{k: verdict[k] for k in ("missing", "changed", "extra", "reasons")},
                    }
                )
        return total

    def _verdict(self, head: Head) -> Document:
        """Store and index together: what is missing, changed, extra, pending."""
        stored = self._archive.verify(head)
        missing, changed, extra = set(stored.missing), set(stored.changed), set(stored.extra)
        pending = stored.pending
        reasons = list(stored.faults)
        rebuilt = not (missing or changed or stored.faults)
        if self._finder is not None:
            expected = {row.memory_id: row.content_digest for row in self._archive.chunk_rows(head)}
            held = self._finder.membership(head.source, expected)
            missing |= held.missing
            changed |= held.changed
            extra |= held.extra
            reasons.extend(held.reasons)
        ok = rebuilt and not (missing or changed or extra)
        return {
            "ok": int(ok),
            "missing": sorted(missing),
            "changed": sorted(changed),
            "extra": sorted(extra),
            "pending": pending,
            "rebuilt_exactly": int(rebuilt),
            "reasons": reasons,
        }

    def _head(self, workspace: str, source: str, project: str | None) -> Head:
        return self._archive.resolve(workspace, source, project)


def in_project(project: str, asked: str) -> bool:
    """Whether a project is the asked one, lies below it, or ends with its name."""
    asked = asked.rstrip("/")
    return (
        project == asked
        or project.startswith(asked + "/")
        or project.replace("\\", "/").rstrip("/").endswith("/" + asked.lstrip("/"))
    )


def _described(head: Head) -> Document:
    return {
        "source": head.source.key,
        "project": head.source.project,
        "workspace": head.source.workspace,
        "client": head.meta.client,
        "title": head.meta.title,
        "version": head.version,
        "chars": head.total_chars,
        "chunks": head.chunks,
        "events": head.events,
        "updated_at": iso(head.meta.updated_ms),
        "origin": head.origin,
        "parent": head.meta.parent,
        "profile": head.profile,
        "learner": head.learner,
        "coverage": coverage_document(head.coverage),
    }


def iso(ms: int) -> str:
    """A moment as ISO 8601 in UTC, with milliseconds."""
    moment = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def coverage_document(coverage: Coverage) -> Document:
    """What a reading left out or stumbled over, as keys of the interface."""
    return {
        "omissions": dict(coverage.omissions),
        "unknown": dict(coverage.unknown),
        "zero_filled_lines": coverage.zero_filled_lines,
        "joined_lines": coverage.joined_lines,
        "repeated_records": coverage.repeated_records,
        "pending_tail_bytes": coverage.pending_tail_bytes,
    }


def _chunk_document(index: int, row: ChunkRow) -> Document:
    content = row.content or ""
    cut = len(content) > PAGE_CHARS_MAX
    return {
        "memory_id": row.memory_id,
        "index": index,
        "start": row.start,
        "end": row.end,
        "content_hash": row.content_digest.hex(),
        "content": content[:PAGE_CHARS_MAX],
        "long_event": row.long_event,
        "truncated": cut,
        "hint": f"the rest: imprintd get {row.memory_id} --start {PAGE_CHARS_MAX}" if cut else "",
    }


def _page_size(max_chars: int) -> int:
    if not PAGE_CHARS_MIN <= max_chars <= PAGE_CHARS_MAX:
        raise UsageError(f"a page has {PAGE_CHARS_MIN} to {PAGE_CHARS_MAX:,} characters")
    return max_chars
