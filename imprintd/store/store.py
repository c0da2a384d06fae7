"""
The store of one data directory, opened.

One writer thread, a read-only connection for every thread that reads, and a
codec that knows what is inside a block.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from imprintd.clock import Clock
from imprintd.errors import Corrupt, ResourceError
from imprintd.model.snapshot import Chunk, Head
from imprintd.store import inspection
from imprintd.store.changing import Writing
from imprintd.store.connection import (
    FILE_NAME,
    Connection,
    copy_to,
    open_reader,
    open_writer,
    prepare_folder,
    quick_check,
    translated,
)
from imprintd.store.reading import Reading
from imprintd.store.records import Codec, Statistics, StoreVerdict
from imprintd.store.schema import SCHEMA, check_readable, migrate
from imprintd.store.writer import Writer

SUFFIXES: Final = ("", "-wal", "-shm")
"""Files that make up one database."""


class Store(Reading, Writing):
    """
    Everything that is kept, and the only way to it.

    Attributes:
        was_unclean: The last writer did not close in order; `quick_check` is due.
    """

    was_unclean: bool = False

    @classmethod
    def open(
        cls,
        data_dir: Path,
        clock: Clock,
        *,
        codec: Codec,
        read_only: bool = False,
        vfs: str | None = None,
        allow_network: bool = False,
    ) -> Store:
        """
        Open the database of a data directory; made and migrated unless `read_only`.

        Only one process may open it for writing: whoever holds the lock of
        the data directory.

        Args:
            codec: Opens and verifies blocks.
            read_only: Works beside a daemon and without one.
            vfs: Name of an SQLite VFS, for tests.
            allow_network: Use a network file system all the same.

        Raises:
            NotKnown: Read-only, and there is no database yet.
            SchemaTooNew: A newer imprintd wrote it.
            Corrupt: The file is damaged; see `set_aside`.
            ConfigError: The folder is on a network file system.
            ResourceError: It cannot be opened.
        """
        if read_only:
            file = data_dir / FILE_NAME
            connection = open_reader(file, vfs=vfs)
            try:
                check_readable(connection)
                store = cls(file, clock, codec, None, vfs)
                store._identify(connection)
            finally:
                connection.close()
            return store
        file = prepare_folder(data_dir, allow_network=allow_network)
        connection = open_writer(file, vfs=vfs)
        try:
            found = migrate(connection, clock.wall_ms())
            store = cls(file, clock, codec, None, vfs)
            store._identify(connection)
            with translated():
                clean = connection.execute("SELECT clean FROM device").get
                store.was_unclean = bool(found) and not clean
                connection.execute("UPDATE device SET clean = 0")
        except BaseException:
            connection.close()
            raise
        store._writer_or_none = Writer(connection)
        return store

    def close(self) -> None:
        """Write what waits, mark the end as orderly, close every connection."""
        self._close_readers()
        if self._writer_or_none is not None:
            self._writer_or_none.close(_mark_clean)

    def verify(self, head: Head) -> StoreVerdict:
        """
        Compare a snapshot's text with its hashes, its manifest and its chunk rows.

        Raises:
            NotKnown: The source has no full text.
            VersionReplaced: It has moved on from that version.
        """
        with self._reading() as connection:
            return inspection.verify(connection, self._codec, head)

    def repair_chunks(self, head: Head, chunks: Sequence[Chunk] | None = None) -> int:
        """
        Make the chunk rows of a snapshot what its manifest root demands.

        Args:
            chunks: The whole manifest, cut anew from the text. None: take the
                stored spans and work out digests and ids again.

        Returns:
            Rows written anew.

        Raises:
            IntegrityError: They do not give the root either.
        """
        return self._writer.run(
            lambda connection: inspection.repair_chunks(connection, self._codec, head, chunks)
        )

    def audit(self) -> list[str]:
        """References that are counted wrong, over the whole database; empty when all is well."""
        with self._reading() as connection:
            return inspection.audit(connection)

    def statistics(self) -> Statistics:
        """Counts and sizes."""
        with self._reading() as connection:
            return inspection.statistics(connection, self.file, SCHEMA)

    def quick_check(self) -> list[str]:
        """What SQLite's own check finds wrong; empty when all is well."""
        with self._reading() as connection:
            return quick_check(connection)

    def backup(self, target: Path) -> None:
        """
        A consistent, compact copy while everything goes on.

        A store opened from a copy begins with `renew_index_id`.

        Raises:
            ResourceError: The target exists or cannot be written.
        """
        connection = open_reader(self.file, vfs=self._vfs)
        try:
            copy_to(connection, target)
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _identify(self, connection: Connection) -> None:
        with translated():
            row = connection.execute("SELECT id, index_id FROM device").fetchone()
        if row is None:
            raise Corrupt(f"database {self.file} does not know its device")
        self.device, self.index_id = row


def set_aside(data_dir: Path, clock: Clock) -> list[Path]:
    """
    Move a damaged database away under a dated name; nothing is deleted.

    Returns:
        The files as they are called now.

    Raises:
        ResourceError: A file cannot be renamed.
    """
    moment = dt.datetime.fromtimestamp(clock.wall_ms() / 1000, dt.UTC)
    mark = f".corrupt-{moment:%Y%m%d-%H%M%S}"
    moved: list[Path] = []
    try:
        for suffix in SUFFIXES:
            file = data_dir / (FILE_NAME + suffix)
            if file.exists():
                moved.append(file.rename(data_dir / (FILE_NAME + mark + suffix)))
    except OSError as error:
        raise ResourceError(f"{data_dir}: {error.strerror}") from None
    return moved


def _mark_clean(connection: Connection) -> None:
    connection.execute("UPDATE device SET clean = 1")
