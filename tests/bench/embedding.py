"""
Measure our `Embedder` against the runtime alone.

Two yardsticks, both bare onnxruntime with arrays made beforehand: `bare` gets
the very same batches without tokenizer and bookkeeping, `unpadded` gets the
same tokens as two full windows a batch, as if no text were ever short.
Rates are per CPU-second of this process, so a busy machine does not change
them. The texts are split into groups; the two sides take turns on each group
and keep their best round, because what the machine's other core does to the
shared cache changes within seconds.

    PYTHONPATH=tests python -m bench.embedding [--model FOLDER] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from imprintd.config import data_dir_from
from imprintd.learn.embed import Embedder, Vectors
from imprintd.learn.windows import BATCH_TOKENS, plan

GROUPS = 6

_PROSE = (
    "The watcher lost {n} events after the folder was moved, so the next scan reads it again.",
    "I looked at the failing test: the retry loop never resets its counter ({n} attempts).",
    "Let me check whether the migration keeps the {w} column before we drop the old table.",
    "Done. The {w} module now refuses a page above {n} characters and says why.",
)
_CODE = (
    "def {w}(rows: list[tuple[int, str]]) -> dict[str, int]:",
    "    return {{key: value for value, key in rows if value > {n}}}",
    "    raise ValueError(f'{w} has no entry {{name!r}}')",
    "    assert {w}.read_bytes() == b'\\x00' * {n}",
)
_LOG = (
    "2026-03-{d:02d}T11:0{k}:42.{n:03d}Z WARN  {w}::pool - connection {n} timed out",
    "FAILED tests/unit/test_{w}.py::test_case_{n} - AssertionError: {n} != {d}",
    "-rw-r--r--  1 app  app   {n}4{d} Mar {d:2d} 09:1{k} src/{w}/handlers_{n}.py",
)
_WORDS = ("ledger", "parser", "socket", "manifest", "upload", "palette", "journal", "tenant")


def texts(count: int, seed: int) -> list[str]:
    """Made-up transcript parts of mixed kind; lengths skewed as in real ones."""
    random_ = random.Random(seed)
    made = []
    for _ in range(count):
        lines = random_.choice((_PROSE, _CODE, _LOG))
        chars = min(6000, int(random_.lognormvariate(6.2, 1.2)) + 20)
        parts: list[str] = []
        while sum(map(len, parts)) < chars:
            parts.append(
                random_.choice(lines).format(
                    n=random_.randrange(1000),
                    d=random_.randrange(1, 29),
                    k=random_.randrange(10),
                    w=random_.choice(_WORDS),
                )
            )
        made.append("\n".join(parts)[:chars])
    return made


def cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def bare(folder: Path, groups: list[list[list[int]]]) -> list[Callable[[], None]]:
    """The runtime alone on ready-made arrays of the same windows, one run a group."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return [_bare_run(session, windows) for windows in groups]


def _bare_run(session: Any, windows: list[list[int]]) -> Callable[[], None]:
    feeds = []
    for batch in plan([len(window) for window in windows], BATCH_TOKENS):
        width = max(len(windows[index]) for index in batch)
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(ids)
        for row, index in enumerate(batch):
            ids[row, : len(windows[index])] = windows[index]
            mask[row, : len(windows[index])] = 1
        feeds.append({"input_ids": ids, "attention_mask": mask})

    def run() -> None:
        for feed in feeds:
            session.run(None, feed)

    return run


def refill(windows: list[list[int]], window_tokens: int) -> list[list[int]]:
    """The windows' tokens again, in full windows only; what is left over is dropped."""
    tokens = [token for window in windows for token in window]
    whole = len(tokens) - len(tokens) % window_tokens
    return [tokens[start : start + window_tokens] for start in range(0, whole, window_tokens)]


def measure(folder: Path, rounds: int) -> dict[str, float | int | str]:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    embedder = Embedder(folder)
    load_s = time.process_time() - began

    def ours(parts: list[str]) -> Vectors:
        return embedder.embed_windows([w for text in parts for w in embedder.windows(text)])

    parts = texts(GROUPS * 10, seed=7)
    groups = [parts[start::GROUPS] for start in range(GROUPS)]
    ours_s = [min(cpu_s(lambda g=g: ours(g)) for _ in range(2)) for g in groups]  # type: ignore[misc]
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cut_s = cpu_s(lambda: [embedder.windows(text) for text in parts])
    windows = [[w for text in group for w in embedder.windows(text)] for group in groups]
    bare_runs = bare(folder, windows)
    full = [refill(group, embedder.info.window_tokens) for group in windows]
    full_runs = bare(folder, full)
    bare_s = [math.inf] * GROUPS
    full_s = [math.inf] * GROUPS
    for _ in range(rounds):
        for number, group in enumerate(groups):
            bare_s[number] = min(bare_s[number], cpu_s(bare_runs[number]))
            ours_s[number] = min(ours_s[number], cpu_s(lambda g=group: ours(g)))  # type: ignore[misc]
            full_s[number] = min(full_s[number], cpu_s(full_runs[number]))
    full_tokens = sum(len(window) for group in full for window in group)
    full_rate = full_tokens / sum(full_s)
    tokens = sum(len(window) for group in windows for window in group)
    chars = sum(map(len, parts))
    query_ms = statistics.median(
        cpu_s(lambda q=text[:60]: embedder.query(q)) * 1e3  # type: ignore[misc]
        for text in texts(40, seed=8)
    )
    flat = windows[0]
    alone = np.concatenate([embedder.embed_windows([window]) for window in flat])
    return {
        "texts": len(parts),
        "chars": chars,
        "windows": sum(map(len, windows)),
        "tokens": tokens,
        "chars_per_token": round(chars / tokens, 2),
        "tokens_per_cpu_s": round(tokens / sum(ours_s)),
        "bare_tokens_per_cpu_s": round(tokens / sum(bare_s)),
        "share_of_bare": round(sum(bare_s) / sum(ours_s), 3),
        "unpadded_tokens_per_cpu_s": round(full_rate),
        "share_of_unpadded": round(tokens / sum(ours_s) / full_rate, 3),
        "tokenizing_share": round(cut_s / sum(ours_s), 4),
        "query_cpu_ms": round(query_ms, 1),
        "load_cpu_s": round(load_s, 2),
        "rss_before_mb": round(before_kb / 1024),
        "rss_peak_mb": round(peak_kb / 1024),
        "batch_difference_max": float(np.abs(alone - embedder.embed_windows(flat)).max()),
        "onnxruntime": onnxruntime.__version__,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--model", type=Path, help="an installed model's folder")
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    folder = arguments.model or data_dir_from(None, os.environ) / "models" / "minilm-l6-v2"
    json.dump(measure(folder, arguments.rounds), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
