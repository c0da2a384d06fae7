"""
The name of a redaction: a hash of everything that decides its result.

Two devices with the same profile redact alike. It covers the patterns, the
word lists and limits of every module of the room, the labels, and the engines
by version; of the code that joins them it covers `STEPS`. The golden file of
the tests keeps that honest: a changed result under an unchanged profile fails.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import astuple, is_dataclass
from types import ModuleType
from typing import Any, Final

from imprintd.redact import (
    assign,
    colours,
    commands,
    detect,
    engine,
    formats,
    keys,
    kinds,
    library,
    literal,
    names,
    network,
    shapes,
    values,
)

STEPS: Final = 1
"""Raised when code, not data, changes what is found."""

_MODULES: Final = (
    assign,
    colours,
    commands,
    detect,
    formats,
    keys,
    kinds,
    literal,
    names,
    network,
    shapes,
    values,
)


def profile() -> str:
    """The profile as 64 hex digits."""
    content = {
        "steps": STEPS,
        "engines": {
            "hyperscan": engine.VERSION,
            "kingfisher-secret-scanner": library.VERSION,
            "google-re2": shapes.VERSION,
        },
        "patterns": [
            (pattern.number, pattern.expression, pattern.caseless, pattern.start, pattern.once)
            for pattern in detect.patterns()
        ],
        "constants": {module.__name__: _constants(module) for module in _MODULES},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _constants(module: ModuleType) -> dict[str, Any]:
    """The module's constants, in a form that is the same on every machine."""
    return {
        name: plain
        for name, value in sorted(vars(module).items())
        if name.lstrip("_").isupper() and (plain := _plain(value)) is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, re.Pattern):
        return [_plain(value.pattern), int(value.flags)]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(astuple(value))
    if isinstance(value, tuple):
        return [getattr(item, "__name__", None) or _plain(item) for item in value]
    return None
