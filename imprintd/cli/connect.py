"""
Who answers a command: the running daemon, or the data directory itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imprintd.cli.main import Session
from imprintd.errors import NoDaemon

Document = dict[str, Any]


def ask(session: Session, operation: str, params: Mapping[str, object]) -> Document:
    """
    Answer one question from the daemon, or read-only from disk when none runs.

    Args:
        session: The global flags.
        operation: A name in `recall.operations.READING`.
        params: Its parameters; None values are left out.
    """
    from imprintd.ops.client import Client

    given = {
        "workspace": session.workspace,
        **{name: value for name, value in params.items() if value is not None},
    }
    client = Client(session.socket())
    try:
        answer: Document = client.get(
            f"/v1/{operation}", {name: _text(value) for name, value in given.items()}
        )
    except NoDaemon:
        from imprintd.local import answer_from_disk

        answer = answer_from_disk(session.data_dir, session.config(), operation, given)
    return answer


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
