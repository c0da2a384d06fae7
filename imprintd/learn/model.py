"""
Installed models: one folder each, whole or not there.

A model's folder `<data_dir>/models/<name>/` holds `model.onnx`,
`tokenizer.json` and `model.json`, and `weights.bin` where the graph was written
here. `model.json` describes the others, with their checksums. A folder is made beside its place and renamed into it, so that
no interruption leaves half a model under a name; what an interruption does
leave is swept by the next installation.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from imprintd.errors import Locked, ModelError, NotKnown, UsageError
from imprintd.learn.catalogue import LISTED, Expected

GRAPH: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
DATA: Final = "weights.bin"
CARD: Final = "model.json"

_FORMAT: Final = 1
_CARD_BYTES_MAX: Final = 256 * 1024
_INCOMING: Final = ".incoming-"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,95}")

Pooling = Literal["graph", "mean", "cls"]
"""How token states become one vector: inside the graph, their mean, or the first one."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """
    One model as `model.json` describes it.

    Attributes:
        name: As in `[embed] model`.
        dimension: Components of a vector; 0 when nothing is known.
        licence: SPDX identifier, or `unknown`.
        window_tokens: Tokens of a full window, special ones included.
        variant: Which graph computes the vectors.
        pooling: See `Pooling`.
        prefix_text, prefix_query: Put before texts and before questions.
        weights_sha256: Of the weights the graph was made from.
        graph_sha256, tokenizer_sha256, data_sha256: Of the files in the folder;
            the last is empty where the graph carries its constants itself.
        expected: The self-test that the model passed when it was installed.
        installed: Its folder is in place.
        problem: Why an installed model cannot be used; empty if it can.
    """

    name: str
    dimension: int
    licence: str
    window_tokens: int
    variant: str = ""
    pooling: Pooling = "graph"
    prefix_text: str = ""
    prefix_query: str = ""
    weights_sha256: str = ""
    graph_sha256: str = ""
    tokenizer_sha256: str = ""
    data_sha256: str = ""
    expected: tuple[Expected, ...] = ()
    installed: bool = False
    problem: str = ""

    @property
    def rules(self) -> str:
        """
        Fingerprint of everything that decides a vector, 32 hex digits.

        Two devices with equal rules may use each other's vectors. The graph's
        own digest is not part of it: the same weights and variant give the
        same vectors whichever library wrote the file.
        """
        parts = (
            self.weights_sha256,
            self.tokenizer_sha256,
            self.variant,
            self.pooling,
            self.window_tokens,
            self.prefix_text,
            self.prefix_query,
        )
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def check_name(name: str) -> str:
    """
    The name itself, if it can be a folder's.

    Raises:
        UsageError: It cannot.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:100]!r} cannot be a model's name",
            remedy="use lower-case letters, digits, dots and dashes",
        )
    return name


