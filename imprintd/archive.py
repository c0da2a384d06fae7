"""
The store joined with the rooms that use it: the text codec, the pipeline's
base, the models folder. Shared by the daemon, its worker and work without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from imprintd.clock import Clock
from imprintd.config import Config, default_cache_dir
from imprintd.errors import ConfigError, ModelError
from imprintd.learn.model import read_card
from imprintd.learn.pipeline import Base
from imprintd.learn.vectors import rules_of
from imprintd.model.snapshot import Chunk
from imprintd.model.source import SourceId
from imprintd.ops.lock import private_folder
from imprintd.redact import Redactor
from imprintd.store import Store
from imprintd.text import blocks
from imprintd.text.chunking import ChunkNamer

DEFAULT_MODEL: Final = "minilm-l6-v2"
MODELS: Final = "models"
CACHE: Final = "cache"
ACTIVE_MODEL: Final = "active-model"
"""File in the models folder that names the model chosen by `imprintd model use`."""


class TextCodec:
    """What the store must know of blocks and chains, from the text room."""

    def unpack(self, packed: bytes, digest: bytes) -> bytes:
        return blocks.unpack(packed, digest)

    def root(self, stored: Sequence[tuple[bytes, int]], total_chars: int) -> bytes:
        link = blocks.CHAIN_START
        for digest, size in stored:
            link = blocks.chain(link, digest, size)
        return blocks.close_chain(link, len(stored), total_chars, sum(size for _, size in stored))

    def manifest_root(self, chunks: Sequence[Chunk], total_chars: int, total_bytes: int) -> bytes:
        link = blocks.CHAIN_START
        for chunk in chunks:
            link = blocks.chain_chunk(link, chunk)
        return blocks.close_chain(link, len(chunks), total_chars, total_bytes)

    def memory_id(self, source: SourceId, start: int, end: int, content_digest: bytes) -> str:
        return ChunkNamer(source).memory_id(start, end, content_digest)


def open_store(data_dir: Path, clock: Clock, *, read_only: bool = False) -> Store:
    """The store of a data directory, able to open and verify its texts."""
    return Store.open(data_dir, clock, codec=TextCodec(), read_only=read_only)


def redactor(data_dir: Path, environ: Mapping[str, str]) -> Redactor:
    """
    The redactor, its compiled rules kept in the user's cache directory.

    Compiling takes some 20 s once; where that folder cannot be written (a
    hardened service), the data directory keeps them.
    """
    for folder in (default_cache_dir(environ), data_dir / CACHE):
        try:
            private_folder(folder)
            return Redactor(folder / "redact")
        except (OSError, ConfigError):
            continue
    return Redactor(None)


def base_of(store: Store, source: SourceId) -> Base | None:
    """The pipeline's base of a stored source, at constant cost."""
    data = store.base_of(source)
    if data is None:
        return None
    return Base(
        version=data.version,
        meta=data.meta,
        profile=data.profile,
        tail=data.tail,
        coverage=data.coverage,
        open_block=data.open_block,
        open_text=data.open_text,
    )


def model_folder(config: Config, data_dir: Path) -> Path | None:
    """Folder of the model to use, installed or not; None: `model = "none"`."""
    models = data_dir / MODELS
    name = config.embed.model
    if name == "none":
        return None
    if not name:
        try:
            name = (models / ACTIVE_MODEL).read_text(encoding="utf-8").strip()
        except OSError:
            name = ""
    return models / (name or DEFAULT_MODEL)


def active_rules(config: Config, data_dir: Path) -> str | None:
    """Rules of the vectors to be made; None while no model is installed."""
    folder = model_folder(config, data_dir)
    if folder is None:
        return None
    try:
        return rules_of(read_card(folder).rules, config.chunker)
    except ModelError:
        return None
