"""
A question as the library's queries, built by hand and never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from imprintd.search.words import Asking, humps, pairs, spaced

TERMS_MAX: Final = 24
"""Optional words of a question that are looked up: the rarest ones."""

PART_BOOST: Final = 0.4
"""A part of an identifier against the identifier in one piece."""

JOINED_BOOST: Final = 1.5
"""Two or three words met as one: worth more than one of them alone."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What a hit must be; None: anything. Projects are exact names."""

    workspace: str | None
    projects: tuple[str, ...] | None = None
    client: str | None = None
    device: str | None = None
    language: str | None = None
    event: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class Clauses:
    """
    Builds queries over one index.

    Args:
        library: The module tantivy, which `lexical` alone imports.
        schema: The index's.
        stems: A text's words as they are indexed.
        frequency: In how many windows the rarest of some stems stands.
    """

    def __init__(
        self,
        library: Any,
        schema: Any,
        stems: Callable[[str], list[str]],
        frequency: Callable[[Sequence[str]], int],
    ) -> None:
        self._t = library
        self._schema = schema
        self._stems = stems
        self._frequency = frequency

    def term(self, field: str, value: Any) -> Any:
        """Documents whose field is exactly this."""
        return self._t.Query.term_query(self._schema, field, value, "basic")

    def body(self, stem: str) -> Any:
        """Windows that hold a stem, scored by BM25."""
        return self._t.Query.term_query(self._schema, "body", stem, "freq")

    def match(self, asking: Asking) -> Any:
        """Windows that hold some of the words and all of the quoted phrases."""
        t = self._t
        optional: dict[tuple[str, ...], float] = {}

        def want(stems: Sequence[str], boost: float) -> None:
            key = tuple(stems)
            if key:
                optional[key] = max(boost, optional.get(key, 0.0))

        for word in asking.words:
            stems = self._stems(word)
            want(stems, 1.0)
            split = self._stems(" ".join(humps(word)))
            if split != stems:
                want(split, 1.0)
            if len(stems) > 1:
                for stem in stems:
                    want((stem,), PART_BOOST)
        for run in asking.runs:
            for pair in pairs(run):
                want(self._stems(spaced(pair)), 1.0)
        for word in asking.joined:
            # "user name" finds userName as well.
            stems = self._stems(word)
            if len(stems) == 1 and self._frequency(stems) > 0:
                want(stems, JOINED_BOOST)
        rarest = sorted(optional.items(), key=lambda item: self._frequency(item[0]))[:TERMS_MAX]
        parts = [
            # The library skips ahead only over plain words.
            (
                t.Occur.Should,
                self._clause(stems)
                if boost == 1.0
                else t.Query.boost_query(self._clause(stems), boost),
            )
            for stems, boost in rarest
        ]
        required = [
            (t.Occur.Must, self._clause(stems))
            for phrase in asking.phrases
            if (stems := self._stems(spaced(phrase)))
        ]
        if not parts and not required:
            return t.Query.empty_query()
        return t.Query.boolean_query(required + parts)

    def filters(self, wanted: Filter) -> list[Any]:
        """Queries that all must hold, whatever is asked."""
        t = self._t
        queries = []
        if wanted.projects is not None:
            queries.append(
                t.Query.term_set_query(self._schema, "project", list(wanted.projects))
                if wanted.projects
                else t.Query.empty_query()
            )
        for field in ("workspace", "client", "device", "event"):
            value = getattr(wanted, field)
            if value is not None:
                queries.append(self.term(field, value))
        if wanted.language is not None:
            queries.append(self.term("language", wanted.language.lower()))
        for field, lower, upper in (
            ("last", wanted.since_ms, None),
            ("first", None, wanted.until_ms),
        ):
            if lower is not None or upper is not None:
                queries.append(
                    t.Query.range_query(self._schema, field, t.FieldType.Integer, lower, upper)
                )
        return queries

    def _clause(self, stems: Sequence[str]) -> Any:
        if len(stems) == 1:
            return self.body(stems[0])
        return self._t.Query.phrase_query(self._schema, "body", list(stems))


def language_tags(language: str | None) -> list[str]:
    """A tag and its beginnings: `de-CH` counts as `de` too; lower case."""
    if not language:
        return []
    parts = language.lower().split("-")[:4]
    return ["-".join(parts[: n + 1]) for n in range(len(parts))]
