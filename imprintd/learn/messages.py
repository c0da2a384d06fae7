"""
What the daemon and its worker process say to each other.

Length-prefixed pickles over the private pipe between a parent and the child it
started; nothing from outside ever reaches this decoder.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any, Final

from imprintd.config import Config
from imprintd.model.snapshot import Point

HEADER: Final = struct.Struct(">I")
MESSAGE_BYTES_MAX: Final = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Setup:
    """
    The first message: what the worker needs to know.

    Attributes:
        data_dir: Absolute path.
        workspace: Where new sources belong.
        excluded: Projects to leave out, besides those of the configuration.
    """

    data_dir: str
    workspace: str
    config: Config
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Owed:
    """
    One stored content that still lacks vectors.

    Attributes:
        have: Windows whose vectors are stored already.
    """

    content_digest: bytes
    content: str
    have: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class EmbedBatch:
    """
    Contents to embed.

    Attributes:
        first_only: Only the first window of each; the rest comes later.
    """

    contents: tuple[Owed, ...]
    first_only: bool


@dataclass(frozen=True, slots=True)
class Embedded:
    """
    Vectors made.

    Attributes:
        points: The vectors.
        windows: Windows embedded.
        reused: Windows whose vector was known already.
        cpu_s: Processor time it took.
        error: Why nothing was made, or empty.
    """

    points: tuple[Point, ...] = ()
    windows: int = 0
    reused: int = 0
    cpu_s: float = 0.0
    error: str = ""


def encode(message: object) -> bytes:
    """One message with its length in front."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The message of one body."""
    return pickle.loads(body)  # noqa: S301 - our own child's words over a private pipe
