"""
Scanning real folders: what is found, what is not entered, what is named.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from imprintd.watch import scan as module
from imprintd.watch.place import owns, places_for
from imprintd.watch.scan import FileState, FolderFault, Root, is_ignored, look, scan


def _root(path: Path, **more: object) -> Root:
    return Root(str(path), "test", lambda name: name.endswith(".jsonl"), **more)  # type: ignore[arg-type]


def _write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _names(found: module.Scan, base: Path) -> list[str]:
    return sorted(os.path.relpath(state.path, base) for state in found.files)


def test_files_are_found_with_their_state(tmp_path: Path) -> None:
    file = _write(tmp_path / "p" / "a.jsonl", "12345")
    _write(tmp_path / "p" / "a.txt")
    found = scan(_root(tmp_path), 3)
    info = file.stat()
    assert found.files == [FileState(str(file), info.st_dev, info.st_ino, 5, info.st_mtime_ns, 3)]
    assert set(found.folders) == {str(tmp_path), str(tmp_path / "p")}
    inner = (tmp_path / "p").stat()
    assert found.folders[str(tmp_path / "p")] == (inner.st_dev, inner.st_ino)
    assert (found.faults, found.faults_total, found.complete) == ([], 0, True)


def test_links_and_special_files_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = _write(tmp_path / "outside" / "secret.jsonl")
    inside = tmp_path / "inside"
    _write(inside / "real.jsonl")
    (inside / "link.jsonl").symlink_to(outside)
    (inside / "linked").symlink_to(outside.parent)
    (inside / "loop").symlink_to(inside)
    os.mkfifo(inside / "pipe.jsonl")
    monkeypatch.chdir(inside)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s.jsonl")
    found = scan(_root(inside), 0)
    assert _names(found, inside) == ["real.jsonl"]
    assert look(str(inside / "link.jsonl"), 0) is None
    assert look(str(inside / "pipe.jsonl"), 0) is None
    assert look(str(inside / "absent"), 0) is None
    assert look("nul\0byte", 0) is None


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    _write(real / "a.jsonl")
    (tmp_path / "link").symlink_to(real)
    (spot,) = places_for([_root(tmp_path / "link")])
    assert spot.root.path == str(real)
    assert _names(scan(spot.root, 0), real) == ["a.jsonl"]


def test_ignored_folders_are_not_entered(tmp_path: Path) -> None:
    _write(tmp_path / "node_modules" / "deep" / "a.jsonl")
    _write(tmp_path / "p" / ".git" / "b.jsonl")
    _write(tmp_path / "p" / "c.jsonl")
    root = _root(tmp_path)
    found = scan(root, 0)
    assert _names(found, tmp_path) == ["p/c.jsonl"]
    assert set(found.folders) == {str(tmp_path), str(tmp_path / "p")}
    assert is_ignored(root, str(tmp_path / "p" / ".git" / "b.jsonl"))
    assert not is_ignored(root, str(tmp_path / "p" / "c.jsonl"))
    assert not is_ignored(root, str(tmp_path / ".git"))  # the file itself is not a folder


def test_a_root_below_an_ignored_name_is_still_a_root(tmp_path: Path) -> None:
    base = tmp_path / ".cache" / "client"
    _write(base / "a.jsonl")
    root = _root(base)
    assert _names(scan(root, 0), base) == ["a.jsonl"]
    assert not is_ignored(root, str(base / "a.jsonl"))


def test_depth_has_no_bound_of_ours(tmp_path: Path) -> None:
    deep = tmp_path
    names = 0
    while len(str(deep)) < 3900:
        deep /= "d"
        names += 1
        deep.mkdir()
    (deep / "a.jsonl").write_text("x")
    found = scan(_root(tmp_path), 0)
    assert [state.path for state in found.files] == [str(deep / "a.jsonl")]
    assert len(found.folders) == names + 1
    assert names > 1000
    # what tidies up after tests recurses
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_odd_names_survive(tmp_path: Path) -> None:
    for name in (b"\xff\xfe.jsonl", b"a\nb.jsonl", "ü😀.jsonl".encode()):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("x")
    found = scan(_root(tmp_path), 0)
    assert sorted(os.fsencode(Path(state.path).name) for state in found.files) == sorted(
        (b"\xff\xfe.jsonl", b"a\nb.jsonl", "ü😀.jsonl".encode())
    )
    assert all(look(state.path, 0) == state for state in found.files)


def test_unreadable_folders_are_named_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        _write(tmp_path / name / "x.jsonl")
    real = os.scandir

    def refusing(path: str) -> object:
        if path == str(tmp_path / "b"):
            raise PermissionError(13, "denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = scan(_root(tmp_path), 0)
    assert _names(found, tmp_path) == ["a/x.jsonl", "c/x.jsonl"]
    assert found.faults == [FolderFault(str(tmp_path / "b"), "EACCES")]
    assert set(found.folders) == {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "c")}


def test_the_list_of_faults_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(150):
        (tmp_path / str(number)).mkdir()
    real = os.scandir

    def refusing(path: str) -> object:
        if path != str(tmp_path):
            raise PermissionError(13, "denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = scan(_root(tmp_path), 0)
    assert (len(found.faults), found.faults_total) == (100, 150)


def test_a_root_that_is_gone_or_a_file_is_a_fault(tmp_path: Path) -> None:
    assert scan(_root(tmp_path / "gone"), 0).faults == [
        FolderFault(str(tmp_path / "gone"), "ENOENT")
    ]
    file = _write(tmp_path / "file")
    assert scan(_root(file), 0).faults == [FolderFault(str(file), "ENOTDIR")]


def test_one_folder_can_be_looked_at_alone(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl")
    _write(tmp_path / "p" / "b.jsonl")
    found = scan(_root(tmp_path), 0, start=str(tmp_path), deep=False)
    assert _names(found, tmp_path) == ["a.jsonl"]
    assert set(found.folders) == {str(tmp_path), str(tmp_path / "p")}


def test_a_scan_stops_when_asked(tmp_path: Path) -> None:
    for number in range(10):
        _write(tmp_path / str(number) / "a.jsonl")
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 4

    found = scan(_root(tmp_path), 0, should_stop=should_stop)
    assert (found.complete, len(found.files)) == (False, 3)


def test_nested_roots_own_their_files(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl")
    _write(tmp_path / "p" / "inner" / "b.jsonl")
    roots = [_root(tmp_path), _root(tmp_path / "p" / "inner"), _root(tmp_path / "p" / ".." / "p")]
    outer, inner, middle = places_for([*roots, _root(tmp_path)])
    shown = [
        _names(scan(s.root, s.index, others=s.inner), tmp_path) for s in (outer, middle, inner)
    ]
    assert shown == [["a.jsonl"], [], ["p/inner/b.jsonl"]]
    path = str(tmp_path / "p" / "inner" / "b.jsonl")
    assert [owns(s, path, folder=False) for s in (outer, middle, inner)] == [False, False, True]
    assert not owns(outer, str(tmp_path / "a.txt"), folder=False)
    assert owns(outer, str(tmp_path / "q"), folder=True)
    assert not owns(outer, str(tmp_path / "node_modules"), folder=True)