def sha256_file(path: Path) -> str:
    """Hex digest of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_card(folder: Path, info: ModelInfo) -> None:
    """Write `model.json`; the last file of a folder in the making."""
    table = asdict(info)
    for derived in ("installed", "problem"):
        del table[derived]
    table["format"] = _FORMAT
    table["rules"] = info.rules
    (folder / CARD).write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_card(folder: Path) -> ModelInfo:
    """
    What `model.json` says; the other files are not looked at.

    Raises:
        ModelError: There is none, or it is damaged or of a newer format.
    """
    path = folder / CARD
    try:
        with path.open("rb") as stream:
            raw = stream.read(_CARD_BYTES_MAX + 1)
    except FileNotFoundError:
        raise ModelError(
            f"the model {folder.name} is not installed",
            remedy=f"run `imprintd model install {folder.name}`",
        ) from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return _parse_card(raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"{path} is damaged or was written by a newer imprintd",
            remedy=f"run `imprintd model install {folder.name}` again",
        ) from None


def _parse_card(raw: bytes) -> ModelInfo:
    if len(raw) > _CARD_BYTES_MAX:
        raise ValueError(CARD)
    table: dict[str, Any] = json.loads(raw)
    if table.pop("format") != _FORMAT:
        raise ValueError(CARD)
    rules = table.pop("rules")
    expected = tuple(
        Expected(str(item["text"]), tuple(map(float, item["head"])), float(item["norm"]))
        for item in table.pop("expected")
    )
    info = ModelInfo(**table, expected=expected, installed=True)
    numbers = (info.dimension, info.window_tokens)
    words = (
        info.name,
        info.licence,
        info.variant,
        info.prefix_text,
        info.prefix_query,
        info.weights_sha256,
        info.graph_sha256,
        info.tokenizer_sha256,
        info.data_sha256,
    )
    sound = (
        all(type(number) is int and 3 <= number <= 65_536 for number in numbers)
        and all(type(word) is str for word in words)
        and _NAME.fullmatch(info.name)
        and info.pooling in {"graph", "mean", "cls"}
        and info.rules == rules
    )
    if not sound:
        raise ValueError(CARD)
    return info


def check_files(folder: Path, info: ModelInfo) -> None:
    """
    Compare the files with their checksums: about 0.1 s for 90 MB.

    Raises:
        ModelError: A file is missing or is not what was installed.
    """
    files = [(GRAPH, info.graph_sha256), (TOKENIZER, info.tokenizer_sha256)]
    if info.data_sha256:
        files.append((DATA, info.data_sha256))
    for name, digest in files:
        try:
            found = sha256_file(folder / name)
        except OSError as error:
            found = error.strerror or "unreadable"
        if found != digest:
            raise ModelError(
                f"{name} of the model {info.name} is damaged",
                remedy=f"run `imprintd model install {info.name}` again",
            )


def list_models(models_dir: Path) -> list[ModelInfo]:
    """
    Every model that is installed or can be by name, sorted by name.

    A folder whose card cannot be read is listed with its `problem`; the large
    files are not read.
    """
    found: dict[str, ModelInfo] = {
        listed.name: ModelInfo(
            listed.name,
            listed.dimension,
            listed.licence,
            listed.window_tokens,
            variant=listed.variant,
            weights_sha256=listed.weights.sha256,
            tokenizer_sha256=listed.tokenizer.sha256,
        )
        for listed in LISTED.values()
    }
    for folder in sorted(models_dir.iterdir()) if models_dir.is_dir() else ():
        if not (folder.is_dir() and _NAME.fullmatch(folder.name)):
            continue
        try:
            found[folder.name] = replace(read_card(folder), name=folder.name)
        except ModelError as error:
            known = found.get(folder.name) or ModelInfo(folder.name, 0, "unknown", 0)
            found[folder.name] = replace(known, installed=True, problem=error.message)
    return [found[name] for name in sorted(found)]


def remove(name: str, models_dir: Path) -> None:
    """
    Remove an installed model; vectors made with it are not touched.

    Raises:
        NotKnown: It is not installed.
        Locked: A model is being installed.
        UsageError: The name cannot be a model's.
    """
    folder = models_dir / check_name(name)
    if not folder.is_dir():
        raise NotKnown(f"the model {name} is not installed")
    with _alone(models_dir):
        _discard(folder, models_dir)
        sync_folder(models_dir)


@contextmanager
def incoming(models_dir: Path) -> Iterator[Path]:
    """
    A private folder (0700) in which to make a model, removed at the end.

    One installation at a time; leftovers of killed ones are swept first.

    Raises:
        Locked: Another installation is going on.
    """
    models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(models_dir):
        for leftover in models_dir.glob(f"{_INCOMING}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_INCOMING, dir=models_dir))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def put_in_place(folder: Path, models_dir: Path, name: str) -> None:
    """
    Make a finished folder durable and give it its name in one rename.

    A model of that name is moved aside first; `incoming` must be held.
    """
    for path in sorted(folder.iterdir()):
        path.chmod(0o600)
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    folder.chmod(0o700)
    sync_folder(folder)
    target = models_dir / name
    if target.exists():
        _discard(target, models_dir, moved_only=True)
    folder.rename(target)
    sync_folder(models_dir)
    for leftover in models_dir.glob(f"{_INCOMING}old-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(folder: Path, models_dir: Path, *, moved_only: bool = False) -> None:
    # A name vanishes in one step: files that go one by one would be half a model.
    aside = Path(tempfile.mkdtemp(prefix=f"{_INCOMING}old-", dir=models_dir))
    folder.rename(aside / "model")
    if not moved_only:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _alone(models_dir: Path) -> Iterator[None]:
    descriptor = os.open(models_dir / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Locked(
                "another model is being installed or removed", remedy="wait for it to end"
            ) from None
        yield
    finally:
        os.close(descriptor)
