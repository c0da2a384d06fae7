"""
`imprintd redact`: shows what redaction does to a text. Stores nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

import click

from imprintd.cli.main import Command, Session
from imprintd.config import default_cache_dir
from imprintd.errors import UsageError
from imprintd.redact import Redacted, Redactor

BATCH_LINES = 512


@click.command(cls=Command)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option("--jsonl", is_flag=True, help='One {"id", "text"} a line in, one result a line out.')
@click.pass_obj
def redact(session: Session, file: str | None, jsonl: bool) -> int:
    """Show what redaction does to a text (standard input without FILE)."""
    redactor = Redactor(default_cache_dir(os.environ) / "redact")
    try:
        stream = sys.stdin.buffer if file in (None, "-") else open(file or "", "rb")  # noqa: SIM115, PTH123
    except OSError as error:
        raise UsageError(f"cannot open {file}: {error.strerror}") from None
    with stream:
        if jsonl:
            for result in _lines(redactor, stream):
                sys.stdout.write(json.dumps(result) + "\n")
            return 0
        found = redactor.redact(stream.read().decode("utf-8", "surrogateescape"))
    if session.json:
        session.out.document(_document(found, redactor.profile))
        return 0
    session.out.exact(found.text)
    session.out.note(f"{len(found.spans)} redacted; profile {redactor.profile[:16]}")
    return 0


def _lines(redactor: Redactor, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    for batch in _batches(stream):
        rows = [_row(number, line) for number, line in batch]
        results = redactor.redact_many([row["text"] for row in rows])
        for row, result in zip(rows, results, strict=True):
            yield {"id": row.get("id"), **_document(result, redactor.profile)}


def _row(number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise UsageError(f"line {number} is not JSON") from None
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise UsageError(f'line {number} has no "text"')
    return row


def _batches(stream: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    for number, line in enumerate(stream, 1):
        if line.strip():
            batch.append((number, line))
        if len(batch) == BATCH_LINES:
            yield batch
            batch = []
    if batch:
        yield batch


def _document(found: Redacted, profile: str) -> dict[str, Any]:
    return {
        "text": found.text,
        "spans": [{"start": s.start, "end": s.end, "kind": s.kind} for s in found.spans],
        "profile": profile,
    }
