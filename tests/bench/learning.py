"""
What learning costs: CPU and memory per megabyte, disk, and beside a neighbour.

    PYTHONPATH=tests python -m bench.learning [MEGABYTES ...]      default: 10 100

Each size is learned by `imprintd learn --embed none` in a fresh data
directory, in a process of its own. For 100 MB `agentsview`, another archive of
transcripts, syncs the same folder in the same run; it is installed from the
package registry into a virtual environment of its own, or left out.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.transcripts import write_corpus

PEER_MEGABYTES = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and peak memory of one process and its children."""

    cpu_s: float
    peak_mb: float
    stdout: str


def run(command: list[str], environ: dict[str, str]) -> Cost:
    """Run a command to its end and say what it took."""
    script = (
        "import resource,subprocess,sys,json;"
        "p=subprocess.run(sys.argv[1:],capture_output=True,text=True);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([p.returncode,u.ru_utime+u.ru_stime,u.ru_maxrss/1024,p.stdout,p.stderr]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    code, cpu_s, peak_mb, stdout, stderr = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{command[0]} failed: {stderr[-2000:]}")
    return Cost(cpu_s, peak_mb, stdout)


def imprintd(folder: Path, transcripts: Path) -> tuple[Cost, dict[str, float]]:
    """Learn a folder without embedding; cost, and sizes by name in bytes."""
    data = folder / "data"
    environ = {**os.environ, "IMPRINTD_DATA_DIR": str(data)}
    cost = run(
        [sys.executable, "-m", "imprintd", "learn", str(transcripts), "--embed", "none", "--json"],
        environ,
    )
    report = json.loads(cost.stdout)
    disk = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    return cost, {"text": report["chars"], "disk": disk, "chunks": report["chunks"]}


def agentsview(folder: Path, transcripts: Path) -> Cost | None:
    """Sync the same folder with the neighbour; None where it cannot be installed."""
    venv = Path(sys.prefix) / "peers"
    program = venv / "bin" / "agentsview"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        done = subprocess.run(
            [str(venv / "bin" / "pip"), "install", "-q", "agentsview"],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return None
    home = folder / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "projects").symlink_to(transcripts / "projects")
    environ = {**os.environ, "HOME": str(home), "AGENTSVIEW_NO_DAEMON": "1"}
    return run([str(program), "sync"], environ)


def main() -> None:
    """Print a line for each size."""
    sizes = [float(word) for word in sys.argv[1:]] or [10.0, 100.0]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("    MB   CPU-s  CPU-s/MB  peak MB  chunks  disk / text")
    with tempfile.TemporaryDirectory(prefix="imprintd-bench-") as scratch:
        for size in sizes:
            folder = Path(scratch) / f"{size:g}"
            transcripts = folder / "claude"
            megabytes = write_corpus(transcripts, size) / 1e6
            cost, counts = imprintd(folder, transcripts)
            print(
                f"{megabytes:6.0f} {cost.cpu_s:7.2f} {cost.cpu_s / megabytes:9.4f}"
                f" {cost.peak_mb:8.0f} {counts['chunks']:7.0f} {counts['disk'] / counts['text']:8.2f}"
            )
            if size == PEER_MEGABYTES:
                peer = agentsview(folder, transcripts)
                if peer is None:
                    print("       agentsview could not be installed: not compared")
                else:
                    print(
                        f"       agentsview sync: {peer.cpu_s:.2f} CPU-s;"
                        f" imprintd takes {cost.cpu_s / peer.cpu_s:.2f} of it"
                    )


if __name__ == "__main__":
    main()
