"""
Vectors and the vectors still owed.

A content (not a chunk) owns its vectors, so that the same text is embedded
once however often it is said. What is owed stands in a table of its own,
written in the transaction that made it owed: nothing is silently unindexed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from imprintd.model.event import Kind
from imprintd.model.snapshot import Point
from imprintd.store.connection import Connection
from imprintd.store.spans import kind_mask

SPOKEN_KINDS: Final[tuple[Kind, ...]] = ("message", "speech", "analysis")
"""Chunks that hold one of these, or no events at all, are embedded first."""

_RULES_ACTIVE: Final = "rules_active"


def add(connection: Connection, points: Sequence[Point], scope: int = 0) -> None:
    """
    Store vectors of contents that some chunk says; others are passed over.

    What was computed here takes the place of what peers sent. A content whose
    windows are all there is no longer owed; one that lacks some is, for its
    second stage.

    Args:
        scope: 0: computed here. Else the source row that a peer sent them for.
    """
    touched: set[int] = set()
    for point in points:
        content = _content(connection, point.content_digest)
        if content is None:
            continue
        rules = rules_row(connection, point.rules)
        if scope == 0:
            connection.execute(
                "DELETE FROM points WHERE content = ? AND rules = ? AND"
                " (scope > 0 OR windows <> ?)",
                (content, rules, point.windows),
            )
        connection.execute(
            "INSERT INTO points (content, rules, scope, window, windows, vector)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (content, rules, scope, window) DO NOTHING",
            (content, rules, scope, point.window, point.windows, point.vector),
        )
        touched.add(content)
    active = active_rules(connection)
    if active is not None:
        number = rules_row(connection, active)
        for content in touched:
            _settle_if_whole(connection, content, number, scope)


def owe(connection: Connection, row: int, change: int, rules: str | None, updated_ms: int) -> None:
    """Note what the chunks born with a change still lack under the active rules."""
    if rules is not None and rules != active_rules(connection):
        activate(connection, rules)
    active = active_rules(connection)
    number = rules_row(connection, active) if active is not None else 0
    connection.execute(
        "INSERT OR IGNORE INTO owed (content, stage, rank, recency)"  # noqa: S608 - joins constants
        " SELECT c.content, EXISTS (SELECT 1 FROM points AS p WHERE p.content = c.content"
        "   AND p.rules = :rules AND p.scope IN (0, :row)),"
        " NOT (c.kinds = 0 OR c.kinds & :spoken), coalesce(c.last_ms, :updated)"
        # the plus keeps the planner off the index by source: that one is long
        " FROM chunks AS c WHERE c.born = :change AND +c.source = :row"
        f" AND NOT {_whole('c.content', ':row')}",
        {
            "rules": number,
            "row": row,
            "spoken": kind_mask(SPOKEN_KINDS),
            "updated": updated_ms,
            "change": change,
        },
    )


def activate(connection: Connection, rules: str) -> None:
    """
    Make some rules the active ones: what lacks vectors under them is owed from now on.

    Vectors made under other rules stay until `drop_rules`.
    """
    connection.execute(
        "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", (_RULES_ACTIVE, rules)
    )
    number = rules_row(connection, rules)
    connection.execute("DELETE FROM owed")
    connection.execute(
        "INSERT OR IGNORE INTO owed (content, stage, rank, recency)"  # noqa: S608 - joins constants
        " SELECT c.content, EXISTS (SELECT 1 FROM points AS p WHERE p.content = c.content"
        "   AND p.rules = :rules AND p.scope IN (0, c.source)),"
        " min(NOT (c.kinds = 0 OR c.kinds & :spoken)), max(coalesce(c.last_ms, s.updated_ms))"
        " FROM chunks AS c JOIN sources AS s ON s.id = c.source"
        f" WHERE NOT {_whole('c.content', 'c.source')} GROUP BY c.content",
        {"rules": number, "spoken": kind_mask(SPOKEN_KINDS)},
    )


def settle(connection: Connection, digests: Iterable[bytes]) -> None:
    """Contents that give no vector (or no more of them) are no longer owed."""
    connection.executemany(
        "DELETE FROM owed WHERE content = (SELECT id FROM contents WHERE digest = ?)",
        [(digest,) for digest in digests],
    )


def drop_rules(connection: Connection, rules: str) -> int:
    """Delete all vectors made under some rules; returns how many."""
    number = rules_row(connection, rules)
    connection.execute("DELETE FROM points WHERE rules = ?", (number,))
    return int(connection.changes())


def active_rules(connection: Connection) -> str | None:
    """Fingerprint under which vectors are owed; None before the first model."""
    rules: str | None = connection.execute(
        "SELECT value FROM settings WHERE key = ?", (_RULES_ACTIVE,)
    ).get
    return rules


def rules_row(connection: Connection, rules: str) -> int:
    """Row of a fingerprint, made if need be."""
    number: int | None = connection.execute(
        "SELECT id FROM rules WHERE fingerprint = ?", (rules,)
    ).get
    if number is None:
        number = connection.execute(
            "INSERT INTO rules (fingerprint) VALUES (?) RETURNING id", (rules,)
        ).get
    assert number is not None
    return number


def _content(connection: Connection, digest: bytes) -> int | None:
    number: int | None = connection.execute(
        "SELECT id FROM contents WHERE digest = ?", (digest,)
    ).get
    return number


def _settle_if_whole(connection: Connection, content: int, rules: int, scope: int) -> None:
    values = {"rules": rules, "content": content, "scope": scope}
    connection.execute(
        f"DELETE FROM owed WHERE content = :content AND {_whole(':content', ':scope')}"  # noqa: S608 - joins constants
        # a peer's vectors count for their own source only
        " AND (:scope = 0 OR NOT EXISTS (SELECT 1 FROM chunks AS c"
        "  WHERE c.content = :content AND c.source <> :scope))",
        values,
    )
    connection.execute(
        "UPDATE owed SET stage = 1 WHERE content = :content AND stage = 0 AND EXISTS"
        " (SELECT 1 FROM points WHERE content = :content AND rules = :rules"
        "  AND scope IN (0, :scope))",
        values,
    )


def _whole(content: str, source: str) -> str:
    """SQL: all windows of a content are there, from one and the same maker."""
    return (
        "EXISTS (SELECT 1 FROM points AS w"  # noqa: S608 - joins constants
        f" WHERE w.content = {content} AND w.rules = :rules AND w.scope IN (0, {source})"
        " GROUP BY w.scope HAVING count(*) = min(w.windows))"
    )
