"""
What a question leaves out: filters over the table and for the index of words.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from imprintd.model.event import KINDS, ROLES
from imprintd.search.clauses import Filter, language_tags
from imprintd.search.ports import Asked
from imprintd.search.table import Ids, Mask, Names, Table, view


def wanted(table: Table, asked: Asked) -> Filter:
    """The filter of a question for the index of words."""
    projects: tuple[str, ...] | None = None
    if asked.project is not None:
        folder = asked.project
        projects = tuple(name for name in table.projects.names if in_project(name, folder))
    event = None
    if asked.role is not None or asked.kind is not None:
        event = event_word(asked.role, asked.kind)
    # A filter that all pass would keep the index from skipping ahead.
    alone = table.workspaces.names == [asked.workspace]
    return Filter(
        None if alone else asked.workspace,
        projects,
        asked.client,
        asked.device,
        asked.language,
        event,
        asked.since_ms,
        asked.until_ms,
    )


def mask(table: Table, asked: Asked) -> Mask:
    """Slots that live and pass: bool (slots,). Roles and kinds: of some event."""
    keep = _kept(table.workspace, table.workspaces, lambda n: n == asked.workspace)
    if asked.project is not None:
        folder = asked.project
        keep &= _kept(table.project, table.projects, lambda n: in_project(n, folder))
    if asked.client is not None:
        keep &= _kept(table.client, table.clients, lambda n: n == asked.client)
    if asked.device is not None:
        keep &= _kept(table.device, table.devices, lambda n: n == asked.device)
    if asked.language is not None:
        tag = asked.language.lower()
        keep &= _kept(table.language, table.languages, lambda n: tag in language_tags(n))
    mask: Mask = table.living() & keep[view(table.place, np.int32)]
    if asked.role is not None:
        mask &= (view(table.roles, np.uint16) >> ROLES.index(asked.role)) & 1 != 0
    if asked.kind is not None:
        mask &= (view(table.kinds, np.uint16) >> KINDS.index(asked.kind)) & 1 != 0
    if asked.since_ms is not None:
        mask &= view(table.last, np.int64) >= asked.since_ms
    if asked.until_ms is not None:
        mask &= view(table.first, np.int64) <= asked.until_ms
    return mask


def points_under(table: Table, mask: Mask) -> Ids:
    """Ids of the points whose content stands in a masked slot, ascending."""
    codes = np.zeros(table.contents, np.bool_)
    codes[view(table.code, np.int32)[mask]] = True
    ids: Ids = view(table.point, np.int64)[codes[view(table.point_code, np.int32)]].copy()
    return ids


def _kept(column: array[int], names: Names, test: Callable[[str], bool]) -> Mask:
    passing = np.zeros(len(names.names), np.bool_)
    passing[names.where(test)] = True
    kept: Mask = passing[view(column, np.int32)]
    return kept


def in_project(project: str, asked: str) -> bool:
    """Whether a project is the asked one, lies below it, or ends with its name."""
    asked = asked.rstrip("/")
    return (
        project == asked
        or project.startswith(asked + "/")
        or project.replace("\\", "/").rstrip("/").endswith("/" + asked.lstrip("/"))
    )


def event_word(role: str | None, kind: str | None) -> str:
    """How the index of words names events: `role`, `/kind` or `role/kind`."""
    return (role or "") if kind is None else f"{role or ''}/{kind}"


def event_words(events: Iterable[Any]) -> frozenset[str]:
    """All such names of some events."""
    words: set[str] = set()
    for event in events:
        words |= {event.role, f"/{event.kind}", f"{event.role}/{event.kind}"}
    return frozenset(words)
