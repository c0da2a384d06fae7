"""
A store with search on it, for measuring: what the daemon does, without the daemon.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from imprintd.archive import open_store
from imprintd.clock import SystemClock
from imprintd.errors import ImprintdError
from imprintd.learn.embed import Embedder
from imprintd.learn.embed_half import to_half
from imprintd.learn.model_install import install
from imprintd.learn.pipeline import extend
from imprintd.learn.vectors import rules_of
from imprintd.model.event import Event, Role
from imprintd.model.snapshot import Limits, Point
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.search.engine import Search
from imprintd.search.ports import Query, Results
from imprintd.text.view import embedding_text

Said = tuple[str, str, str]
"""Role, time, body."""

LIMITS = Limits()
MODEL = "minilm-l6-v2"


def model_folder(cache: Path) -> Path | None:
    """
    The embedding model, installed in the bench's cache folder once.

    From the two published files if tests have fetched them, else by download;
    None where neither is possible.
    """
    folder = cache / "models" / MODEL
    if (folder / "model.json").is_file():
        return folder
    named = os.environ.get("IMPRINTD_TEST_MODELS") or "~/.cache/imprintd-tests/models"
    published = Path(named).expanduser() / "published"
    try:
        install(MODEL, cache / "models", source=published if published.is_dir() else None)
    except ImprintdError as error:
        print(f"no embedding model: {error.message}", file=sys.stderr)
        return None
    return folder


@dataclass(frozen=True, slots=True)
class _Same:
    text: str


class _AsItIs:
    """No redaction."""

    profile = "bench"

    def redact_many(self, texts: Sequence[str], /) -> list[_Same]:
        return [_Same(text) for text in texts]


class Stand:
    """
    A data directory with store, model and search, opened.

    Args:
        folder: Made if absent; kept.
        model: Folder of the embedding model; None: words only.
    """

    def __init__(self, folder: Path, model: Path | None) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store = open_store(folder, SystemClock())
        self.embedder = Embedder(model) if model else None
        self.rules = rules_of(self.embedder.rules, LIMITS) if self.embedder else None
        self.search = Search(
            self.store, folder, self.embedder.query if self.embedder else None, self.rules
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.search.close()
        self.store.close()

    def known(self) -> bool:
        return self.store.change() > 0

    def chunks(self) -> int:
        return self.store.statistics().chunks

    def publish(
        self,
        project: str,
        key: str,
        said: Sequence[Said],
        limits: Limits = LIMITS,
    ) -> None:
        """A new source of (role, time, body) events; what tools say is their output."""
        events = [
            Event(
                cast("Role", role),
                "tool_output" if role == "tool" else "message",
                body,
                1 + number // 2,
                timestamp=when,
            )
            for number, (role, when, body) in enumerate(said)
        ]
        source = SourceId("default", project, key)
        update = extend(
            source,
            None,
            events,
            meta=SourceMeta("bench", key),
            coverage=Coverage(),
            state=b"",
            cursor=None,
            record_keys=(),
            redactor=_AsItIs(),
            limits=limits,
        )
        self.store.publish([update], self.rules)

    def embed(self, *, progress: bool = False) -> int:
        """Every vector that is owed; returns how many were made."""
        if self.embedder is None or self.rules is None:
            return 0
        made = 0
        while owed := self.store.take_owed(self.rules, 64):
            named = []
            for one in owed:
                windows = self.embedder.windows(embedding_text(one.content, LIMITS))
                named += [
                    (one.content_digest, number, len(windows), window)
                    for number, window in enumerate(windows)
                    if number not in one.have
                ]
            vectors = to_half(self.embedder.embed_windows([item[3] for item in named]))
            self.store.add_points(
                [
                    Point(digest, number, count, self.rules, vector)
                    for (digest, number, count, _), vector in zip(named, vectors, strict=True)
                ]
            )
            self.store.settle_owed([one.content_digest for one in owed])
            made += len(named)
            if progress:
                print(f"\r{made} vectors", end="", file=sys.stderr)
        return made

    def ask(self, text: str, project: str | None, mode: Any, limit: int) -> Results:
        return self.search.query(Query(text, project=project, mode=mode, limit=limit))

    def sources(self, text: str, project: str | None, mode: Any, limit: int) -> list[str]:
        return [
            place["source"]
            for hit in self.ask(text, project, mode, limit).hits
            for place in hit.places
        ]
