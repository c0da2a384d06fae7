"""
Hints from the operating system that something changed; the only user of watchdog.

A hint is never the truth: it can be lost, doubled or late. watchdog's threads
do as little as possible here: a path goes into a set and the driver is woken.
Whatever looks like a loss (too many paths, an overflow that watchdog merely
logs, a failure of ours) makes a whole root dirty, and a scan finds the rest.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from imprintd.errors import ResourceError
from imprintd.watch.coverage import explain

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch

PATHS_MAX: Final = 512
"""More dirty paths than this under one root: the root is scanned instead."""

_LOGGER: Final = "watchdog.observers"
"""Overflows show only as log records below this logger (measured)."""


@dataclass(slots=True)
class Dirty:
    """
    What one root's hints have gathered since they were last taken.

    Attributes:
        files: Paths that changed, appeared or were moved to.
        folders: Folders that appeared, to be scanned with all they hold.
        losses: Reasons why the whole root must be scanned.
    """

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    losses: set[str] = field(default_factory=set)

    def whole(self, reason: str) -> None:
        """Give up on single paths: the whole root is dirty."""
        self.losses.add(reason)
        self.files.clear()
        self.folders.clear()


class Hint:
    """
    One recursive watch for each root.

    `wake` is called from watchdog's threads, at most once between two calls of
    `take`; it must not block. `arm`, `disarm` and `close` block (they walk
    the tree and join threads) and belong in a thread of the driver's.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._dirty: dict[int, Dirty] = {}
        self._woken = False
        self._observer: BaseObserver | None = None
        self._watches: dict[int, ObservedWatch] = {}
        self._ears = _LossEars(self.lost_everywhere)
        logging.getLogger(_LOGGER).addHandler(self._ears)

    def arm(self, index: int, path: str) -> None:
        """
        Watch a root natively; a root already watched is watched anew.

        Raises:
            ResourceError: The system refused: the message says what ran out
                and the remedy says how to get more.
        """
        self.disarm(index)
        if self._observer is not None and not _alive(self._observer):
            # a dead one takes its roots with it; each is armed again in turn
            self._stop_observer()
        try:
            observer = self._started()
            self._watches[index] = observer.schedule(
                _handler(self, index, path), path, recursive=True, event_filter=_wanted()
            )
        except (OSError, RuntimeError, RecursionError) as error:
            message, remedy = explain(error)
            raise ResourceError(message, remedy=remedy) from error

    def disarm(self, index: int) -> None:
        """Stop watching a root; one that is not watched is no error."""
        watch = self._watches.pop(index, None)
        if watch is None or self._observer is None:
            return
        try:
            self._observer.unschedule(watch)
        except (KeyError, OSError):
            return

    def armed(self) -> Mapping[int, bool]:
        """Whether its threads are alive, for each root armed and not disarmed."""
        observer = self._observer
        if observer is None:
            return {}
        up = _alive(observer)
        emitters = {emitter.watch: emitter for emitter in tuple(observer.emitters)}
        return {
            index: up and watch in emitters and emitters[watch].is_alive()
            for index, watch in self._watches.items()
        }

    def take(self) -> dict[int, Dirty]:
        """Everything gathered since the last call, by root."""
        with self._lock:
            taken, self._dirty = self._dirty, {}
            self._woken = False
        return taken

    def note(self, index: int, path: str, *, folder: bool) -> None:
        """Gather one path. Called from watchdog's threads; O(1)."""
        with self._lock:
            dirty = self._dirty.setdefault(index, Dirty())
            if not dirty.losses:
                (dirty.folders if folder else dirty.files).add(path)
                if len(dirty.files) + len(dirty.folders) > PATHS_MAX:
                    dirty.whole("burst")
        self._ring()

    def lost(self, index: int, reason: str) -> None:
        """A root's hints can no longer be trusted."""
        with self._lock:
            self._dirty.setdefault(index, Dirty()).whole(reason)
        self._ring()

    def lost_everywhere(self, reason: str) -> None:
        """No root's hints can be trusted: they share one queue."""
        for index in tuple(self._watches):
            self.lost(index, reason)

    def close(self) -> None:
        """Stop all threads. Nothing is gathered afterwards."""
        logging.getLogger(_LOGGER).removeHandler(self._ears)
        self._stop_observer()

    def _ring(self) -> None:
        with self._lock:
            if self._woken:
                return
            self._woken = True
        self._wake()

    def _started(self) -> BaseObserver:
        if self._observer is None:
            from watchdog.observers import Observer

            _hush()
            observer = Observer()
            observer.start()
            self._observer = observer
        return self._observer

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        self._watches.clear()
        if observer is None:
            return
        try:
            observer.stop()
        except (OSError, RuntimeError):
            return
        observer.join(timeout=5)


def _hush() -> None:
    """
    Keep watchdog from printing all its watches for each folder it meets twice.

    It builds that text, as long as the list of folders, even where nobody
    wants it (measured: most of the cost of a burst of new folders).
    """
    import warnings

    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
    try:
        from watchdog.observers.inotify_c import Watch
    except (ImportError, AttributeError, OSError):
        return  # not Linux
    Watch.__repr__ = _short_repr  # type: ignore[method-assign]


def _short_repr(watch: Any) -> str:
    return f"<Watch {watch.wd}>"


def _alive(observer: BaseObserver) -> bool:
    # the thread that reads the kernel's queue is a third one, and private
    reading = getattr(observer, "_inotify_fd", None)
    return observer.is_alive() and (not isinstance(reading, threading.Thread) or reading.is_alive())


def _wanted() -> list[type[FileSystemEvent]]:
    # never open or close events: our own reading would make them. Folder
    # events are there so that new folders are watched at all.
    from watchdog import events

    return [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileMovedEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]


def _handler(hint: Hint, index: int, root: str) -> Any:
    from watchdog import events

    class Handler(events.FileSystemEventHandler):
        """Cannot raise: an exception here would end watchdog's thread."""

        def dispatch(self, event: FileSystemEvent) -> None:
            try:
                if event.event_type == events.EVENT_TYPE_DELETED:
                    if os.fsdecode(event.src_path) == root:
                        hint.lost(index, "root")  # the watch is gone with it
                    return  # elsewhere absence deletes nothing
                moved = event.event_type == events.EVENT_TYPE_MOVED
                path = os.fsdecode(event.dest_path if moved else event.src_path)
                if path:
                    hint.note(index, path, folder=event.is_directory)
            except Exception:
                try:
                    hint.lost(index, "handler")
                except Exception:
                    return  # the loop is closed: nobody listens any more

    return Handler()


class _LossEars(logging.Handler):
    """Hears what watchdog only logs: overflows and failed re-arming."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._lost = lost

    def emit(self, record: logging.LogRecord) -> None:
        if "inactive" in str(record.msg):
            return  # said when a watch is taken down on purpose
        try:
            self._lost("overflow")
        except Exception:
            return
