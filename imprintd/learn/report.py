"""
What one `learn` did, added up outcome by outcome, as the interface's document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from imprintd.learn.ports import Outcome
from imprintd.model.snapshot import Head
from imprintd.model.source import Coverage

FAILED_LISTED_MAX = 1000
"""Failed files that are listed one by one; the rest are only counted."""


@dataclass(slots=True)
class LearnReport:
    """
    Adds up outcomes.

    Attributes:
        files: Files to be looked at.
        bytes: Their sizes, for the estimate.
    """

    files: int = 0
    bytes: int = 0
    done: int = 0
    done_bytes: int = 0
    learned: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed_count: int = 0
    embedded: int = 0
    reused: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    heads: dict[str, Head] = field(default_factory=dict)
    _pending_tail_bytes: int = 0
    _keys: set[str] = field(default_factory=set)

    def take(self, outcome: Outcome, head: Head | None, size: int) -> None:
        """Add one outcome."""
        self.done += 1
        self.done_bytes += size
        if outcome.key:
            self._keys.add(outcome.key)
        if outcome.status == "learned":
            self.learned += 1
        elif outcome.status == "unchanged":
            self.unchanged += 1
        elif outcome.status == "failed":
            self.failed_count += 1
            if len(self.failed) < FAILED_LISTED_MAX:
                self.failed.append(
                    {
                        "path": outcome.job.path,
                        "line": outcome.line,
                        "reason": outcome.reason,
                        "message": outcome.message,
                        "remedy": outcome.remedy,
                    }
                )
        else:
            self.skipped += 1
        for note in outcome.notes:
            self.notes[note] = self.notes.get(note, 0) + 1
        self._pending_tail_bytes += outcome.coverage.pending_tail_bytes
        self.coverage = self.coverage.plus(outcome.coverage)
        if head is not None:
            self.heads[head.source.key] = head

    def progress(self) -> dict[str, Any]:
        """How far it is."""
        return {
            "files": self.files,
            "done": self.done,
            "bytes": self.bytes,
            "done_bytes": self.done_bytes,
            "failed": self.failed_count,
        }

    def document(self, seconds: float) -> dict[str, Any]:
        """The whole, with the interface's keys."""
        heads = self.heads.values()
        return {
            "learned": self.learned,
            "unchanged": self.unchanged,
            "skipped": self.skipped,
            "failed": self.failed,
            "failed_count": self.failed_count,
            "sources": len(self._keys),
            "events": sum(head.events for head in heads),
            "chunks": sum(head.chunks for head in heads),
            "chars": sum(head.total_chars for head in heads),
            "embedded": self.embedded,
            "reused": self.reused,
            "omissions": dict(self.coverage.omissions),
            "unknown": dict(self.coverage.unknown),
            "zero_filled_lines": self.coverage.zero_filled_lines,
            "joined_lines": self.coverage.joined_lines,
            "repeated_records": self.coverage.repeated_records,
            "pending_tail_bytes": self._pending_tail_bytes,
            "notes": self.notes,
            "seconds": round(seconds, 3),
        }
