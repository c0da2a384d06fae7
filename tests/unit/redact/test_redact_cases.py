"""
The targets, on the case set beside the checkout; skipped where it is absent.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from imprintd.redact import Redactor

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT.parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="no case set beside the checkout")


@pytest.fixture(scope="module")
def redactor(request: pytest.FixtureRequest) -> Redactor:
    return Redactor(Path(request.config.cache.mkdir("redact-rules")))


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "bench_redaction", ROOT / "tests/bench/redaction.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_targets(redactor: Redactor, bench: ModuleType) -> None:
    score = bench.score(redactor, bench.cases(CASES / "redaction-dev.jsonl"))
    reached = {
        "recall": score.recall() >= 0.88,
        "recall in transcripts": score.recall("source transcript-synthetic") >= 0.97,
        "false hits on hard negatives": score.false_hits("hard") <= 0.01,
        "false hits on repository lines": score.false_hits("creddata-F", "creddata-X") <= 0.04,
        "one pass": score.unstable == 0,
    }
    assert reached == dict.fromkeys(reached, True)


def test_every_report_of_a_scanner_is_right_here(redactor: Redactor, bench: ModuleType) -> None:
    score = bench.score(redactor, bench.cases(CASES / "redaction-reports.jsonl"))
    assert (score.found["all"], sum(score.hits.values())) == (score.spans["all"], 0)
