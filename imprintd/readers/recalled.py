"""
imprintd's own answers inside a transcript: kept as a stub, never learned again.

Without this a memory would be learned anew each time it is looked up, and
crowd out its own source.
"""

from __future__ import annotations

import re
from typing import Any, Final

from imprintd.model.recall import RECALL_CLOSE, RECALL_OPEN, RECALL_STUB
from imprintd.readers.tally import Tally

_TOOL: Final = re.compile(r"mcp__imprintd(?:_\w*?)?__|imprintd[./]")
_SHELL: Final = re.compile(
    r"""(?:^|[;&|(\n`]|-\w*c\s+['"]|\bcmd["']?\s*[:=]\s*["'`])\s*
        (?:\w+=\S*\s+)*
        (?:(?:sudo|time|env|nohup|command|exec|uvx|uv\s+run|poetry\s+run|pipx\s+run)\s+)*
        (?:python[\d.]*\s+-m\s+)?
        (?:[\w./~-]*/)?imprintd
        (?:\s+--?[\w-]+(?:=\S+|\s+(?!search\b|get\b|read\b|chunks\b|events\b|show\b)[^\s;|&-]\S*)?)*
        \s+(?:search|get|read|chunks|events|show)\b""",
    re.VERBOSE,
)
_PLACES_MAX: Final = 32
_WINDOW_CHARS: Final = 240
_SHELL_TOOLS: Final = frozenset(
    {
        "Bash",
        "PowerShell",
        "Monitor",
        "shell",
        "shell_command",
        "exec_command",
        "exec",
        "local_shell",
        "container.exec",
    }
)


def recalls(name: str, given: Any) -> bool:
    """Whether a tool call asks imprintd for memory."""
    if _TOOL.match(name):
        return True
    if name not in _SHELL_TOOLS:
        return False
    if type(given) is dict:
        given = given.get("command", given.get("cmd"))
    if type(given) is list:
        words = [word for word in given if type(word) is str]
        return any(_runs(word) for word in words) or _runs(" ".join(words))
    return type(given) is str and _runs(given)


def _runs(command: str) -> bool:
    """Whether a shell command runs one of the questions; bounded work."""
    at = command.find("imprintd")
    for _ in range(_PLACES_MAX):
        if at < 0:
            return False
        if _SHELL.search(command[max(0, at - _WINDOW_CHARS) : at + _WINDOW_CHARS]):
            return True
        at = command.find("imprintd", at + 1)
    return False


def without_recalled(body: str, tally: Tally, *, output: bool, whole: bool) -> str:
    """
    A body with recalled text replaced.

    Args:
        body: The text.
        tally: Counts each replacement as `recalled`.
        output: It is a tool's output, which a client may have cut: an opened
            mark that is never closed runs to the end.
        whole: It answers a call that asked imprintd.
    """
    marked = RECALL_OPEN in body
    if not marked:
        if whole and body.strip() and body != RECALL_STUB:
            tally.omit("recalled")
            return RECALL_STUB
        return body
    out: list[str] = []
    at = 0
    while True:
        start = body.find(RECALL_OPEN, at)
        if start < 0:
            break
        end = body.find(RECALL_CLOSE, start)
        if end < 0 and not output:
            break
        out += (body[at:start], RECALL_STUB)
        tally.omit("recalled")
        at = len(body) if end < 0 else end + len(RECALL_CLOSE)
    out.append(body[at:])
    return "".join(out)
