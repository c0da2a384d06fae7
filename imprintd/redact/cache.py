"""
Compiled rules on disk: private files that carry their own hash.

The only module of the room that touches the disk. What is read back must agree
with the hash in front of it and with the key it was written for; anything else
is as good as absent. A cache that cannot be written is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path


def load(folder: Path | None, name: str, key: str) -> bytes | None:
    """What was saved under this name and key, or None."""
    if folder is None:
        return None
    try:
        raw = (folder / name).read_bytes()
    except OSError:
        return None
    return raw[32:] if raw[:32] == _hash(key, raw[32:]) else None


def save(folder: Path | None, name: str, key: str, content: bytes) -> None:
    """Write privately (0600 in a 0700 folder) and whole."""
    if folder is None:
        return
    with contextlib.suppress(OSError):
        private(folder)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".rules-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_hash(key, content) + content)
            Path(temporary).replace(folder / name)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def private(folder: Path) -> Path:
    """The folder, made with mode 0700 if it did not exist."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def processor() -> str:
    """What a compiled database depends on besides its rules: the processor's abilities."""
    with (
        contextlib.suppress(OSError),
        Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines,
    ):
        for line in lines:
            if line.startswith(("flags", "Features")):
                return line
    return os.uname().machine


def _hash(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()
