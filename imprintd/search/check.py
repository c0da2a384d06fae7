"""
What the caches really hold, against what they should.
"""

from __future__ import annotations

from collections.abc import Mapping

from imprintd.model.source import SourceId
from imprintd.search.entries import digest_word
from imprintd.search.follow import Caches
from imprintd.search.ports import Archive, Held


def membership(
    caches: Caches, archive: Archive, source: SourceId, expected: Mapping[str, bytes]
) -> Held:
    """
    Compare the manifest of a source with words, table and vectors.

    Args:
        expected: Content digests by memory id.
    """
    with caches.lock:
        table, words = caches.table, caches.words
        place = table.find(source)
        if place is None:
            return Held(missing=frozenset(expected))
        source_row = table.source_row[place]
        slots = list(table.slots[place])
        in_words = words.rows_of(source_row)
        live = {
            row.row: row
            for row in archive.chunks_by_row(
                sorted({*in_words, *(table.row[slot] for slot in slots)}), content=False
            )
        }
        reasons = []
        changed: set[str] = set()
        held: dict[str, bytes] = {}
        extra = {f"row:{row}" for row in in_words if row not in live}
        for row, chunk in live.items():
            name = chunk.memory_id
            if name not in expected:
                extra.add(name)
                continue
            if row not in in_words:
                continue
            held[name] = chunk.content_digest
            if in_words[row] != digest_word(expected[name]):
                changed.add(name)
            slot = table.slot_of(row)
            if slot is None:
                reasons.append("the table of chunks lacks a row")
            elif not table.says(slot, expected[name]):
                changed.add(name)
        points = {table.point[number] for slot in slots for number in table.points_of(slot)}
        lost = len(points) - len(caches.vectors.held(sorted(points)))
        if lost:
            reasons.append(f"{lost} vectors are not in the index")
    return Held(
        frozenset(expected.keys() - held.keys()),
        frozenset(changed),
        frozenset(extra),
        tuple(dict.fromkeys(reasons)),
    )
