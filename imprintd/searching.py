"""
Search joined with the store and with the model that turns questions into vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprintd.archive import active_rules, model_folder
from imprintd.clock import SystemClock
from imprintd.config import Config
from imprintd.learn.embed_lazy import LazyEmbedder
from imprintd.model.source import SourceId
from imprintd.recall.ports import Question
from imprintd.search.engine import Search
from imprintd.search.ports import Held, Results
from imprintd.store import Store

QUESTION_THREADS = 1


class Finder:
    """
    Search over one store, with the active model if one is installed.

    Args:
        store: The truth.
        data_dir: Caches lie below it.
        config: Which model.
    """

    def __init__(self, store: Store, data_dir: Path, config: Config) -> None:
        self._data_dir = data_dir
        self._config = config
        self._embedder: LazyEmbedder | None = None
        self._rules: str | None = None
        self._search = Search(store, data_dir)
        self._choose_model()

    def refresh(self) -> None:
        """Catch up with the store."""
        self._choose_model()
        self._search.refresh()

    def query(self, question: Question) -> Results:
        """Answer one question."""
        return self._search.query(question)

    def membership(self, source: SourceId, expected: Mapping[str, bytes]) -> Held:
        """What the caches hold of a source, against what they should."""
        return self._search.membership(source, expected)

    def rebuild(self) -> None:
        """Throw the caches away and build them from the store."""
        self._search.repair()

    def tick(self) -> bool:
        """Let the model go when it is idle; True if it went now."""
        return self._embedder is not None and self._embedder.tick()

    def status(self) -> dict[str, Any]:
        """What search stands on."""
        return {
            "change": self._search.change,
            "model_loaded": self._embedder is not None and self._embedder.loaded,
            "vectors": self._rules is not None,
        }

    def close(self) -> None:
        """Put away what is worth keeping."""
        self._search.close()

    def _choose_model(self) -> None:
        """A model may be installed or chosen while the daemon runs."""
        rules = active_rules(self._config, self._data_dir)
        if rules == self._rules:
            return
        self._rules = rules
        folder = model_folder(self._config, self._data_dir)
        if rules is None or folder is None:
            self._embedder = None
            self._search.use_model(None, None)
            return
        embedder = LazyEmbedder(
            folder, QUESTION_THREADS, self._config.embed.idle_unload_s, SystemClock()
        )
        self._embedder = embedder
        self._search.use_model(lambda text: embedder.get().query(text), rules)


def open_search(store: Store, data_dir: Path, config: Config) -> Finder:
    """Search over a store; caches catch up when first asked."""
    return Finder(store, data_dir, config)
