"""
The reader of Claude Code transcripts.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from imprintd.model.reading import Reading
from imprintd.readers import claude_names
from imprintd.readers.base import Identity, Ledger, SideFiles
from imprintd.readers.claude_pass import COUNTED, STATE_VERSION, ClaudePass
from imprintd.readers.lines import frame
from imprintd.readers.memory import unpacked
from imprintd.readers.tally import Tally


class ClaudeReader:
    """JSONL sessions of Claude Code, 0.2 to 2.1, sub-agents in all three layouts."""

    client: ClassVar[str] = claude_names.CLIENT

    def identify(self, path: str, head: bytes) -> Identity | None:
        """See `Reader.identify`."""
        return claude_names.identify(path, head)

    def read(
        self,
        data: bytes,
        *,
        state: bytes,
        fresh: bool,
        final: bool,
        salvage: bool,
        ledger: Ledger,
        side: SideFiles,
    ) -> Reading:
        """See `Reader.read`."""
        framed = frame(
            data,
            final=final,
            salvage=salvage,
            is_record=claude_names.is_record,
            counted=COUNTED,
        )
        tally = Tally()
        for kind, count in framed.passed.items():
            tally.omit(COUNTED[kind], count)
        run = ClaudePass(unpacked(state, STATE_VERSION), tally, side, fresh=fresh)
        keys = [run.keys_of(record) for record in framed.records]
        wanted = [key for names in keys for key in names]
        wanted += run.leaves
        run.run(framed.records, keys, ledger.counts(wanted) if wanted else {})
        return Reading(
            events=tuple(run.events),
            consumed=framed.consumed,
            lines=framed.lines,
            state=orjson.dumps(run.pack()),
            record_keys=tuple(run.keys),
            coverage=tally.coverage(framed, len(data)),
            project=run.project,
            title=run.title,
            first_question=run.question,
            updated=run.updated,
        )
