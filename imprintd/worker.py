"""
The worker process: reads, redacts, cuts and embeds for the daemon.

Started as `python -m imprintd.worker`; its first message says what to work on. It reads the store, never writes it, and ends with its pipe.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

from imprintd.archive import base_of, model_folder, open_store, redactor
from imprintd.clock import SystemClock
from imprintd.learn.intake import Intake
from imprintd.learn.messages import HEADER, EmbedBatch, Embedded, Setup, decode, encode
from imprintd.learn.ports import Job, Outcome
from imprintd.ops.power import idle_io, lower_priority


class Hands:
    """Does the jobs; used in the worker process and, without a daemon, in this one."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._data_dir = Path(setup.data_dir)
        self._clock = SystemClock()
        self._store = open_store(self._data_dir, self._clock, read_only=True)
        config = setup.config
        self._intake = Intake(
            self._store,
            partial(base_of, self._store),
            redactor(self._data_dir, os.environ),
            config.chunker,
            config.reading,
            workspace=setup.workspace,
            excluded=(*config.watch.exclude_projects, *setup.excluded),
        )
        self._maker: Any = None

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def learn(self, job: Job) -> Outcome:
        """Read what is new in one file."""
        return self._intake.learn(job)

    def embed(self, batch: EmbedBatch) -> Embedded:
        """Make vectors; without a model the answer says so."""
        folder = model_folder(self._setup.config, self._data_dir)
        if folder is None or not folder.is_dir():
            return Embedded(error="no embedding model is installed: `imprintd model install`")
        if self._maker is None:
            from imprintd.learn.embed_lazy import LazyEmbedder
            from imprintd.learn.vectors import VectorMaker

            embed = self._setup.config.embed
            lazy = LazyEmbedder(folder, embed.threads, embed.idle_unload_s, self._clock)
            self._maker = VectorMaker(lazy, self._setup.config.chunker)
        made: Embedded = self._maker.make(batch)
        return made


def serve(incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Answer messages until the pipe closes."""
    setup = _receive(incoming)
    if setup is None:
        return
    assert isinstance(setup, Setup)
    hands = Hands(setup)
    outgoing.write(encode("ready"))
    outgoing.flush()
    try:
        while (message := _receive(incoming)) is not None:
            if isinstance(message, Job):
                answer: object = hands.learn(message)
            else:
                assert isinstance(message, EmbedBatch)
                answer = hands.embed(message)
            outgoing.write(encode(answer))
            outgoing.flush()
    finally:
        hands.close()


def _receive(incoming: IO[bytes]) -> Any:
    header = incoming.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    body = incoming.read(length)
    return decode(body) if len(body) == length else None


def main() -> None:
    """Entry point of the process."""
    lower_priority()
    idle_io()

    # whatever a library prints must not get between the messages
    outgoing = sys.stdout.buffer
    sys.stdout = sys.stderr
    serve(sys.stdin.buffer, outgoing)


if __name__ == "__main__":
    main()
