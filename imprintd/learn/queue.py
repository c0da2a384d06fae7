"""
Which file is learned next: newest first, each path once, none while it is in work.

Pure bookkeeping without I/O or clock; the room around it does the waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from imprintd.learn.ports import Job


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file that waits; `size` is what the file system says, for the estimate."""

    job: Job
    mtime_ns: int
    size: int
    asked: bool = False
    """A person waits for it: goes before what the watcher found."""


class LearnQueue:
    """Files to learn."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._in_work: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_work)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is in work."""
        return not self._waiting and not self._in_work

    @property
    def backlog_bytes(self) -> int:
        """Sizes of everything that waits or is in work."""
        return sum(w.size for w in (*self._waiting.values(), *self._in_work.values()))

    def add(self, item: Waiting) -> None:
        """Add a file; one that already waits keeps the stronger wish of the two."""
        earlier = self._waiting.get(item.job.path)
        if earlier is not None:
            job = replace(
                item.job,
                final=item.job.final or earlier.job.final,
                salvage=item.job.salvage or earlier.job.salvage,
                force=item.job.force or earlier.job.force,
            )
            item = replace(item, job=job, asked=item.asked or earlier.asked)
        self._waiting[item.job.path] = item

    def take(self) -> Waiting | None:
        """The next file, now in work; None if none can be taken."""
        free = [w for path, w in self._waiting.items() if path not in self._in_work]
        if not free:
            return None
        item = max(free, key=lambda w: (w.asked, w.mtime_ns, w.job.path))
        del self._waiting[item.job.path]
        self._in_work[item.job.path] = item
        return item

    def done(self, item: Waiting) -> None:
        """The file is finished, published or given up."""
        self._in_work.pop(item.job.path, None)

    def put_back(self, item: Waiting) -> None:
        """The file has to be learned again."""
        self.done(item)
        self.add(item)

    def drop_waiting(self) -> int:
        """Forget everything that waits; returns how many that were."""
        count = len(self._waiting)
        self._waiting.clear()
        return count
