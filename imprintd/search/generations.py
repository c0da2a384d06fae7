"""
Generations of the index of words: one folder in use, a fresh one when it must go.

Segments keep deleted words until they are merged, so what must be gone for good
goes with its whole folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from imprintd.search.lexical import Lexical
from imprintd.search.records import WordsUnreadable


class Generations:
    """
    Folders `g1`, `g2`, … of which the highest counts.

    Args:
        folder: Holds them; made if absent, it and its parent mode 0700.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> Lexical:
        """The highest generation, a fresh one if it cannot be read; others are removed."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        numbers = sorted(
            int(path.name[1:])
            for path in self._folder.iterdir()
            if path.name[:1] == "g" and path.name[1:].isdecimal()
        )
        for old in numbers[:-1]:
            shutil.rmtree(self._path(old), ignore_errors=True)
        number = numbers[-1] if numbers else 1
        try:
            return Lexical(self._path(number))
        except WordsUnreadable:
            shutil.rmtree(self._path(number), ignore_errors=True)
            return Lexical(self._path(number + 1))

    def after(self, words: Lexical) -> Lexical:
        """An empty index in the folder that comes after this one's."""
        return Lexical(self._path(int(words.folder.name[1:]) + 1))

    def _path(self, number: int) -> Path:
        return self._folder / f"g{number}"
