"""
Keep a model in memory only while it is used.

A loaded model costs about 200 MB. `LazyEmbedder` loads it when it is asked for
and lets it go after a quiet while; the clock is handed in and whoever owns the
object ticks it.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path

from imprintd.clock import Clock
from imprintd.learn.embed import Embedder
from imprintd.learn.model import ModelInfo, read_card


class LazyEmbedder:
    """
    An `Embedder` that comes and goes.

    Args:
        folder: An installed model; need not exist before the first use.
        threads: Threads of one run.
        idle_s: Seconds without `get` after which `tick` unloads.
        clock: Monotonic time is what counts.
    """

    def __init__(self, folder: Path, threads: int, idle_s: float, clock: Clock) -> None:
        self._folder = folder
        self._threads = threads
        self._idle_s = idle_s
        self._clock = clock
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._used = 0.0

    @property
    def info(self) -> ModelInfo:
        """
        The model's description, read without loading it.

        Raises:
            ModelError: The model is missing or its description damaged.
        """
        embedder = self._embedder
        return embedder.info if embedder is not None else read_card(self._folder)

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._embedder is not None

    def get(self) -> Embedder:
        """
        The loaded model; use it and let it go, do not keep it.

        Raises:
            ModelError: The model is missing, damaged, or cannot be run.
        """
        with self._lock:
            if self._embedder is None:
                self._embedder = Embedder(self._folder, self._threads)
            self._used = self._clock.monotonic()
            return self._embedder

    def tick(self) -> bool:
        """Unload after `idle_s` of quiet; True if that happened now."""
        with self._lock:
            if self._embedder is None or self._clock.monotonic() - self._used < self._idle_s:
                return False
            self._drop()
            return True

    def unload(self) -> None:
        """Unload now; the next `get` loads again."""
        with self._lock:
            if self._embedder is not None:
                self._drop()

    def _drop(self) -> None:
        self._embedder = None
        gc.collect()
        _give_back()


def _give_back() -> None:
    """Ask the allocator to return freed pages; glibc only, elsewhere nothing."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return
