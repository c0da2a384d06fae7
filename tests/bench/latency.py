"""
How soon a turn is found, and what an idle daemon takes.

    PYTHONPATH=tests python -m bench.latency [FILES] [IDLE_SECONDS]   default: 2000 30

A real daemon watches a folder; turns are appended one by one and searched for
until found. Then nothing happens for a while, and the processor time, memory
(PSS) and reads of all its processes are counted.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from daemon_support import Conversation, Daemon

from bench.transcripts import write_session

TURNS = 15
SETTLE_MS = 500


def main() -> None:
    """Print latencies, then the cost of doing nothing."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    idle_s = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
    with tempfile.TemporaryDirectory(prefix="imprintd-bench-") as scratch:
        folder = Path(scratch)
        projects = folder / "projects"
        rng = random.Random(5)
        for _ in range(20):
            write_session(folder, rng, 20)
        for number in range(files):
            talk = Conversation(projects, number, cwd=f"/home/ada/p{number % 400}")
            talk.append(talk.turn("hello?", f"answer {number}"))
        config = (
            f"[watch]\nroots = [{{path = {json.dumps(str(folder))}, client = 'claude'}}]\n"
            f"settle_ms = {SETTLE_MS}\n[embed]\nidle_unload_s = 10\n"
        )
        (folder / "run").mkdir()
        with Daemon(folder / "run", config) as daemon:
            daemon.wait_s = 1800
            began = time.perf_counter()
            daemon.wait_until_learned(files)
            print(f"{files} files learned in {time.perf_counter() - began:.0f} s")
            latencies(daemon, Conversation(projects, files + 1))
            time.sleep(25)  # the worker goes
            idle(daemon, idle_s, files)


def latencies(daemon: Daemon, talk: Conversation) -> None:
    """Append turns and search until each is found."""
    found_ms = []
    for number in range(TURNS):
        word = f"zyx{number:03}wvu"
        talk.append(talk.turn(f"what of {word}?", "it is " + "so " * 600))
        start = time.perf_counter()
        while not any(
            word in hit["excerpt"]
            for hit in daemon.client.get("/v1/search", {"q": word, "mode": "lexical"})["hits"]
        ):
            time.sleep(0.01)
        found_ms.append((time.perf_counter() - start) * 1000 - SETTLE_MS)
        time.sleep(0.3)
    found_ms.sort()
    print(
        f"found after the settle time of {SETTLE_MS} ms: median "
        f"{statistics.median(found_ms):.0f} ms, worst {found_ms[-1]:.0f} ms of {TURNS}"
    )


def idle(daemon: Daemon, seconds: float, files: int) -> None:
    """Count what all processes take while nothing happens."""
    assert daemon.process is not None
    main_process = psutil.Process(daemon.process.pid)
    family = [main_process, *main_process.children(recursive=True)]

    def taken() -> tuple[float, int]:
        cpu = sum(p.cpu_times().user + p.cpu_times().system for p in family)
        return cpu, sum(p.io_counters().read_chars for p in family)

    cpu, read = taken()
    time.sleep(seconds)
    cpu_after, read_after = taken()
    pss = sum(p.memory_full_info().pss for p in family) / 1e6
    print(
        f"idle {seconds:.0f} s over {files} files: {(cpu_after - cpu) / seconds:.3%} CPU, "
        f"{read_after - read:,} bytes read, {len(family)} processes, {pss:.0f} MB PSS"
    )


if __name__ == "__main__":
    main()
