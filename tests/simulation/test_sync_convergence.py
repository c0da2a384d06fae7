"""
Whatever the network, the clocks and the power do, devices end up equal.

One seed again: `pytest tests/simulation/test_sync_convergence.py -k "seed and 17-"`.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from sync_world import World

from imprintd.model.source import SourceId
from imprintd.transport.memory import Faults

SOURCES = tuple(SourceId("default", "/p", f"claude:{n}") for n in range(5))


def _words(random: Random, edit: str) -> str:
    return f"{edit}: " + " ".join(str(random.random()) for _ in range(random.randint(1, 30))) + "\n"


def _life(world: World, seconds: float) -> None:
    """Edits, rewrites, partitions, disconnections, crashes and full disks at random."""
    random = world.random
    names = list(world.nodes)
    shared = {"text": ""}
    end = world.now_s + seconds
    number = 0
    while world.now_s < end:
        world.run(random.uniform(0.0, 3.0))
        number += 1
        name = random.choice(names)
        node = world.nodes[name]
        what = random.random()
        if what < 0.55:
            source = random.choice(SOURCES)
            old = node.journal.heads.get(source)
            edit = f"{name}{number}"
            text = _words(random, edit)
            if old is not None and random.random() < 0.8:
                text = old.text + text
            world.learn(name, source, text, edit)
        elif what < 0.65:
            # one transcript that several devices read, each in its own time
            source = SourceId("default", "/p", "codex:shared")
            shared["text"] += _words(random, f"s{number}")
            edits = frozenset(f"s{n}" for n in range(number + 1) if f"s{n}: " in shared["text"])
            old = node.journal.heads.get(source)
            if node.replica and (old is None or shared["text"].startswith(old.text)):
                world.history.setdefault(shared["text"], edits)
                world.learn(name, source, shared["text"], f"s{number}")
            else:
                world.history.setdefault(shared["text"], edits)
        elif what < 0.75:
            other = random.choice([n for n in names if n != name])
            if world.network.parted(name, other):
                world.network.join(name, other)
            else:
                world.network.part(name, other)
        elif what < 0.85:
            other = random.choice([n for n in names if n != name])
            world.disconnect(name, other)
            world.at(random.uniform(0.1, 5), partial(world.connect, name, other))
        elif what < 0.95:
            world.crash(name)

            def again(crashed: str = name) -> None:
                if world.nodes[crashed].replica is None:
                    world.start(crashed)
                for other in names:
                    if other != crashed:
                        world.connect(crashed, other)

            if node.replica is None:
                world.at(random.uniform(0.1, 5), again)
        else:
            node.journal.full_disk = random.randint(1, 3)


def _settle(world: World, faults: Faults) -> None:
    world.network.faults = faults
    for node in world.nodes.values():
        node.journal.full_disk = 0
        if node.replica is None:
            world.start(node.name)
    # a session that lived through a partition stays; all others begin anew
    world.connect_all()
    assert world.run(1200, until=world.converged), "devices never became equal"
    # and it stays that way: two devices that agree have nothing to tell each other
    world.run(40)
    assert world.converged()


@pytest.mark.parametrize("seed", range(100), ids=lambda seed: f"{seed}-")
def test_seed_converges_without_a_half_or_older_head(seed: int) -> None:
    _converges(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 1000), ids=lambda seed: f"{seed}-")
def test_many_more_seeds(seed: int) -> None:
    _converges(seed)


def _converges(seed: int) -> None:
    random = Random(seed * 7919)
    faults = Faults(
        loss=random.choice((0.0, 0.05, 0.3)),
        doubling=random.choice((0.0, 0.1)),
        damage=random.choice((0.0, 0.02)),
        delay_s_max=random.choice((0.02, 0.2, 2.0)),
    )
    names = ("A", "B", "C", "D")[: random.choice((2, 3, 3, 4))]
    world = World(
        seed,
        names,
        faults=faults,
        skew_ms=random.choice((0, 120_000, 3_600_000)),
        widths=random.choice(((50,), (50, 40))),
    )
    for source in SOURCES:
        name = world.random.choice(names)
        world.learn(name, source, _words(world.random, f"{name}0"), f"{name}0{source.key}")
    world.connect_all()

    _life(world, 32)
    # ahead clocks hold back what they stamped; time heals them for this test
    for node in world.nodes.values():
        node.skew_ms = 3_600_000
    _settle(world, Faults())

    world.check()
