"""
The cache of words: a tantivy index beside the database, caught up by change number.

The only module that imports tantivy. Every commit carries a state document
(change number, life of the change log, erasures seen), so words and number
move together. Text is not stored, only indexed. A folder that is behind an
erasure, of another life, or unreadable is dropped and built anew, because
segments keep what was deleted until they are merged.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from imprintd.search import segments
from imprintd.search.clauses import Clauses, Filter, language_tags
from imprintd.search.records import Entry, Found, Prepared, State, WordsUnreadable
from imprintd.search.words import Asking, humps, set_apart, spaced

T = TypeVar("T")

TOKEN_BYTES_MAX: Final = 96
"""Long enough for digests; longer tokens are encoded data."""

HEAP_BYTES: Final = 15_000_000
"""The least that a writer takes; it lives only while it writes."""

HEAP_BYTES_BULK: Final = 96_000_000
_STATE: Final = "state"


class Lexical:
    """
    An open folder.

    One thread writes at a time (the caller sees to it), any number search.

    Args:
        folder: Holds one generation of the index; made if absent, mode 0700.

    Raises:
        WordsUnreadable: The folder cannot be read; drop it and build anew.
    """

    def __init__(self, folder: Path) -> None:
        import tantivy

        self._t = tantivy
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._words = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(TOKEN_BYTES_MAX))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.ascii_fold())
            .filter(tantivy.Filter.stemmer("english"))
            .build()
        )
        self._schema = self._make_schema()
        self._clauses = Clauses(tantivy, self._schema, self.stems, self._frequency)
        if damaged := self.damaged():
            raise WordsUnreadable(
                f"{len(damaged)} files of the index of words are damaged",
                remedy="it is built anew from the database",
            )
        self._index = self._guarded(self._open)
        self._searcher = self._guarded(self._index.searcher)
        self.state = self._guarded(self._read_state)

    def _make_schema(self) -> Any:
        builder = self._t.SchemaBuilder()
        builder.add_text_field("body", tokenizer_name="words", index_option="position")
        for name in ("row", "source"):
            builder.add_unsigned_field(name, indexed=True, fast=name == "row")
        for name in ("part", "fold", "digest"):
            builder.add_unsigned_field(name, fast=True)
        for name in ("first", "last"):
            builder.add_integer_field(name, fast=True)
        for name in ("workspace", "project", "client", "device", "language", "event"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_text_field(_STATE, stored=True, tokenizer_name="raw", index_option="basic")
        return builder.build()

    def _open(self) -> Any:
        index = self._t.Index(self._schema, path=str(self.folder))
        index.register_tokenizer("words", self._words)
        return index

    def _read_state(self) -> State:
        hits = self._searcher.search(self._clauses.term("event", _STATE), 1, count=False).hits
        if not hits:
            return State()
        return State(**json.loads(self._searcher.doc(hits[0][1])[_STATE][0]))

    def _guarded(self, work: Callable[[], T]) -> T:
        """Run something of the library; whatever it throws means an unreadable folder."""
        try:
            return work()
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:
            # A panic of the library arrives as a BaseException of its own.
            raise WordsUnreadable(
                f"the index of words cannot be read: {type(error).__name__}",
                remedy="it is built anew from the database",
            ) from None

    def write(self, add: Iterable[Entry], drop: Sequence[int], state: State) -> None:
        """
        Add windows, drop rows, and say up to where that goes: one commit.

        Rows in `drop` are dropped before anything is added, so a row that is
        in both is replaced.

        Raises:
            WordsUnreadable: The folder cannot be written.
        """
        self._guarded(lambda: self._write(list(add), drop, state))

    def _write(self, add: list[Entry], drop: Sequence[int], state: State) -> None:
        bulk = len(add) > 2000
        writer = self._index.writer(HEAP_BYTES_BULK if bulk else HEAP_BYTES, 1)
        try:
            if drop:
                # By query: the binding's deletion by term misses unsigned fields.
                writer.delete_documents_by_query(
                    self._t.Query.term_set_query(self._schema, "row", list(drop))
                )
            writer.delete_documents_by_term("event", _STATE)
            for entry in add:
                writer.add_document(self._document(entry))
            note = self._t.Document()
            note.add_text("event", _STATE)
            note.add_text(_STATE, json.dumps(asdict(state)))
            writer.add_document(note)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()
        for name in os.scandir(self.folder):
            if name.stat().st_mode & 0o077:
                Path(name.path).chmod(0o600)
        self._index.reload()
        self._searcher = self._index.searcher()
        self.state = state

    def _document(self, entry: Entry) -> Any:
        document = self._t.Document()
        document.add_text("body", spaced(entry.text))
        document.add_unsigned("row", entry.row)
        document.add_unsigned("source", entry.source_row)
        document.add_unsigned("part", entry.part)
        document.add_unsigned("fold", entry.fold)
        document.add_unsigned("digest", entry.digest)
        document.add_integer("first", entry.first_ms)
        document.add_integer("last", entry.last_ms)
        document.add_text("workspace", entry.workspace)
        document.add_text("project", entry.project)
        document.add_text("client", entry.client)
        document.add_text("device", entry.device)
        for tag in language_tags(entry.language):
            document.add_text("language", tag)
        for event in entry.events:
            document.add_text("event", event)
        return document

    def prepare(self, asking: Asking, wanted: Filter) -> Prepared:
        """
        A question ready to be asked.

        Raises:
            WordsUnreadable: The folder cannot be read any more.
        """
        return self._guarded(lambda: self._prepare(asking, wanted))

    def _prepare(self, asking: Asking, wanted: Filter) -> Prepared:
        t = self._t
        filters = tuple(
            (t.Occur.Must, t.Query.const_score_query(query, 0.0))
            for query in self._clauses.filters(wanted)
        )
        return Prepared(self._clauses.match(asking), filters)

    def search(self, prepared: Prepared, limit: int) -> list[Found]:
        """
        Windows that match, best first.

        Raises:
            WordsUnreadable: The folder cannot be read any more.
        """
        query = prepared.match
        if prepared.filters:
            query = self._t.Query.boolean_query(
                [(self._t.Occur.Must, prepared.match), *prepared.filters]
            )
        return self._guarded(lambda: self._run(query, limit))

    def among(self, prepared: Prepared, rows: Sequence[int]) -> list[Found]:
        """Likewise, of these rows alone, whatever the filter; for scores of neighbours."""
        if not rows:
            return []
        t = self._t
        chosen = t.Query.term_set_query(self._schema, "row", list(rows))
        query = t.Query.boolean_query(
            [
                (t.Occur.Must, prepared.match),
                (t.Occur.Must, t.Query.const_score_query(chosen, 0.0)),
            ]
        )
        return self._guarded(lambda: self._run(query, 4 * len(rows)))

    def folds(self, rows: Sequence[int]) -> dict[int, int]:
        """Fold keys of rows; absent where a row is not indexed."""
        if not rows:
            return {}
        query = self._t.Query.term_set_query(self._schema, "row", list(rows))
        found: list[Found] = self._guarded(lambda: self._run(query, 64 * len(rows)))
        return {one.row: one.fold for one in found}

    def rows_of(self, source_row: int) -> dict[int, int]:
        """Rows that are held of a source, with the first 63 bits of their digests."""
        return self._guarded(lambda: self._digests(self._clauses.term("source", source_row)))

    def rows(self) -> dict[int, int]:
        """All rows that are held, likewise."""
        return self._guarded(lambda: self._digests(self._t.Query.all_query()))

    def _digests(self, query: Any) -> dict[int, int]:
        hits = self._searcher.search(query, max(1, self._searcher.num_docs), count=False).hits
        places = [place for _, place in hits]
        pairs_ = zip(self._column("row", places), self._column("digest", places), strict=True)
        return {int(row): int(digest) for row, digest in pairs_ if row is not None}

    def _run(self, query: Any, limit: int) -> list[Found]:
        hits = self._searcher.search(query, limit, count=False).hits
        places = [place for _, place in hits]
        columns = (self._column(name, places) for name in ("row", "part", "fold"))
        return [
            Found(int(row), int(part or 0), int(fold or 0), float(score))
            for (score, _), row, part, fold in zip(hits, *columns, strict=True)
            if row is not None
        ]

    def _column(self, name: str, places: list[Any]) -> list[Any]:
        return list(self._searcher.fast_field_values(name, places)) if places else []

    def _frequency(self, stems: Sequence[str]) -> int:
        return min(int(self._searcher.doc_freq("body", stem)) for stem in stems)

    def stems(self, text: str) -> list[str]:
        """A text's words as they are indexed, in order."""
        return list(self._words.analyze(text))

    def tokens(self, text: str) -> list[tuple[str, int, int]]:
        """Likewise, each with its span in `text`."""
        text, alone = set_apart(text)
        found = [
            (token.text, token.char_offset_from, token.char_offset_to)
            for token in self._words.pre_tokenize(text).tokens
        ]
        return found + alone

    def weights(self, asking: Asking) -> Mapping[str, float]:
        """How telling each stem of a question is: 1 for a rare one, towards 0 for a common."""
        stems: set[str] = set()
        for part in (
            *asking.words,
            *asking.phrases,
            *asking.joined,
            *map(spaced, asking.runs),
        ):
            stems.update(self.stems(part))
            stems.update(self.stems(" ".join(humps(part))))
        total = max(1, self._searcher.num_docs)
        return {stem: 1.0 / (1.0 + 20.0 * self._frequency([stem]) / total) for stem in stems}

    def damaged(self) -> list[str]:
        """Names of files that are damaged; see `segments`."""
        return segments.damaged(self.folder)

    def size_bytes(self) -> int:
        """Bytes of the folder's files."""
        return sum(entry.stat().st_size for entry in os.scandir(self.folder))

    def drop(self) -> None:
        """Remove the folder; the index must not be used any more."""
        shutil.rmtree(self.folder, ignore_errors=True)
