"""
`imprintd learn`: files and folders now, to the end.
"""

from __future__ import annotations

import os
from typing import Any

import click

from imprintd.cli.main import Command, Session
from imprintd.cli.progress import Tell, learning_bar
from imprintd.errors import NoDaemon, UsageError


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--salvage",
    is_flag=True,
    help="Take every whole record of damaged lines; torn bytes are counted as omitted.",
)
@click.option(
    "--embed",
    type=click.Choice(["some", "all", "none"]),
    default="some",
    show_default=True,
    help="Vectors now: a few, all of them, or leave them to the daemon.",
)
@click.option("--force", is_flag=True, help="Look into files that have not changed, too.")
@click.pass_obj
def learn(
    session: Session, paths: tuple[str, ...], *, salvage: bool, embed: str, force: bool
) -> int:
    """
    Learn files and folders now, with a progress bar.

    \b
    imprintd learn ~/.claude ~/.codex
    imprintd learn --salvage damaged.jsonl
    """
    absolute = [os.path.abspath(os.path.expanduser(path)) for path in paths]  # noqa: PTH100, PTH111
    for given, path in zip(paths, absolute, strict=True):
        if not os.path.lexists(path):
            raise UsageError(f"{given} does not exist")
    wish = {"paths": absolute, "salvage": salvage, "embed": embed, "force": force}
    with learning_bar(quiet=session.json) as tell:
        report = _learn(session, wish, tell)
    if session.json:
        session.out.document(report)
    else:
        _say(session, report)
    return 1 if report["failed_count"] else 0


def _learn(session: Session, wish: dict[str, Any], tell: Tell) -> dict[str, Any]:
    from imprintd.ops.client import Client

    body = {**wish, "workspace": session.workspace}
    try:
        for message in Client(session.socket()).stream(
            "POST", "/v1/learn", body=body, timeout_s=3600
        ):
            if "progress" in message:
                tell(message["progress"])
            else:
                return dict(message["result"])
    except NoDaemon:
        pass
    from imprintd.local import learn_here

    return learn_here(session.data_dir, session.config(), session.workspace, wish, tell)


def _say(session: Session, report: dict[str, Any]) -> None:
    out = session.out
    out.line(
        f"{report['learned']} learned, {report['unchanged']} unchanged, "
        f"{report['failed_count']} failed: {report['sources']} sources, "
        f"{report['events']:,} events, {report['chars']:,} characters, {report['seconds']} s"
    )
    omitted = {**report["omissions"]}
    if omitted:
        out.line("omitted: " + ", ".join(f"{n:,} {kind}" for kind, n in sorted(omitted.items())))
    if report["unknown"]:
        names = ", ".join(f"{n} {name}" for name, n in sorted(report["unknown"].items()))
        out.line(f"unknown record types (counted, not read): {names}")
    for name in ("zero_filled_lines", "joined_lines", "repeated_records", "pending_tail_bytes"):
        if report[name]:
            out.line(f"{name.replace('_', ' ')}: {report[name]:,}")
    if report.get("pending"):
        out.line(f"{report['pending']:,} chunks wait for vectors; the daemon makes them")
    for failure in report["failed"]:
        where = f":{failure['line']}" if failure["line"] else ""
        out.note(f"{failure['path']}{where}: {failure['message']} [{failure['reason']}]")
        if failure["remedy"]:
            out.note(f"  {failure['remedy']}")
