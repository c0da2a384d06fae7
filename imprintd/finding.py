"""
Which files there are to learn: the configured roots, or paths that were named.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from imprintd.config import Config
from imprintd.readers import READERS
from imprintd.readers.roots import default_roots, is_transcript, preferred
from imprintd.watch.scan import IGNORED_FOLDERS, FileState, Root, look, scan

SIDE_FOLDERS = frozenset({"tool-results", "file-history", "memory"})
"""Folders beside transcripts that hold no transcripts."""


def roots(config: Config, environ: Mapping[str, str]) -> list[Root]:
    """Folders to watch: as configured, else where the known clients keep theirs."""
    if config.watch.roots is not None:
        return [
            _root(str(Path(r.path).expanduser().absolute()), r.client, expected=True)
            for r in config.watch.roots
        ]
    home = str(Path.home())
    found = default_roots(environ, home, windows=sys.platform == "win32")
    return [_root(root.path, root.client, expected=False) for root in found]


def _root(path: str, client: str, *, expected: bool) -> Root:
    return Root(
        path=path,
        client=client,
        accept=partial(is_transcript, client) if client else _may_be_transcript,
        ignored=IGNORED_FOLDERS | SIDE_FOLDERS,
        expected=expected,
    )


def _may_be_transcript(name: str) -> bool:
    return any(is_transcript(client, name) for client in READERS)


def files_in(roots: Iterable[Root]) -> list[FileState]:
    """All transcripts below some roots, the newest first, plain before compressed."""
    found: dict[str, FileState] = {}
    for index, root in enumerate(roots):
        for state in scan(root, index).files:
            found.setdefault(state.path, state)
    chosen = [found[path] for path in preferred(found)]
    return sorted(chosen, key=lambda state: (-state.mtime_ns, state.path))


def files_at(paths: Iterable[str]) -> list[FileState]:
    """Transcripts at named paths: a file as it is, a folder with all below it."""
    folders: list[Root] = []
    files: list[FileState] = []
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 - paths may not be UTF-8
            folders.append(_root(path, "", expected=True))
        else:
            state = look(os.path.realpath(path), 0)
            files.append(state or FileState(path, 0, 0, 0, 0, 0))
    named = {state.path for state in files}
    return files + [state for state in files_in(folders) if state.path not in named]
