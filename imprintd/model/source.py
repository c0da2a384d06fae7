"""
What can be learned, and what is known about it apart from its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class SourceId:
    """
    Identity of a source.

    Attributes:
        workspace: Separate worlds of one user; `default` unless asked for.
        project: For conversations the working directory in the records
            (redacted like any header field); `` where none is known.
        key: `client:session-id[:agent-id]` for a conversation: the client's
            own id, never a path, so that a moved, archived or compressed
            file is the same source.
    """

    workspace: str
    project: str
    key: str


@dataclass(frozen=True, slots=True)
class SourceMeta:
    """
    What is shown and filtered by, besides the text.

    Attributes:
        client: `claude`, `codex`, ...
        title: The client's title, else the first typed question; redacted.
        parent: Source key of the conversation that started this one, if any.
        updated_ms: The source's own update time, ms since the epoch, UTC.
        language: BCP 47 tag where the client gives one.
    """

    client: str
    title: str = ""
    parent: str | None = None
    updated_ms: int = 0
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """
    What a reading left out or stumbled over, counted from the first byte on.

    Attributes:
        omissions: Opaque parts by kind (`signature`, `image`, `encrypted`,
            `damaged`, `recalled`, ...): counted, never kept.
        unknown: Record types that the reader has no rule for, by name.
        zero_filled_lines: Lines of NUL bytes that a crash left.
        joined_lines: Lines that held two or more whole records.
        repeated_records: Records met again under the same id in this source.
        pending_tail_bytes: An unfinished last line; not cumulative.
    """

    omissions: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    zero_filled_lines: int = 0
    joined_lines: int = 0
    repeated_records: int = 0
    pending_tail_bytes: int = 0

    def plus(self, later: Coverage) -> Coverage:
        """Counts of this reading followed by a later one of the same source."""
        return Coverage(
            omissions=_added(self.omissions, later.omissions),
            unknown=_added(self.unknown, later.unknown),
            zero_filled_lines=self.zero_filled_lines + later.zero_filled_lines,
            joined_lines=self.joined_lines + later.joined_lines,
            repeated_records=self.repeated_records + later.repeated_records,
            pending_tail_bytes=later.pending_tail_bytes,
        )


def _added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    total = dict(first)
    for name, count in second.items():
        total[name] = total.get(name, 0) + count
    return total
