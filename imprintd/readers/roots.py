"""
Where known clients keep transcripts: folders and file names, found by words only.

Nothing is looked at; the caller watches what exists. The rules follow the
clients to the letter (an empty CLAUDE_CONFIG_DIR counts as unset, and `~` in it
is not expanded), or their files would be missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final


@dataclass(frozen=True, slots=True)
class ClientRoot:
    """
    A folder to watch, with all its sub-folders.

    Attributes:
        client: Name of its reader.
        path: Absolute, in the spelling of its platform.
    """

    client: str
    path: str


_TREES: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("projects",),
    "codex": ("sessions", "archived_sessions"),
}
_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    "claude": re.compile(r"(?!journal\.jsonl$).+\.jsonl$"),
    "codex": re.compile(r".+\.jsonl(?:\.zst)?$"),
}
_SIDE_FOLDERS: Final = frozenset({"tool-results", "memory", "file-history"})
_COMPRESSED: Final = ".zst"


def default_roots(
    environ: Mapping[str, str], home: str, *, windows: bool = False
) -> tuple[ClientRoot, ...]:
    """
    Known clients' transcript folders, whether they exist or not.

    Args:
        environ: The process environment.
        home: The user's home directory, absolute.
        windows: Paths are Windows paths.
    """
    kind: type[PurePath] = PureWindowsPath if windows else PurePosixPath
    base = kind(home)
    bases: list[tuple[str, PurePath]] = []
    claude = environ.get("CLAUDE_CONFIG_DIR")
    if claude:
        bases.append(("claude", kind(claude)))
    # other profiles keep living beside the one of the environment
    bases += [("claude", base / ".claude"), ("claude", base / ".config" / "claude")]
    codex = environ.get("CODEX_HOME")
    bases.append(("codex", kind(codex) if codex else base / ".codex"))
    found: dict[ClientRoot, None] = {}
    for client, folder in bases:
        if not folder.is_absolute():
            # relative to wherever the client was started: nothing to watch
            continue
        for tree in _TREES[client]:
            found[ClientRoot(client, str(folder / tree))] = None
    return tuple(found)


def is_transcript(client: str, relative: str) -> bool:
    """
    Whether a file below a client's root can be a transcript, by its names.

    Args:
        client: Name of its reader.
        relative: Path below the root, `/`-separated.
    """
    *folders, name = relative.split("/")
    if client in _NAMES and not _NAMES[client].match(name):
        return False
    if client not in _NAMES and not name.endswith(".jsonl"):
        return False
    return _SIDE_FOLDERS.isdisjoint(folders)


def preferred(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths without compressed files whose plain file is there, too."""
    known = dict.fromkeys(paths)
    return tuple(
        path
        for path in known
        if not (path.endswith(_COMPRESSED) and path.removesuffix(_COMPRESSED) in known)
    )


def side_folder(transcript: str) -> str:
    """
    The folder of results that a Claude session moved out of its transcript.

    `…/<session>.jsonl` has `…/<session>/tool-results`; a sub-agent's file
    below `…/<session>/subagents/` shares that of its session.
    """
    head, mark, _ = transcript.rpartition("/subagents/")
    session = head if mark else transcript.removesuffix(".jsonl")
    return f"{session}/tool-results"
