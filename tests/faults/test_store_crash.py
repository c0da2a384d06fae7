"""
The store loses its process, its power or its disk space: old head or new head, never a mixture.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "store"))

from store_support import SmallCodec, append_of, point_of, update_of
from store_vfs import Disk, NotingVfs, after_power_cut

from imprintd.clock import ManualClock
from imprintd.errors import ResourceError
from imprintd.model.snapshot import SnapshotUpdate
from imprintd.model.source import SourceId
from imprintd.store import Store

State = dict[str, str]
SUPPORT = Path(__file__).resolve().parents[1] / "unit" / "store"


def opened(folder: Path, **given: object) -> Store:
    return Store.open(folder, ManualClock(), codec=SmallCodec(), **given)  # type: ignore[arg-type]


def source(number: int) -> SourceId:
    return SourceId("default", "/p", f"c:{number}")


def state_of(store: Store) -> State:
    """Every text; fails unless everything stored agrees with everything else."""
    assert store.quick_check() == []
    assert store.audit() == []
    state: State = {}
    for head in store.heads():
        verdict = store.verify(head)
        assert verdict.sound, verdict
        state[head.source.key] = store.text(head)
    return state


def workload(store: Store, seed: int, steps: int, done: list[State]) -> None:
    """Publish, append, replace and delete; `done` gets the state after each step."""
    dice = random.Random(seed)
    texts: dict[int, tuple[str, SnapshotUpdate]] = {}
    state: State = {}
    for step in range(steps):
        choice = dice.random()
        if choice < 0.1 and texts:
            gone = dice.choice(sorted(texts))
            store.delete_source(source(gone))
            del texts[gone], state[source(gone).key]
        elif choice < 0.2:
            store.checkpoint(truncate=dice.random() < 0.3)
        else:
            batch: list[SnapshotUpdate] = []
            for number in dice.sample(range(4), dice.randint(1, 2)):
                words = "".join(dice.choices("abcdefgh \n", k=dice.randint(1, 400)))
                held = texts.get(number)
                if held and dice.random() < 0.7:
                    text = held[0] + words
                    update = append_of(held[1], held[0], words)
                else:
                    text = f"{number}.{step} " + words
                    update = update_of(
                        text,
                        source=source(number),
                        base_version=held[1].version if held else None,
                        keep=False,
                        points=(point_of(text[:16]),),
                    )
                batch.append(update)
                texts[number] = (text, update)
                state[source(number).key] = text
            store.publish(batch, "r1")
        done.append(dict(state))


def power_cuts(tmp_path: Path, seed: int, steps: int, cuts: int) -> None:
    disk = Disk()
    vfs = NotingVfs(f"noting-{seed}", disk)
    done: list[State] = [{}]
    marks: list[int] = [0]

    class Marked(list[State]):
        def append(self, state: State) -> None:
            super().append(state)
            marks.append(len(disk.log))

    marked = Marked(done)
    with opened(tmp_path / "live", vfs=vfs.name) as store:
        workload(store, seed, steps, marked)
    dice = random.Random(seed + 1)
    seen_old = seen_new = 0
    for number in range(cuts):
        at = dice.randint(0, marks[-1])
        folder = tmp_path / f"cut{number}"
        after_power_cut(disk, at, folder, dice)
        durable = max(n for n, mark in enumerate(marks) if mark <= at)
        under_way = min(durable + 1, len(marked) - 1)
        with opened(folder) as store:
            state = state_of(store)
        assert state in (marked[durable], marked[under_way]), f"seed {seed}, cut {number} at {at}"
        seen_old += state == marked[durable]
        seen_new += state == marked[under_way]
    assert seen_old
    assert seen_new


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_power_cut_leaves_the_old_state_or_the_new_one(tmp_path: Path, seed: int) -> None:
    power_cuts(tmp_path, seed, steps=25, cuts=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_power_cuts(tmp_path: Path, seed: int) -> None:
    power_cuts(tmp_path, seed, steps=60, cuts=150)


CHILD = """
import sys
sys.path[:0] = [{root!r}, {support!r}, {faults!r}]
import json
from pathlib import Path
import test_store_crash as crash
store = crash.opened(Path({folder!r}))
class Told(list):
    def append(self, state):
        print(json.dumps(state), flush=True)
