"""
The reader of Codex CLI rollouts.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from imprintd.model.reading import Reading
from imprintd.readers import codex_names
from imprintd.readers.base import Identity, Ledger, SideFiles
from imprintd.readers.codex_pass import STATE_VERSION, CodexPass
from imprintd.readers.lines import frame
from imprintd.readers.memory import unpacked
from imprintd.readers.tally import Tally


class CodexReader:
    """Rollouts of Codex, with and without envelopes, plain or already decompressed."""

    client: ClassVar[str] = codex_names.CLIENT

    def identify(self, path: str, head: bytes) -> Identity | None:
        """See `Reader.identify`."""
        return codex_names.identify(path, head)

    def read(
        self,
        data: bytes,
        *,
        state: bytes,
        fresh: bool,
        final: bool,
        salvage: bool,
        ledger: Ledger,
        side: SideFiles,  # noqa: ARG002 (Codex keeps no side files)
    ) -> Reading:
        """See `Reader.read`."""
        framed = frame(data, final=final, salvage=salvage, is_record=codex_names.is_record)
        tally = Tally()
        run = CodexPass(unpacked(state, STATE_VERSION), tally, fresh=fresh)
        # without ids only a fresh pass can tell a repeated record from a resend
        keys = [run.key_of(record) for record in framed.records] if fresh else []
        run.run(framed.records, keys, ledger.counts(keys) if keys else {})
        return Reading(
            events=tuple(run.events),
            consumed=framed.consumed,
            lines=framed.lines,
            state=orjson.dumps(run.pack()),
            record_keys=tuple(run.keys),
            coverage=tally.coverage(framed, len(data)),
            project=run.project,
            first_question=run.question,
            updated=run.updated,
        )
