"""
Commands about the daemon: run, status, pause, resume, rescan.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from imprintd.cli.main import Command, Session
from imprintd.cli.output import harmless

_MIB = 1024 * 1024


@click.command(cls=Command)
@click.pass_obj
def run(session: Session) -> int:
    """
    Run the daemon in the foreground: watch, learn, answer.

    Before the first run, `imprintd roots` shows what would be read; leave
    projects out with [watch] exclude_projects in the configuration.
    """
    from imprintd.app import run as run_daemon

    return run_daemon(session.config(), session.data_dir, session.workspace)


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Show it again every second.")
@click.pass_obj
def status(session: Session, *, watch: bool) -> int:
    """What the daemon is doing."""
    from imprintd.ops.client import Client

    client = Client(session.socket())
    while True:
        document = client.get("/v1/status", {})
        if session.json:
            session.out.document(document)
        else:
            if watch:
                sys.stdout.write("\x1b[H\x1b[J")
            sys.stdout.write("\n".join(harmless(line) for line in _lines(document)) + "\n")
            sys.stdout.flush()
        if not watch:
            return 0
        time.sleep(1)


def _lines(status: dict[str, Any]) -> list[str]:
    backlog = status["backlog"]
    watch = status["watch"]
    lines = [
        f"imprintd {status['version']} is {status['state']}"
        + (
            f"; last learned {_ago(status['last_learned_ms'])}" if status["last_learned_ms"] else ""
        ),
        (
            f"knows    {status['sources']:,} sources, {status['chunks']:,} chunks, "
            f"{status['points']:,} vectors ({status['owed']:,} chunks wait for theirs)"
        ),
    ]
    if backlog["sources"]:
        eta = backlog["eta_seconds"]
        left = "" if eta is None else f", about {_span(eta)} left"
        lines.append(
            f"backlog  {backlog['sources']:,} files, {backlog['bytes'] / _MIB:,.1f} MiB{left}"
        )
    else:
        lines.append("backlog  none: everything on disk is known")
    lines.append(
        f"watches  {len(watch['roots'])} roots, {watch['folders']:,} folders, "
        f"{watch['covered']:,} with kernel watches"
    )
    process = status["process"]
    lines.append(
        f"process  {process['rss_bytes'] / _MIB:,.0f} MiB, {process['cpu_seconds']:,.1f} s CPU"
    )
    for warning in status["warnings"]:
        lines.append(f"! {warning['title']} [{warning['code']}]: {warning['text']}")
        if warning.get("remedy"):
            lines.append(f"    {warning['remedy']}")
    for error in status["errors"][:10]:
        where = f":{error['line']}" if error["line"] else ""
        lines.append(f"x {error['path']}{where}: {error['message']} [{error['reason']}]")
    if len(status["errors"]) > 10:
        lines.append(f"x ... and {len(status['errors']) - 10} more (see --json)")
    return lines


def _ago(ms: int) -> str:
    return _span(max(0.0, time.time() - ms / 1000)) + " ago"


def _span(seconds: float) -> str:
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"


def _tell(session: Session, action: str, said: str) -> int:
    from imprintd.ops.client import Client

    answer = Client(session.socket()).post(f"/v1/{action}", {})
    if session.json:
        session.out.document(answer)
    else:
        session.out.line(said)
    return 0


@click.command(cls=Command)
@click.pass_obj
def pause(session: Session) -> int:
    """Stop learning until `imprintd resume`; searching goes on."""
    return _tell(session, "pause", "paused; `imprintd resume` goes on")


@click.command(cls=Command)
@click.pass_obj
def resume(session: Session) -> int:
    """Go on learning."""
    return _tell(session, "resume", "resumed")


@click.command(cls=Command)
@click.pass_obj
def rescan(session: Session) -> int:
    """Look at every watched file now."""
    return _tell(session, "rescan", "scanning")
