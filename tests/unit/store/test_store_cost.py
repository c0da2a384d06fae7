"""What an append, a base and a page cost does not depend on the length of the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_support import SOURCE, SmallCodec, update_of
from store_vfs import Disk, NotingVfs

from imprintd.clock import ManualClock
from imprintd.model.snapshot import BLOCK_BYTES_MAX
from imprintd.store import Store
from imprintd.store.connection import Connection

SIZES = (100_000, 1_000_000, 10_000_000)
BLOCK = 64_000
CHUNK = 5_000
STEPS = 10


class Work:
    """Counts steps of SQLite's virtual machine, in tens."""

    def __init__(self) -> None:
        self.steps = 0

    def attach(self, connection: Connection) -> None:
        connection.set_progress_handler(self._count, STEPS)

    def _count(self) -> bool:
        self.steps += STEPS
        return False


def cost_of_an_append(folder: Path, size: int) -> tuple[int, int, int, int, int]:
    disk = Disk(recording=False)
    vfs = NotingVfs(f"cost-{size}", disk)
    codec = SmallCodec(stored=True)
    # the last block and the last chunk are equally full whatever the size
    text = ("0123456789abcdef" * (size // 16 + 1))[: size // BLOCK * BLOCK + CHUNK + 100]
    with Store.open(folder, ManualClock(), codec=codec, vfs=vfs.name) as store:
        base = update_of(text, codec=codec, block_chars=BLOCK, chunk_chars=CHUNK)
        (head,) = store.publish([base], "r1")
        following = update_of(
            text + "and a turn more",
            base_text=text,
            base_version=base.version,
            codec=codec,
            block_chars=BLOCK,
            chunk_chars=CHUNK,
            record_keys=(b"k" * 8,),
        )
        store.checkpoint(truncate=True)
        writing, reading = Work(), Work()
        store._writer.run(writing.attach, transaction=False)
        disk.bytes_written = 0
        (head,) = store.publish([following], "r1")
        written = disk.bytes_written
        with store._reading() as connection:
            reading.attach(connection)
        codec.opened = 0
        assert store.base_of(SOURCE) is not None
        base_opened, codec.opened = codec.opened, 0
        store.page(head, size // 2, 4_000)
        return written, writing.steps, reading.steps, base_opened, codec.opened


def test_costs_are_flat(tmp_path: Path) -> None:
    small, middle, large = (cost_of_an_append(tmp_path / str(size), size) for size in SIZES)
    for bytes_written, steps, _, _, _ in (small, middle, large):
        assert bytes_written <= 2 * BLOCK_BYTES_MAX
        assert steps <= 5_000
    # trees grow a level or two; nothing grows with the rows
    assert large[0] <= small[0] + 16 * 4096
    assert large[1] <= small[1] * 1.5
    # 256 block rows are looked at, none of them opened
    assert large[2] <= small[2] + 20 * (SIZES[2] // BLOCK)
    assert [cost[3:] for cost in (small, middle, large)] == [(2, 1)] * 3


@pytest.mark.parametrize("chunks", [10, 1_000])
def test_taking_what_is_owed_looks_at_what_is_taken(tmp_path: Path, chunks: int) -> None:
    codec = SmallCodec()
    text = "".join(f"{n:08d}" for n in range(chunks))
    with Store.open(tmp_path, ManualClock(), codec=codec) as store:
        store.publish([update_of(text, chunk_chars=8, block_chars=50_000)], "r1")
        work = Work()
        with store._reading() as connection:
            work.attach(connection)
        assert len(store.take_owed("r1", 4)) == 4
        assert work.steps <= 600
        work.steps = 0
        assert len(store.chunks_born_after(0, 4)) == 4
        assert work.steps <= 600
