"""
Progress on stderr: a bar on a terminal, nothing where nobody looks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol


class Tell(Protocol):
    """Called with `files done bytes done_bytes failed` as work goes on."""

    def __call__(self, progress: Mapping[str, Any]) -> None: ...


def _silent(progress: Mapping[str, Any]) -> None:
    """Nobody looks."""
    del progress


@contextmanager
def learning_bar(*, quiet: bool) -> Iterator[Tell]:
    """A bar of bytes with rate and time left while files are learned."""
    if quiet or not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    with Progress(
        TextColumn("learning {task.fields[files]}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, files="")

        def tell(progress: Mapping[str, Any]) -> None:
            bar.update(
                task,
                total=progress["bytes"],
                completed=progress["done_bytes"],
                files=f"{progress['done']}/{progress['files']} files",
            )

        yield tell


@contextmanager
def counting_bar(what: str, *, quiet: bool) -> Iterator[Tell]:
    """A bar of `done` out of `total`."""
    if quiet or not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def tell(progress: Mapping[str, Any]) -> None:
            bar.update(task, total=progress["total"], completed=progress["done"])

        yield tell


class TellStage(Protocol):
    """Called with a stage's name and how many of how many bytes or steps are done."""

    def __call__(self, stage: str, done: int, total: int, /) -> None: ...


@contextmanager
def stages_bar(*, quiet: bool) -> Iterator[TellStage]:
    """One bar after another, as the stages of a long task come."""
    if quiet or not sys.stderr.isatty():
        said: set[str] = set()

        def say(stage: str, _done: int, _total: int) -> None:
            if not quiet and stage not in said:
                said.add(stage)
                sys.stderr.write(f"{stage} ...\n")

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total or None)

        yield tell
