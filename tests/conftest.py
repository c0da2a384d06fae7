"""No test touches the real home folder; compiled rules are shared between runs."""

import os
import tempfile
from pathlib import Path

import pytest

_CACHE = Path(__file__).resolve().parents[1] / ".venv" / "test-cache"

_HOME = tempfile.TemporaryDirectory(prefix="imprintd-test-home-")
os.environ.update(HOME=_HOME.name, XDG_CACHE_HOME=str(_CACHE))
for name in (
    "IMPRINTD_DATA_DIR",
    "IMPRINTD_CONFIG",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference material beside the checkout; tests that read it skip without it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no reference material beside the checkout")
    return folder
