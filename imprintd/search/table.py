"""
The live chunks and their vectors' ids, as columns in memory.

Answers what a question needs between the caches: which chunk a row or a point
belongs to, whether it still lives, what passes a filter, what stands before and
after it. About 100 bytes a chunk and 40 a point; no text.

Chunks are numbered by slot, contents by code, sources by place, in order of
arrival. A slot whose chunk died stays, marked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from imprintd.model.source import SourceId
from imprintd.search.ports import ChunkRow, PointRow

Mask = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int64]

NONE: Final = -1


class Names:
    """Strings as small numbers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The name's number, a new one if need be."""
        found = self._numbers.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
        return found

    def where(self, test: Callable[[str], bool]) -> npt.NDArray[np.int64]:
        """Numbers of the names that pass."""
        return np.array([n for n, name in enumerate(self.names) if test(name)], np.int64)


class Table:
    """Columns of live chunks, contents, points and sources; not thread-safe."""

    def __init__(self) -> None:
        # by slot
        self.row = array("q")
        self.place = array("i")
        self.start = array("i")
        self.end = array("i")
        self.code = array("i")
        self.roles = array("H")
        self.kinds = array("H")
        self.first = array("q")
        self.last = array("q")
        self.alive = bytearray()
        self._next_slot = array("i")
        # by code
        self._codes: dict[bytes, int] = {}
        self._first_slot = array("i")
        self._first_point = array("i")
        # by point
        self.point = array("q")
        self.point_code = array("i")
        self.point_scope = array("q")
        self.point_window = array("H")
        self.point_windows = array("H")
        self._next_point = array("i")
        # by place
        self.source_row = array("q")
        self.key: list[str] = []
        self.workspace = array("i")
        self.project = array("i")
        self.client = array("i")
        self.device = array("i")
        self.language = array("i")
        self.slots: list[array[int]] = []
        self._places: dict[int, int] = {}
        self.workspaces, self.projects, self.clients = Names(), Names(), Names()
        self.devices, self.languages = Names(), Names()
        self._lines: dict[tuple[int, int], list[int]] = {}
        self.dead = 0
        self._counted = ((0, 0, 0), 0)

    def __len__(self) -> int:
        return len(self.row) - self.dead

    # -- filling

    def add(self, chunk: ChunkRow) -> None:
        """
        Add a live chunk; rows come in ascending order.

        A row that is not above the last one is known already and is passed over.
        """
        if self.row and chunk.row <= self.row[-1]:
            return
        slot = len(self.row)
        place = self._place(chunk)
        code = self._code(chunk.content_digest)
        self.row.append(chunk.row)
        self.place.append(place)
        self.start.append(chunk.start)
        self.end.append(chunk.end)
        self.code.append(code)
        self.roles.append(chunk.roles)
        self.kinds.append(chunk.kinds)
        self.first.append(chunk.updated_ms if chunk.first_ms is None else chunk.first_ms)
        self.last.append(chunk.updated_ms if chunk.last_ms is None else chunk.last_ms)
        self.alive.append(1)
        self._next_slot.append(self._first_slot[code])
        self._first_slot[code] = slot
        line = self.slots[place]
        at = bisect_left(line, chunk.start, key=self.start.__getitem__)
        line.insert(at, slot)
        self._lines.pop((self.workspace[place], self.project[place]), None)

    def kill(self, row: int) -> None:
        """Mark a row's chunk dead; unknown rows are passed over."""
        slot = self.slot_of(row)
        if slot is None:
            return
        self.alive[slot] = 0
        self.dead += 1
        place = self.place[slot]
        self.slots[place].remove(slot)
        self._lines.pop((self.workspace[place], self.project[place]), None)

    def add_point(self, point: PointRow) -> None:
        """Add a vector's id; ids come in ascending order."""
        number = len(self.point)
        code = self._code(point.content_digest)
        self.point.append(point.id)
        self.point_code.append(code)
        self.point_scope.append(point.scope)
        self.point_window.append(min(point.window, 65535))
        self.point_windows.append(min(point.windows, 65535))
        self._next_point.append(self._first_point[code])
        self._first_point[code] = number

    def _code(self, digest: bytes) -> int:
        code = self._codes.setdefault(digest[:16], len(self._first_slot))
        if code == len(self._first_slot):
            self._first_slot.append(NONE)
            self._first_point.append(NONE)
        return code

    def _place(self, chunk: ChunkRow) -> int:
        place = self._places.setdefault(chunk.source_row, len(self.source_row))
        if place == len(self.source_row):
            self.source_row.append(chunk.source_row)
            self.key.append(chunk.source.key)
            self.workspace.append(self.workspaces.number(chunk.source.workspace))
            self.project.append(self.projects.number(chunk.source.project))
            self.client.append(self.clients.number(chunk.client))
            self.device.append(self.devices.number(chunk.device))
            self.language.append(self.languages.number(chunk.language or ""))
            self.slots.append(array("i"))
        return place

    # -- looking up

    @property
    def contents(self) -> int:
        """How many contents have a code."""
        return len(self._first_slot)

    def slot_of(self, row: int) -> int | None:
        """Slot of a row whose chunk lives."""
        at = bisect_left(self.row, row)
        known = at < len(self.row) and self.row[at] == row and self.alive[at]
        return at if known else None

    def place_of(self, source_row: int) -> int | None:
        """Place of a source."""
        return self._places.get(source_row)

    def find(self, source: SourceId) -> int | None:
        """Place of a source that has live chunks."""
        for place in range(len(self.key) - 1, -1, -1):
            if (
                self.key[place] == source.key
                and self.workspaces.names[self.workspace[place]] == source.workspace
                and self.projects.names[self.project[place]] == source.project
                and len(self.slots[place])
            ):
                return place
        return None

    def says(self, slot: int, digest: bytes) -> bool:
        """Whether a slot's content has this digest."""
        return self._codes.get(digest[:16]) == self.code[slot]

    def point_at(self, point: int) -> int | None:
        """Number of a point id."""
        at = bisect_left(self.point, point)
        return at if at < len(self.point) and self.point[at] == point else None

    def slots_of_code(self, code: int) -> Iterator[int]:
        """Live slots of a content, newest first."""
        slot = self._first_slot[code]
        while slot != NONE:
            if self.alive[slot]:
                yield slot
            slot = self._next_slot[slot]

    def slots_of_point(self, number: int) -> Iterator[int]:
        """Live slots that a point counts for."""
        scope = self.point_scope[number]
        for slot in self.slots_of_code(self.point_code[number]):
            if scope == 0 or self.source_row[self.place[slot]] == scope:
                yield slot

    def points_of(self, slot: int) -> Iterator[int]:
        """Numbers of the points that count for a slot, newest first."""
        number = self._first_point[self.code[slot]]
        while number != NONE:
            if self.point_scope[number] in (0, self.source_row[self.place[slot]]):
                yield number
            number = self._next_point[number]

    def drop_orphans(self) -> Ids:
        """Ids of points whose content no live chunk has; they count no more."""
        if not self.point:
            return np.empty(0, np.int64)
        living = np.zeros(len(self._first_slot), np.bool_)
        living[view(self.code, np.int32)[self.living()]] = True
        lost = ~living[view(self.point_code, np.int32)]
        ids: Ids = view(self.point, np.int64)[lost].copy()
        for code in np.unique(view(self.point_code, np.int32)[lost]).tolist():
            # Should the content come back, the store gives it new points.
            self._first_point[code] = NONE
        return ids

    def points_up_to(self, point: int) -> int:
        """How many points have an id up to this one."""
        return bisect_right(self.point, point)

    def unembedded(self) -> int:
        """Contents of live chunks that have no vector."""
        state = (len(self.row), self.dead, len(self.point))
        if state != self._counted[0]:
            codes = np.unique(view(self.code, np.int32)[self.living()])
            bare = view(self._first_point, np.int32)[codes] == NONE
            self._counted = (state, int(bare.sum()))
        return self._counted[1]

    def neighbours(self, slot: int, short: int) -> tuple[int | None, int | None]:
        """
        The chunks before and after a short one, if they are short too.

        Within its source; a source that is one short chunk (a note, a single
        turn) has the like sources of its project, by time, as neighbours.

        Args:
            short: Most characters of a short chunk.
        """
        place = self.place[slot]
        line: Sequence[int] = self.slots[place]
        if len(line) == 1:
            line = self._line(place, short)
            key = (self.first[slot], slot)
            at = bisect_left(line, key, key=lambda other: (self.first[other], other))
        else:
            at = bisect_left(line, self.start[slot], key=self.start.__getitem__)
        if at >= len(line) or line[at] != slot:
            return None, None
        before = line[at - 1] if at > 0 else None
        after = line[at + 1] if at + 1 < len(line) else None
        return (
            before if before is not None and self.is_short(before, short) else None,
            after if after is not None and self.is_short(after, short) else None,
        )

    def is_short(self, slot: int, short: int) -> bool:
        """Whether a chunk has at most so many characters."""
        return self.end[slot] - self.start[slot] <= short

    def _line(self, place: int, short: int) -> list[int]:
        key = (self.workspace[place], self.project[place])
        line = self._lines.get(key)
        if line is None:
            members = np.flatnonzero(
                (view(self.workspace, np.int32) == key[0])
                & (view(self.project, np.int32) == key[1])
            )
            single = [self.slots[p][0] for p in members.tolist() if len(self.slots[p]) == 1]
            line = sorted(
                (slot for slot in single if self.is_short(slot, short)),
                key=lambda slot: (self.first[slot], slot),
            )
            self._lines[key] = line
        return line

    def living(self) -> Mask:
        """Which slots live: bool (slots,)."""
        living: Mask = np.frombuffer(bytes(self.alive), np.uint8) != 0
        return living


def view(column: array[int], kind: Any) -> Any:
    """A column as numpy sees it, without a copy; not to be kept: it blocks growing."""
    return np.frombuffer(column, kind) if len(column) else np.empty(0, kind)
