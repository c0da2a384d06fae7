"""The arrows between rooms are what ARCHITECTURE.md draws."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "imprintd"

LEVEL_0 = {"model", "errors", "clock", "config"}
MAY_IMPORT = {
    "model": set(),
    "errors": set(),
    "clock": set(),
    "config": {"errors", "model"},
    "readers": LEVEL_0,
    "redact": LEVEL_0,
    "text": LEVEL_0,
    "wire": LEVEL_0,
    "watch": LEVEL_0,
    "store": LEVEL_0,
    "learn": LEVEL_0 | {"readers", "redact", "text"},
    "search": LEVEL_0 | {"text"},
    "sync": LEVEL_0 | {"wire"},
    "transport": LEVEL_0 | {"wire"},
    "ops": LEVEL_0,
    "serve": LEVEL_0,
    "recall": LEVEL_0 | {"text"},
}
PURE = {"model", "readers", "text", "wire", "sync"}
NEVER_IN_PURE = {
    "asyncio", "threading", "time", "random", "socket", "sqlite3", "apsw", "subprocess",
    "aiomqtt", "paho", "watchdog", "faiss", "onnxruntime", "tantivy", "numpy",
}  # fmt: skip
ONE_IMPORTER = (
    "apsw", "faiss", "tantivy", "onnxruntime", "watchdog", "aiomqtt", "hyperscan", "re2",
    "kingfisher",
)  # fmt: skip


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_what_its_level_may(path: Path) -> None:
    room = room_of(path)
    if room not in MAY_IMPORT:
        return

    ours = {
        name.split(".")[1]
        for name in imports(path)
        if name.startswith("imprintd.") and not name.startswith("imprintd.__")
    } - {room}

    assert ours - MAY_IMPORT[room] == set()


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_pure_rooms_know_no_clock_no_chance_and_no_machine(path: Path) -> None:
    if room_of(path) not in PURE:
        return

    assert {name.split(".")[0] for name in imports(path)} & NEVER_IN_PURE == set()


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_heavy_library_has_one_importing_module(library: str) -> None:
    importers = [
        str(path.relative_to(PACKAGE))
        for path in modules()
        if any(name.split(".")[0] == library for name in imports(path))
    ]

    assert len(importers) <= 1, importers


def test_every_room_is_on_the_map() -> None:
    composed = {
        *("__init__", "__main__", "api", "app", "archive", "cli", "demo", "finding", "journal"),
        *(
            "local",
            "received",
            "replication",
            "replicator",
            "searching",
            "shelf",
            "staging",
            "worker",
        ),
    }

    assert {room_of(path) for path in modules()} - set(MAY_IMPORT) - composed == set()
