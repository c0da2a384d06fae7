"""
Readers: a client's transcript bytes as events, pure and one module a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from imprintd.readers.base import Identity, Reader, with_stem
from imprintd.readers.claude import ClaudeReader
from imprintd.readers.codex import CodexReader

READERS: Final[Mapping[str, Reader]] = {
    ClaudeReader.client: ClaudeReader(),
    CodexReader.client: CodexReader(),
}
"""Every reader by its client's name."""


def identify(path: str, head: bytes) -> tuple[Reader, Identity] | None:
    """
    Find the reader of a file and the source it is.

    Args:
        path: Where it lies, `/`-separated.
        head: Up to 64 KiB of its (decompressed) start.

    Returns:
        None if no reader knows the format.
    """
    for reader in READERS.values():
        identity = reader.identify(path, head)
        if identity is not None:
            return reader, identity
    return None


__all__ = ["READERS", "identify", "with_stem"]
