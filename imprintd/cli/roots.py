"""
`imprintd roots`: what the daemon would read, before it does.
"""

from __future__ import annotations

import click

from imprintd.cli.main import Command, Session


@click.command(cls=Command)
@click.pass_obj
def roots(session: Session) -> int:
    """Show which folders would be read, with files and sizes. Reads no content."""
    from imprintd.local import survey

    rows = survey(session.config())
    if session.json:
        session.out.document(rows)
        return 0
    session.out.table(
        ((r["client"], r["path"], r["files"], f"{r['bytes'] / 1e6:,.1f} MB") for r in rows),
        ("CLIENT", "FOLDER", "FILES", "SIZE"),
    )
    session.out.note("leave projects out with [watch] exclude_projects = [...]")
    return 0