print("ready", flush=True)
crash.workload(store, {seed}, 100000, Told())
"""


def kills(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        folder = tmp_path / str(seed)
        here = Path(__file__).resolve()
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                CHILD.format(
                    root=str(here.parents[2]),
                    support=str(SUPPORT),
                    faults=str(here.parent),
                    folder=str(folder),
                    seed=seed,
                ),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        dice = random.Random(seed)
        for _ in range(dice.randint(1, 30)):
            child.stdout.readline()
        # somewhere inside the next transaction
        threading.Event().wait(dice.random() * 0.02)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read()
        child.wait()
        lines = [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        with opened(folder, read_only=True) as reader:
            state = state_of(reader)
        with opened(folder) as store:
            assert store.was_unclean
            assert state_of(store) == state
        # the same dice give the same work: replay it to know what may be there
        expected: list[State] = []
        count = _steps_told(lines, folder, tmp_path, seed, expected)
        assert state in expected[count - 1 : count + 2], f"seed {seed}"


def _steps_told(
    lines: list[str], folder: Path, tmp_path: Path, seed: int, expected: list[State]
) -> int:
    """Replay the workload and find how many steps the killed process had told of."""
    expected.append({})
    with opened(tmp_path / f"replay-{folder.name}") as store:
        workload(store, seed, 60 + len(lines), expected)
    dice = random.Random(seed)
    read = dice.randint(1, 30)
    count = read + len(lines)
    if lines:
        assert json.loads(lines[-1]) == expected[count]
    return count


def test_a_killed_process_leaves_a_whole_store(tmp_path: Path) -> None:
    kills(tmp_path, range(6))


@pytest.mark.slow
def test_many_killed_processes(tmp_path: Path) -> None:
    kills(tmp_path, range(100, 200))


def test_a_full_disk_leaves_the_old_head(tmp_path: Path) -> None:
    disk = Disk(recording=False)
    vfs = NotingVfs("full", disk)
    text = "before the disk was full\n" * 20
    with opened(tmp_path, vfs=vfs.name) as store:
        first = update_of(text, source=source(0))
        (head,) = store.publish([first], "r1")
        for room in (0, 5_000, 9_000, 20_000, 30_000):
            store.checkpoint(truncate=True)
            disk.room = room
            more = append_of(first, text, "z" * 2_000 + str(room))
            with pytest.raises(ResourceError, match="full"):
                store.publish([more], "r1")
            disk.room = None
            assert store.head(source(0)) == head
            assert state_of(store) == {"c:0": text}
        store.publish([append_of(first, text, "room again")], "r1")
        assert state_of(store) == {"c:0": text + "room again"}


def test_readers_see_one_state_while_heads_move(tmp_path: Path) -> None:
    """Every text names its own length, so that a mixture of two versions shows."""
    codec = SmallCodec()
    stop = threading.Event()
    problems: list[str] = []
    reads = [0] * 4

    def text_of(number: int) -> str:
        return "".join(f"{number}:{n}\n" for n in range(40 + number % 7))

    texts = {text_of(number) for number in range(120)}
    with Store.open(tmp_path, ManualClock(), codec=codec) as store:
        update = update_of(text_of(0), source=source(0))
        store.publish([update], "r1")

        def read(me: int) -> None:
            while not stop.is_set():
                head = store.head(source(0))
                text = store.text_of(source(0))
                if text != text_of(int(text.split(":")[0])):
                    problems.append("a mixed text")
                rows = store.chunks_of(1, content=True)
                if "".join(row.content or "" for row in rows) not in texts:
                    problems.append("mixed chunks")
                if head is not None and store.change() < head.change:
                    problems.append("a change number went back")
                reads[me] += 1

        threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for number in range(1, 120):
            following = update_of(
                text_of(number), source=source(0), base_version=update.version, keep=False
            )
            store.publish([following], "r1")
            update = following
        stop.set()
        for thread in threads:
            thread.join()
        assert problems == []
        assert min(reads) > 0
        assert store.audit() == []
