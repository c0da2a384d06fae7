"""
Synthetic Claude Code transcripts for measuring: our own words, real shapes.

One session has typed questions, thinking, text, tool calls and outputs with a
second copy of each output, in the proportions met in published transcripts.
"""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path

WORDS = [
    "anchor",
    "basin",
    "beacon",
    "canal",
    "cargo",
    "chart",
    "compass",
    "current",
    "deck",
    "dock",
    "draft",
    "drift",
    "engine",
    "fathom",
    "ferry",
    "flag",
    "float",
    "fog",
    "fuel",
    "gale",
    "galley",
    "gauge",
    "harbour",
    "hatch",
    "helm",
    "hull",
    "island",
    "jetty",
    "keel",
    "knot",
    "lamp",
    "lantern",
    "latch",
    "league",
    "ledger",
    "light",
    "lock",
    "log",
    "map",
    "mast",
    "mooring",
    "net",
    "oar",
    "pier",
    "pilot",
    "port",
    "pump",
    "quay",
    "raft",
    "reef",
    "rigging",
    "rope",
    "rudder",
    "sail",
    "salt",
    "sand",
    "shoal",
    "signal",
    "sound",
    "spar",
    "stern",
    "storm",
    "strait",
    "surge",
    "swell",
    "tide",
    "timber",
    "tow",
    "vessel",
    "wake",
    "wave",
    "weather",
    "weir",
    "wharf",
    "winch",
    "wind",
    "yard",
]


def sentence(rng: random.Random, low: int = 6, high: int = 14) -> str:
    """A sentence of words that mean nothing together."""
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high))).capitalize() + "."


def write_session(folder: Path, rng: random.Random, turns: int) -> int:
    """Write one session; returns its bytes."""
    session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    cwd = f"/home/dev/{rng.choice(WORDS)}"
    path = folder / cwd.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    written = 0

    def record(kind: str, content: object, **more: object) -> bytes:
        nonlocal number
        number += 1
        head = {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": cwd,
            "sessionId": session,
            "version": "2.1.90",
            "gitBranch": "main",
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            "timestamp": f"2026-10-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:00.000Z",
        }
        return json.dumps({**head, **more}, separators=(",", ":")).encode() + b"\n"

    def text(sentences: int) -> str:
        return " ".join(sentence(rng) for _ in range(sentences))

    with path.open("wb") as file:
        for _ in range(turns):
            call = f"toolu_{rng.getrandbits(96):024x}"
            output = "\n".join(
                f"src/{rng.choice(WORDS)}/{rng.choice(WORDS)}.py:{rng.randint(1, 900)}: "
                + sentence(rng, 8, 8)
                for _ in range(rng.randint(5, 60))
            )
            written += file.write(record("user", text(1)))
            thinking = {"type": "thinking", "thinking": text(2), "signature": "c2lnbmF0dXJl" * 12}
            written += file.write(record("assistant", [thinking]))
            written += file.write(record("assistant", [{"type": "text", "text": text(2)}]))
            tool = {"type": "tool_use", "id": call, "name": "Bash"}
            command = {"command": f"grep -rn {rng.choice(WORDS)} src | head"}
            written += file.write(record("assistant", [{**tool, "input": command}]))
            result = {"type": "tool_result", "tool_use_id": call, "content": output}
            copy = {"stdout": output, "stderr": "", "interrupted": False}
            written += file.write(record("user", [result], toolUseResult=copy))
            written += file.write(record("assistant", [{"type": "text", "text": text(2)}]))
    return written


def write_corpus(folder: Path, megabytes: float, seed: int = 7) -> int:
    """Write sessions of about half a megabyte up to a size; returns the bytes written."""
    rng = random.Random(seed)
    written = 0
    while written < megabytes * 1e6:
        written += write_session(folder / "projects", rng, 60)
    return written
