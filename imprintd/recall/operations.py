"""
The table of questions: name, parameters, and which answer they lead to.

Parameters come as strings from the socket or as values from the command line;
unknown ones are refused, so that a misspelt filter never widens a search.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, get_args

from imprintd.errors import UsageError
from imprintd.model.event import KINDS, ROLES
from imprintd.recall.memory import Document, Memory
from imprintd.recall.ports import Mode, Question

Choice = TypeVar("Choice", bound=str)
QUERY_CHARS_MAX: Final = 4000


class Params:
    """The parameters of one question."""

    def __init__(self, given: Mapping[str, object], allowed: tuple[str, ...]) -> None:
        for name in given:
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, n=1)
                raise UsageError(
                    f"unknown parameter {name}", remedy=f"did you mean {near[0]}?" if near else ""
                )
        self._given = given

    def text(self, name: str) -> str:
        value = self.maybe(name)
        if value is None:
            raise UsageError(f"the parameter {name} is missing")
        return value

    def maybe(self, name: str) -> str | None:
        value = self._given.get(name)
        return None if value is None else str(value)

    def whole(self, name: str, default: int | None = None) -> int | None:
        value = self.maybe(name)
        if value is None:
            return default
        if not value.isdecimal() or len(value) > 18:
            raise UsageError(f"the parameter {name} must be a whole number, not negative")
        return int(value)

    def flag(self, name: str) -> bool:
        value = str(self._given.get(name, "false")).lower()
        if value not in {"true", "false", "1", "0"}:
            raise UsageError(f"the parameter {name} must be true or false")
        return value in {"true", "1"}

    def choice(self, name: str, choices: tuple[Choice, ...]) -> Choice | None:
        value = self.maybe(name)
        if value is None:
            return None
        for choice in choices:
            if choice == value:
                return choice
        raise UsageError(f"the parameter {name} is one of {', '.join(choices)}")


def _sources(memory: Memory, p: Params) -> Document:
    return memory.sources(p.text("workspace"), p.maybe("project"), p.maybe("client"))


def _search(memory: Memory, p: Params) -> Document:
    limit = p.whole("limit", 10)
    if limit is None or not 1 <= limit <= 100:
        raise UsageError("the parameter limit must be from 1 to 100")
    query = p.text("q")
    if len(query) > QUERY_CHARS_MAX:
        raise UsageError(f"a query has at most {QUERY_CHARS_MAX:,} characters")
    return memory.search(
        Question(
            text=query,
            workspace=p.text("workspace"),
            project=p.maybe("project"),
            client=p.maybe("client"),
            kind=p.choice("kind", KINDS),
            role=p.choice("role", ROLES),
            device=p.maybe("device"),
            language=p.maybe("language"),
            since_ms=p.whole("since"),
            until_ms=p.whole("until"),
            mode=p.choice("mode", get_args(Mode)) or "hybrid",
            limit=limit,
        )
    )


def _get(memory: Memory, p: Params) -> Document:
    return memory.get(
        p.text("workspace"),
        p.text("memory_id"),
        p.whole("start", 0) or 0,
        cast("int", p.whole("max_chars", 4000)),
    )


def _chunks(memory: Memory, p: Params) -> Document:
    return memory.chunks(
        p.text("workspace"),
        p.text("source"),
        p.maybe("project"),
        p.whole("start", 0) or 0,
        p.whole("end"),
    )


def _read(memory: Memory, p: Params) -> Document:
    return memory.read(
        p.text("workspace"),
        p.text("source"),
        p.maybe("project"),
        p.whole("start", 0) or 0,
        cast("int", p.whole("max_chars", 4000)),
        p.maybe("version"),
        verify=p.flag("verify"),
    )


def _events(memory: Memory, p: Params) -> Document:
    return memory.events(p.text("workspace"), p.text("source"), p.maybe("project"))


def _blocks(memory: Memory, p: Params) -> Document:
    return memory.blocks(p.text("workspace"), p.text("source"), p.maybe("project"))


Operation = Callable[[Memory, Params], Document]

_SOURCE: Final = ("workspace", "source", "project")
OPERATIONS: Final[dict[str, tuple[Operation, tuple[str, ...]]]] = {
    "sources": (_sources, ("workspace", "project", "client")),
    "search": (
        _search,
        (
            *("workspace", "q", "project", "client", "kind", "role", "device", "language"),
            *("since", "until", "mode", "limit"),
        ),
    ),
    "get": (_get, ("workspace", "memory_id", "start", "max_chars")),
    "chunks": (_chunks, (*_SOURCE, "start", "end")),
    "read": (_read, (*_SOURCE, "start", "max_chars", "version", "verify")),
    "source-events": (_events, _SOURCE),
    "source-blocks": (_blocks, (*_SOURCE, "topic")),
}


def answer(
    memory: Memory, operation: str, given: Mapping[str, Any], *, workspace: str = "default"
) -> Document:
    """
    Answer one question.

    Args:
        memory: What is known.
        operation: A name in OPERATIONS.
        given: Its parameters, as strings or values.
        workspace: Where the question looks unless it says so itself.

    Raises:
        UsageError: A parameter is unknown, missing or wrong.
    """
    function, allowed = OPERATIONS[operation]
    return function(memory, Params({"workspace": workspace, **given}, allowed))
