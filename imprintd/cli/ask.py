"""
Commands that read: sources, search, get, chunks, read, events.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from imprintd.cli.connect import ask
from imprintd.cli.main import Command, Session
from imprintd.cli.when import milliseconds
from imprintd.model.event import KINDS, ROLES


def _when(words: str | None) -> int | None:
    return None if words is None else milliseconds(words, dt.datetime.now().astimezone())


def _day(moment: str) -> str:
    return dt.datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


@click.command(cls=Command)
@click.option("--project", help="Only this project (a folder, or the end of its path).")
@click.option("--client", help="Only this client, such as claude or codex.")
@click.pass_obj
def sources(session: Session, project: str | None, client: str | None) -> int:
    """List what is known, the newest first."""
    found = ask(session, "sources", {"project": project, "client": client})["sources"]
    if session.json:
        session.out.document(found)
        return 0
    if not found:
        session.out.note("nothing is known yet; `imprintd learn ~/.claude` or `imprintd run`")
        return 0
    session.out.table(
        (
            (s["source"][:15], _day(s["updated_at"]), s["project"], s["chars"], s["title"][:60])
            for s in found
        ),
        ("SOURCE", "UPDATED", "PROJECT", "CHARS", "TITLE"),
    )
    return 0


@click.command(cls=Command)
@click.argument("query")
@click.option("--project", help="Only this project.")
@click.option("--client", help="Only this client.")
@click.option("--kind", type=click.Choice(KINDS), help="Only events of this kind.")
@click.option("--role", type=click.Choice(ROLES), help="Only events of this role.")
@click.option("--since", help="Not before: 2026-11-03, 2h, yesterday, tuesday.")
@click.option("--until", help="Not after.")
@click.option("--device", help="Only what this device learned.")
@click.option("--language", help="Only this language (speech).")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "lexical", "vector"]),
    default="hybrid",
    show_default=True,
)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.pass_obj
def search(session: Session, /, query: str, **filters: Any) -> int:
    """
    Search everything that is known.

    \b
    imprintd search "retry with jitter"
    imprintd search E1234 --project ~/shop --since 2w --kind tool_output
    """
    filters["since"] = _when(filters["since"])
    filters["until"] = _when(filters["until"])
    answer = ask(session, "search", {"q": query, **filters})
    if session.json:
        session.out.document(answer)
        return 0 if answer["hits"] else 3
    for number, hit in enumerate(answer["hits"], 1):
        places = len(hit["places"])
        more = f"  (+{places - 1} more places)" if places > 1 else ""
        session.out.line(f"{number}. {hit['source'][:15]}  {hit['kind']}  {hit['project']}{more}")
        for line in hit["excerpt"].splitlines()[:6]:
            session.out.line(f"   {line[:160]}")
        session.out.line(f"   -> {hit['expand']}")
    for note in answer.get("notes", []):
        session.out.note(note)
    if not answer["hits"]:
        session.out.note("nothing found")
        return 3
    return 0


@click.command(cls=Command)
@click.argument("memory_id")
@click.option("--start", type=click.IntRange(0), default=0, help="First character to show.")
@click.option("--max-chars", type=click.IntRange(100, 12_000), default=4000, show_default=True)
@click.pass_obj
def get(session: Session, memory_id: str, start: int, max_chars: int) -> int:
    """Expand one chunk that a search named."""
    answer = ask(session, "get", {"memory_id": memory_id, "start": start, "max_chars": max_chars})
    if session.json:
        session.out.document(answer)
        return 0
    session.out.exact(answer["content"])
    if answer["next_start"] is not None:
        session.out.note(f"more: imprintd get {memory_id} --start {answer['next_start']}")
    return 0


@click.command(cls=Command)
@click.argument("source")
@click.option("--project", help="Where the source key alone is not clear.")
@click.option("--start", type=click.IntRange(0), default=0, help="First chunk, by index.")
@click.option("--end", type=click.IntRange(0), help="One past the last chunk.")
@click.pass_obj
def chunks(session: Session, /, source: str, **params: Any) -> int:
    """Page through the chunks of a source."""
    answer = ask(session, "chunks", {"source": source, **params})
    if session.json:
        session.out.document(answer)
        return 0
    for chunk in answer["chunks"]:
        session.out.line(
            f"--- {chunk['index']}  {chunk['memory_id']}  {chunk['start']}..{chunk['end']}"
        )
        session.out.exact(chunk["content"])
        if chunk["hint"]:
            session.out.line(chunk["hint"])
    if answer["next_start"] is not None:
        session.out.note(f"more: imprintd chunks {source} --start {answer['next_start']}")
    return 0


@click.command(cls=Command)
@click.argument("source")
@click.option("--project", help="Where the source key alone is not clear.")
@click.option("--start", type=click.IntRange(0), default=0, help="First character.")
@click.option("--max-chars", type=click.IntRange(100, 12_000), default=4000, show_default=True)
@click.option("--version", help="Fail if the source was replaced since this version.")
@click.option("--verify", is_flag=True, help="Compare the manifest with the index as well.")
@click.pass_obj
def read(session: Session, /, source: str, *, verify: bool, **params: Any) -> int:
    """Read a page of the exact stored text."""
    answer = ask(session, "read", {"source": source, "verify": verify or None, **params})
    damaged = verify and any(answer["integrity"][k] for k in ("missing", "changed", "extra"))
    if session.json:
        session.out.document(answer)
    else:
        session.out.exact(answer["text"])
        if answer["next_start"] is not None:
            session.out.note(
                f"more: imprintd read {source} --start {answer['next_start']}"
                f" --version {answer['version']}"
            )
        if verify:
            session.out.note(f"integrity: {answer['integrity']}")
    return 5 if damaged else 0


@click.command(cls=Command)
@click.argument("source")
@click.option("--project", help="Where the source key alone is not clear.")
@click.pass_obj
def events(session: Session, source: str, project: str | None) -> int:
    """The events of a conversation, read back from its text."""
    answer = ask(session, "source-events", {"source": source, "project": project})
    if session.json:
        session.out.document(answer)
        return 0
    for event in answer["events"]:
        session.out.line(
            f"[{event['turn']}] {event['role']} {event['kind']} {event['timestamp'] or ''}"
        )
        for line in event["body"].splitlines()[:12]:
            session.out.line(f"    {line[:200]}")
    return 0
