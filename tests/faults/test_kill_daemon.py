"""kill -9 at random moments while conversations grow: nothing half, nothing lost."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from daemon_support import Conversation, Daemon, watching


def script(seed: int, conversations: int) -> list[tuple[int, list[bytes]]]:
    """What is written, in order: which conversation, in which pieces."""
    rng = random.Random(seed)
    words = [
        "amber",
        "basalt",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "garnet",
        "harbour",
        "indigo",
        "juniper",
    ]
    talks = [Conversation(Path("unused"), number) for number in range(conversations)]
    steps: list[tuple[int, list[bytes]]] = []
    for step in range(conversations * 4):
        number = step % conversations
        said = " ".join(rng.choices(words, k=rng.randint(5, 1500)))
        data = talks[number].turn(f"step {step}?", said)
        cut = rng.randrange(len(data))
        steps.append((number, [data[:cut], data[cut:]]))
    return steps


def texts(daemon: Daemon) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Version and chunk ids of every source: equal versions mean equal text."""
    return {
        source["source"]: (
            source["version"],
            tuple(c["memory_id"] for c in daemon.json("chunks", source["source"])["chunks"]),
        )
        for source in daemon.json("sources")
    }


def run_with_kills(folder: Path, seed: int, kills: int) -> None:
    """Write a script under a daemon that is killed again and again; compare with peace."""
    rng = random.Random(seed)
    steps = script(seed, 3)
    talks = [Conversation(folder / "claude", number) for number in range(3)]
    daemon = Daemon(folder, watching(folder / "claude"))
    daemon.start()
    per_kill = max(1, len(steps) * 2 // kills)
    written = killed = 0
    for number, pieces in steps:
        for piece in pieces:
            talks[number].append(piece)
            written += 1
            if written % per_kill == 0 and killed < kills:
                time.sleep(rng.uniform(0, 0.6))
                daemon.kill()
                killed += 1
                daemon.start()
                verdict = daemon.json("verify", "--all")
                assert verdict["ok"] == verdict["rebuilt_exactly"] == verdict["sources"]
    daemon.json("learn", str(folder / "claude"))  # whatever the watcher has not told yet
    disturbed, verdict = texts(daemon), daemon.json("verify", "--all")
    daemon.stop()

    peaceful = Daemon(folder / "peace", watching(folder / "claude"))
    with peaceful:
        peaceful.wait_until_learned(3)
        undisturbed = texts(peaceful)

    assert killed == kills
    assert disturbed == undisturbed
    assert verdict["ok"] == verdict["sources"] == 3


def test_twenty_kills_leave_what_an_undisturbed_run_leaves(tmp_path: Path) -> None:
    (tmp_path / "peace").mkdir()

    run_with_kills(tmp_path, seed=20, kills=20)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    (tmp_path / "peace").mkdir()

    run_with_kills(tmp_path, seed, kills=20)
