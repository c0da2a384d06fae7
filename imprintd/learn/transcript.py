"""
Bytes of a transcript file: where to continue, and the next piece of it.

Opens, reads and closes; never holds a descriptor between readings (a held one
keeps deleted files on disk). Compressed transcripts are read as the stream
that they hold, so cursors mean the same bytes either way.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final, Self

import zstandard

from imprintd.errors import Refused, SourceError
from imprintd.model.reading import Cursor

FINGERPRINT_BYTES: Final = 1024
ANCHOR_BYTES: Final = 64
HEAD_BYTES: Final = 64 * 1024
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_WINDOW_MAX: Final = 128 * 1024**2
"""Windows of `zstd --long=27` are met in the field; larger ones are refused."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What the file system says of an open file."""

    device: int
    inode: int
    size: int
    mtime_ns: int


class Transcript:
    """
    An open transcript file; use as a context manager.

    Raises:
        SourceError: It cannot be opened or is no regular file.
        Refused: It is larger than `file_bytes_max`.
    """

    def __init__(self, path: str, file_bytes_max: int) -> None:
        self.path = path
        self.bytes_read = 0
        self._stream: IO[bytes] | None = None
        self._position = 0
        try:
            # O_NONBLOCK: opening a FIFO must not hang
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise SourceError(
                f"cannot open: {error.strerror}",
                reason="unreadable",
                remedy="check that it exists and that you may read it",
            ) from None
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise SourceError("not a regular file", reason="not-a-file")
        self.state = FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if found.st_size > file_bytes_max:
            self.close()
            raise Refused(
                f"the file has {found.st_size:,} bytes, more than the {file_bytes_max:,} allowed",
                reason="file-too-large",
                remedy="raise [reading] file_bytes_max if it is meant to be learned",
            )
        self.compressed = self._file.read(4) == ZSTD_MAGIC

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def head(self) -> bytes:
        """Up to 64 KiB of the (decompressed) start."""
        return self._at(0, HEAD_BYTES)

    def continues(self, cursor: Cursor, head: bytes) -> bool:
        """Tell whether this file still begins with everything the cursor consumed."""
        if not self.compressed and self.state.size < cursor.offset:
            return False
        prefix = head[: min(FINGERPRINT_BYTES, cursor.offset)]
        if len(prefix) < min(FINGERPRINT_BYTES, cursor.offset):
            return False
        if hashlib.sha256(prefix).digest() != cursor.fingerprint:
            return False
        length = min(ANCHOR_BYTES, cursor.offset)
        anchor = self._at(cursor.offset - length, length)
        return len(anchor) == length and hashlib.sha256(anchor).digest() == cursor.anchor

    def pieces(self, offset: int, piece_bytes: int) -> Iterator[bytes]:
        """
        The bytes from an offset on, in pieces.

        Raises:
            SourceError: The compressed stream is damaged; what came before it
                was given.
        """
        self._seek(offset)
        while piece := self._take(piece_bytes):
            yield piece

    def cursor(self, offset: int, lines: int) -> Cursor:
        """The durable place just after `offset` consumed bytes."""
        length = min(ANCHOR_BYTES, offset)
        return Cursor(
            path=self.path,
            device=self.state.device,
            inode=self.state.inode,
            offset=offset,
            fingerprint=hashlib.sha256(self._at(0, min(FINGERPRINT_BYTES, offset))).digest(),
            anchor=hashlib.sha256(self._at(offset - length, length)).digest(),
            size=self.state.size,
            mtime_ns=self.state.mtime_ns,
            lines=lines,
            compressed=self.compressed,
        )

    def _at(self, offset: int, length: int) -> bytes:
        if not length:
            return b""
        self._seek(offset)
        return self._take(length)

    def _seek(self, offset: int) -> None:
        if not self.compressed:
            self._file.seek(offset)
            self._position = offset
            return
        if self._stream is None or self._position > offset:
            self._file.seek(0)
            self._stream = zstandard.ZstdDecompressor(
                max_window_size=ZSTD_WINDOW_MAX
            ).stream_reader(self._file, closefd=False, read_across_frames=True)
            self._position = 0
        while self._position < offset and self._take(min(1 << 20, offset - self._position)):
            pass

    def _take(self, length: int) -> bytes:
        source = self._stream if self.compressed else self._file
        assert source is not None
        pieces: list[bytes] = []
        wanted = length
        while wanted:
            try:
                piece = source.read(wanted)
            except zstandard.ZstdError as error:
                raise SourceError(
                    f"the compressed stream is damaged: {error}",
                    reason="damaged-compression",
                    remedy="restore the file; what was learned before stays",
                ) from None
            except OSError as error:
                raise SourceError(f"cannot read: {error.strerror}", reason="unreadable") from None
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        taken = b"".join(pieces)
        self._position += len(taken)
        self.bytes_read += len(taken)
        return taken
