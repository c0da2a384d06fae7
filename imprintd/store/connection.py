"""
The one module that knows apsw: how the database is opened, guarded and asked.

Everything else in the room works on the `Connection` handed out here, inside
`writing` or `reading`, and never sees an apsw exception: `translated` turns
them into named errors at this edge.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

from imprintd.errors import ConfigError, Corrupt, IntegrityError, NotKnown, ResourceError

Connection = apsw.Connection

FILE_NAME: Final = "source-snapshots.sqlite3"

BUSY_MS: Final = 10_000
"""How long one process waits for another; our own writer never competes."""

LOG_PAGES: Final = 256
"""A checkpoint is tried whenever the log holds this much: 1 MiB."""

LOG_BYTES_KEPT: Final = 1024 * 1024
"""The log shrinks to this after a checkpoint; one large publication may grow it."""

NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "v9fs", "afs", "ncpfs", "ceph", "fuse.sshfs"}
)
"""Where the shared memory that a WAL needs cannot work."""


def prepare_folder(
    data_dir: Path, *, allow_network: bool = False, mounts: str | None = None
) -> Path:
    """
    Make the data directory (0700) and the database file (0600), or check them.

    Args:
        data_dir: Where everything of one daemon lies.
        allow_network: Open it on a network file system all the same.
        mounts: Text of /proc/mounts, for tests; None reads it.

    Returns:
        Path of the database file, which may be empty.

    Raises:
        ConfigError: The folder lies on a network file system.
        ResourceError: The folder or the file cannot be made.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        kind = file_system_of(data_dir, _mounts() if mounts is None else mounts)
        if kind in NETWORK_FILE_SYSTEMS and not allow_network:
            raise ConfigError(
                f"data directory {data_dir} lies on a network file system ({kind})",
                remedy="choose a local folder with --data-dir; SQLite's log needs shared memory",
            )
        if stat.S_IMODE(data_dir.stat().st_mode) != 0o700:
            data_dir.chmod(0o700)
        file = data_dir / FILE_NAME
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        if stat.S_IMODE(file.stat().st_mode) != 0o600:
            file.chmod(0o600)
    except OSError as error:
        raise ResourceError(
            f"data directory {data_dir}: {error.strerror}", remedy="check its owner and rights"
        ) from None
    return file


def open_writer(file: Path, *, vfs: str | None = None) -> Connection:
    """
    The only read-write connection: WAL, every commit synced, deleted bytes zeroed.

    Raises:
        Corrupt: The file is no database or a damaged one.
        ResourceError: It cannot be opened or is locked by another process.
    """
    with translated(file):
        connection = apsw.Connection(
            os.fspath(file),
            flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
            vfs=vfs,
        )
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.pragma("secure_delete", 1)
            _use_log(connection, file)
            connection.pragma("synchronous", "full")
            connection.pragma("foreign_keys", 1)
            connection.pragma("journal_size_limit", LOG_BYTES_KEPT)
            connection.pragma("wal_autocheckpoint", LOG_PAGES)
            connection.pragma("cache_size", -8192)
            connection.pragma("temp_store", "memory")
        except BaseException:
            connection.close()
            raise
    return connection


def _use_log(connection: Connection, file: Path) -> None:
    if connection.pragma("journal_mode", "wal") != "wal":
        raise ResourceError(f"{file} cannot use a write-ahead log")


def open_reader(file: Path, *, vfs: str | None = None) -> Connection:
    """
    A read-only connection; works beside a daemon and without one.

    Raises:
        NotKnown: There is no database yet.
        Corrupt, ResourceError: As for the writer.
    """
    if not file.exists() or not file.stat().st_size:
        raise NotKnown(
            f"nothing has been learned yet: {file.parent} holds no database",
            remedy="start the daemon or learn a transcript first",
        )
    with translated(file):
        connection = apsw.Connection(os.fspath(file), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("query_only", 1)
        connection.pragma("cache_size", -2048)
    return connection


@contextmanager
def writing(connection: Connection) -> Iterator[Connection]:
    """
    One transaction that may write; commits at the end, else leaves no trace.

    Raises:
        ResourceError, Corrupt, IntegrityError: Translated; rolled back.
    """
    with translated():
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # a full disk may already have rolled back by itself
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def reading(connection: Connection) -> Iterator[Connection]:
    """One transaction that sees a single state of the database throughout."""
    with translated():
        if connection.in_transaction:
            yield connection
            return
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")


@contextmanager
def translated(file: Path | None = None) -> Iterator[None]:
    """Turn apsw's exceptions into errors of ours; messages hold no stored data."""
    where = f"database {file}" if file else "the database"
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Corrupt(
            f"{where} is damaged: {error}",
            remedy="set it aside with `imprintd doctor` and learn again, or restore a backup",
        ) from None
    except apsw.FullError:
        raise ResourceError(f"{where}: the disk is full", remedy="free some space") from None
    except (apsw.BusyError, apsw.LockedError):
        raise ResourceError(f"{where} is locked by another process") from None
    except apsw.ConstraintError as error:
        raise IntegrityError(f"{where} refused a row: {error}") from None
    except (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.NoMemError) as error:
        raise ResourceError(f"{where}: {error}", remedy="check disk, rights and memory") from None


def all_of(connection: Connection, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """All rows that a statement gives."""
    return connection.execute(statement, values).fetchall()


def first_of(connection: Connection, statement: str, values: Any = ()) -> tuple[Any, ...] | None:
    """The first row that a statement gives, if any."""
    return connection.execute(statement, values).fetchone()


def value_of(connection: Connection, statement: str, values: Any = ()) -> Any:
    """The first column of the first row, None where there is no row."""
    found = connection.execute(statement, values).fetchone()
    return None if found is None else found[0]


def checkpoint(connection: Connection, *, truncate: bool = False) -> bool:
    """
    Move the log into the database; True when nothing is left in the log.

    Passive unless told otherwise, so that readers are never waited for.
    """
    mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
    with translated():
        try:
            pages, moved = connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return False
    return pages == moved


def quick_check(connection: Connection) -> list[str]:
    """What SQLite's own check finds wrong, at most 20 lines; empty when all is well."""
    with translated():
        lines = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
    return [] if lines == ["ok"] else lines


def copy_to(connection: Connection, target: Path) -> None:
    """
    A consistent, compact copy of the database while it is in use.

    Takes a connection of its own: it may write afterwards, if its flags let it.

    Raises:
        ResourceError: The target exists or cannot be written.
    """
    if target.exists():
        raise ResourceError(f"{target} exists already", remedy="name a new file")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with translated():
            connection.pragma("query_only", 0)
            connection.execute("VACUUM INTO ?", (os.fspath(partial),))
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        raise ResourceError(f"{target}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def file_system_of(path: Path, mounts: str) -> str:
    """Type of the file system that holds a path, by /proc/mounts; `` where unknown."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # a later line hides an earlier one on the same point
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def _mounts() -> str:
    try:
        return Path("/proc/mounts").read_text("utf-8", "surrogateescape")
    except OSError:
        return ""
