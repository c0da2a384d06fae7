"""Stores on a fresh folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from store_support import SmallCodec

from imprintd.clock import ManualClock
from imprintd.store import Store


@pytest.fixture
def codec() -> SmallCodec:
    return SmallCodec()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, codec: SmallCodec, clock: ManualClock) -> Iterator[Store]:
    with Store.open(tmp_path / "data", clock, codec=codec) as opened:
        yield opened
        assert opened.audit() == []
