"""
What reading and writing stand on: the connections of one open store.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from imprintd.clock import Clock
from imprintd.errors import ResourceError
from imprintd.store.connection import Connection, open_reader, reading
from imprintd.store.records import Codec
from imprintd.store.writer import Writer


class _Reader:
    """One thread's read-only connection; closed when the thread ends."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class StoreCore:
    """
    The database file, the writer if there is one, a reader for each thread.

    Attributes:
        file: The database file.
        device: This device.
        index_id: The life of the change log.
    """

    file: Path
    device: str
    index_id: str

    def __init__(
        self, file: Path, clock: Clock, codec: Codec, writer: Writer | None, vfs: str | None
    ) -> None:
        self.file = file
        self._clock = clock
        self._codec = codec
        self._writer_or_none = writer
        self._vfs = vfs
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._readers_lock = threading.Lock()
        self._open = True

    @property
    def _writer(self) -> Writer:
        if self._writer_or_none is None:
            raise ResourceError("the store was opened for reading only")
        return self._writer_or_none

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """The calling thread's connection, in a transaction that sees one state throughout."""
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._readers_lock:
                if not self._open:
                    raise ResourceError("the store is closed")
                reader = _Reader(open_reader(self.file, vfs=self._vfs))
                self._readers.add(reader)
            self._local.reader = reader
        if not self._open:
            raise ResourceError("the store is closed")
        with reading(reader.connection) as connection:
            yield connection

    def _close_readers(self) -> None:
        with self._readers_lock:
            self._open = False
            for reader in list(self._readers):
                # one that is in the middle of a read closes with its thread
                if not reader.connection.in_transaction:
                    reader.connection.close()
