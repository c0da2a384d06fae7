"""
`imprintd verify`: manifests against the index, and the rebuild of every text.
"""

from __future__ import annotations

from typing import Any

import click

from imprintd.cli.main import Command, Session
from imprintd.cli.progress import Tell, counting_bar
from imprintd.errors import NoDaemon, UsageError


@click.command(cls=Command)
@click.argument("source", required=False)
@click.option("--project", help="Where the source key alone is not clear.")
@click.option("--all", "everything", is_flag=True, help="Every source of every workspace.")
@click.option("--repair", is_flag=True, help="Mend what was found.")
@click.pass_obj
def verify(
    session: Session, source: str | None, project: str | None, *, everything: bool, repair: bool
) -> int:
    """Compare manifests with the index and rebuild texts; exit code 5 on a difference."""
    if (source is None) == (not everything):
        raise UsageError("name one SOURCE or say --all")
    wish = {
        "workspace": None if everything else session.workspace,
        "source": source,
        "project": project,
        "repair": repair,
    }
    with counting_bar("verifying", quiet=session.json) as tell:
        verdict = _verify(session, wish, tell)
    if session.json:
        session.out.document(verdict)
    else:
        session.out.line(
            f"{verdict['ok']} of {verdict['sources']} sources in order, "
            f"{verdict['rebuilt_exactly']} rebuilt exactly; {verdict['missing']} missing, "
            f"{verdict['changed']} changed, {verdict['extra']} extra, "
            f"{verdict['pending']} waiting for vectors"
            + (f"; {verdict['repaired']} repaired" if repair else "")
        )
        for problem in verdict["problems"]:
            session.out.note(f"{problem['source']}: {', '.join(problem['reasons'])}")
    return 0 if verdict["ok"] == verdict["sources"] else 5


def _verify(session: Session, wish: dict[str, Any], tell: Tell) -> dict[str, Any]:
    from imprintd.ops.client import Client

    try:
        for message in Client(session.socket()).stream(
            "POST", "/v1/verify", body=wish, timeout_s=3600
        ):
            if "progress" in message:
                tell(message["progress"])
            else:
                return dict(message["result"])
    except NoDaemon:
        pass
    from imprintd.local import verify_here

    return verify_here(session.data_dir, session.config(), wish, tell)
