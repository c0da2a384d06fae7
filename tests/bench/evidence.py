"""
Twelve questions whose answer lies deep in a tool's output, and four controls.

The cases are made here. Each puts one fact somewhere in the middle of a long
output (a log, a listing, a table, a diff) among others of the same kind, in a
conversation where people talk about other things; the question names the fact
in its own words. `before` indexes only what people said, as if outputs were
reduced to their header; `after` is what the daemon does. Controls ask for
things that people said themselves: they must rank the same both ways.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.stand import Said, Stand

DAY: Final = "2026-11-05T09:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the key of the source that answers it, the words that must show."""

    question: str
    key: str
    shown: str
    control: bool = False


_SERVICES: Final = ("billing", "ledger", "mailer", "search", "gateway", "catalog", "session")


def _log(rng: random.Random, fact: str, lines: int = 900) -> str:
    out = [
        f"2026-11-05 09:{n // 60 % 60:02d}:{n % 60:02d} INFO {rng.choice(_SERVICES)}: "
        f"request {rng.randrange(10**8):08x} served in {rng.randint(2, 90)} ms"
        for n in range(lines)
    ]
    out[rng.randint(lines // 4, 3 * lines // 4)] = fact
    return "\n".join(out)


def _listing(rng: random.Random, fact: str, lines: int = 700) -> str:
    out = [
        f"-rw-r--r-- 1 build build {rng.randint(10**3, 10**6):>8} Nov  5 09:00 "
        f"dist/{rng.choice(_SERVICES)}/chunk-{rng.randrange(16**6):06x}.js"
        for _ in range(lines)
    ]
    out[rng.randint(lines // 4, 3 * lines // 4)] = fact
    return "\n".join(out)


def _tests(rng: random.Random, fact: str, lines: int = 800) -> str:
    out = [
        f"tests/{rng.choice(_SERVICES)}/test_case_{n}.py::test_step_{rng.randint(1, 99)} PASSED"
        for n in range(lines)
    ]
    out[rng.randint(lines // 4, 3 * lines // 4)] = fact
    return "\n".join(out)


def _table(rng: random.Random, fact: str, lines: int = 800) -> str:
    out = [
        f"| {rng.randrange(10**6):06d} | {rng.choice(_SERVICES)} | {rng.randint(1, 500)} | open |"
        for _ in range(lines)
    ]
    out[rng.randint(lines // 4, 3 * lines // 4)] = fact
    return "\n".join(out)


_FACTS: Final[tuple[tuple[str, str, Callable[..., str]], ...]] = (
    (
        "2026-11-05 09:21:40 WARN mailer: certificate of smtp.tannenhof.example expired",
        "which mail server had an expired certificate",
        _log,
    ),
    (
        "2026-11-05 09:12:09 ERROR ledger: deadlock between accounts 4471 and 9082",
        "deadlock between two accounts in the ledger",
        _log,
    ),
    (
        "2026-11-05 09:33:11 WARN gateway: clock of node kestrel-7 is 41 s ahead",
        "node whose clock runs ahead kestrel",
        _log,
    ),
    (
        "2026-11-05 09:02:51 ERROR catalog: column unit_weight has no default value",
        "unit_weight column default missing",
        _log,
    ),
    (
        "-rw-r--r-- 1 build build 48812733 Nov  5 09:00 dist/vendor/moment-timezone-all.js",
        "how big is the moment timezone bundle in vendor",
        _listing,
    ),
    (
        "lrwxrwxrwx 1 build build 24 Nov  5 09:00 dist/current -> releases/quartz-rev-88",
        "which release does dist/current point to quartz",
        _listing,
    ),
    (
        "-rw-rw-rw- 1 nobody build 17 Nov  5 09:00 dist/session/.htpasswd_backup",
        "world writable htpasswd backup file",
        _listing,
    ),
    (
        "tests/ledger/test_rounding.py::test_half_even_on_yen FAILED: assert 1005 == 1004",
        "which rounding test failed for yen",
        _tests,
    ),
    (
        "tests/gateway/test_retry.py::test_backoff_jitter XFAIL (flaky on arm64, see notes)",
        "flaky backoff jitter test on arm64",
        _tests,
    ),
    (
        "tests/search/test_umlaut.py::test_fold SKIPPED (locale de_AT.utf8 is not installed)",
        "test skipped because a locale is not installed",
        _tests,
    ),
    (
        "| 118402 | mailer | 9 | blocked by procurement: waiting for the Oslo contract |",
        "ticket blocked by procurement Oslo contract",
        _table,
    ),
    (
        "| 557310 | catalog | 3 | reopened: price shown without VAT in Slovenia |",
        "price without VAT Slovenia reopened",
        _table,
    ),
)

_TALK: Final[tuple[tuple[str, str], ...]] = (
    ("please check what happened here before lunch", "Done, I looked at the output."),
    ("is anything odd in there?", "Most of it is routine, one line stands out."),
    ("show me the current state", "Here it is, I will summarise it later."),
)

_CONTROLS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "should the invoice footer use the grey logo",
        "We agreed: the invoice footer uses the grey logo from spring on.",
        "grey logo invoice footer",
    ),
    (
        "who owns the onboarding checklist now",
        "Marta took over the onboarding checklist from Jules.",
        "who owns the onboarding checklist",
    ),
    (
        "can we drop support for the paper form",
        "Yes, the paper form goes away after the audit in May.",
        "when does the paper form go away",
    ),
    (
        "name of the meeting room with the broken projector",
        "The projector in room Lindwurm is broken since Tuesday.",
        "broken projector meeting room",
    ),
)


def cases() -> list[Case]:
    found = [Case(question, f"case-{n}", fact) for n, (fact, question, _) in enumerate(_FACTS)]
    found += [
        Case(question, f"control-{n}", answer, control=True)
        for n, (_, answer, question) in enumerate(_CONTROLS)
    ]
    return found


def conversations(*, outputs: bool) -> dict[str, list[Said]]:
    """Every source by key; without `outputs` a tool's output is its first line."""
    rng = random.Random(12)
    found: dict[str, list[Said]] = {}
    for number, (fact, _, make) in enumerate(_FACTS):
        question, answer = _TALK[number % len(_TALK)]
        text = make(rng, fact)
        shown = text if outputs else text.split("\n", 1)[0]
        found[f"case-{number}"] = [
            ("user", DAY, question),
            ("tool", DAY, shown),
            ("assistant", DAY, answer),
        ]
    for number, (question, answer, _) in enumerate(_CONTROLS):
        found[f"control-{number}"] = [("user", DAY, question), ("assistant", DAY, answer)]
    return found


def run(model: Path | None) -> dict[str, Any]:
    """Ranks of both ways, and how many facts are in the excerpt of the first hit."""
    report: dict[str, Any] = {}
    ranks: dict[str, list[int]] = {}
    for way in ("before", "after"):
        with (
            tempfile.TemporaryDirectory(prefix="imprintd-evidence-") as folder,
            Stand(Path(folder), model) as stand,
        ):
            for key, said in conversations(outputs=way == "after").items():
                stand.publish("/bench/evidence", key, said)
            stand.embed()
            ranks[way], shown = _ranks(stand)
        facts = ranks[way][: len(_FACTS)]
        report[way] = {
            "at_1": sum(rank == 1 for rank in facts),
            "at_5": sum(0 < rank <= 5 for rank in facts),
            "of": len(facts),
            "controls_at_1": sum(rank == 1 for rank in ranks[way][len(_FACTS) :]),
            "fact_in_excerpt": shown,
        }
    controls = [ranks[way][len(_FACTS) :] for way in ("before", "after")]
    report["controls_unchanged"] = controls[0] == controls[1]
    return report


def _ranks(stand: Stand) -> tuple[list[int], int]:
    """The place of each case's source among ten hits, 0: not there; facts that are shown."""
    ranks, shown = [], 0
    for case in cases():
        hits = stand.ask(case.question, None, "hybrid", 10).hits
        sources = [hit.source for hit in hits]
        rank = sources.index(case.key) + 1 if case.key in sources else 0
        ranks.append(rank)
        if rank == 1 and not case.control:
            shown += case.shown in hits[0].excerpt
    return ranks, shown
