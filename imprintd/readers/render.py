"""
Decoded values as readable text: tool inputs, results, attachments.

Every readable string stands verbatim in the text (not JSON-escaped), after
the path that leads to it. Opaque data is left out and counted by kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from imprintd.readers.tally import Tally, word

_PATH_CHARS_MAX: Final = 200
_DATA_URI: Final = re.compile(r"data:(\w+)/[\w.+-]+(?:;[\w=.+-]+)*;base64,")
_OPAQUE: Final = {
    "signature": "signature",
    "encrypted_content": "encrypted",
    "encrypted_index": "encrypted",
    "encrypted_stdout": "encrypted",
}
_WIDE_NUMBER: Final = re.compile(r"[\s:\[,-]\d{19}")
_EXACT_CHARS_MAX: Final = 200_000
_BINARY: Final = ("data", "base64", "blob")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_=\s-]+")
_DECLARING: Final = ("media_type", "mediaType", "mimeType", "mime_type")


def call_body(name: str, given: Any, tally: Tally) -> str:
    """A tool call: its name, then its input as `key: value` lines."""
    text = value_text(given, tally, opaque=False)
    return f"{name}\n{text}" if text else name


def value_text(value: Any, tally: Tally, *, opaque: bool = True, skip: Collection[str] = ()) -> str:
    """
    A decoded JSON value as text.

    Args:
        value: What the client wrote.
        tally: Counts what is left out.
        opaque: Leave out signatures and encrypted fields by their names.
        skip: Top-level keys that are metadata.
    """
    if type(value) is str:
        return media_free(value, tally)
    if type(value) is dict and _flat(value) and not skip:
        return "\n".join(_line(key, leaf) for key, leaf in value.items())
    out: list[str] = []
    # an explicit stack: nesting comes from outside
    stack: list[tuple[str, Any]] = [("", value)]
    if skip and type(value) is dict:
        stack = [("", {key: child for key, child in value.items() if key not in skip})]
    while stack:
        path, item = stack.pop()
        if len(path) > _PATH_CHARS_MAX and item and type(item) in {dict, list}:
            # said in full once, not again before every leaf below
            out.append(f"{path}:")
            path = "…" + path[-_PATH_CHARS_MAX // 4 :]
        if type(item) is dict and item:
            omitted = _media_keys(item)
            children = []
            for key, child in item.items():
                if key in omitted:
                    tally.omit(omitted[key])
                elif opaque and key in _OPAQUE and type(child) is str:
                    if child:
                        tally.omit(_OPAQUE[key])
                else:
                    children.append((_joined(path, key), child))
            stack.extend(reversed(children))
        elif type(item) is list and item:
            if all(type(child) is not dict and type(child) is not list for child in item):
                if path:
                    out.append(f"{path}:")
                out.extend(f"- {scalar(child, tally)}" for child in item)
            else:
                stack.extend((f"{path}[{at}]", item[at]) for at in range(len(item) - 1, -1, -1))
        else:
            out.append(_line(path, scalar(item, tally)) if path else scalar(item, tally))
    return "\n".join(out)


def scalar(value: Any, tally: Tally) -> str:
    """One leaf: strings verbatim, everything else as JSON."""
    if type(value) is str:
        return media_free(value, tally)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if type(value) is dict or type(value) is list:
        # only empty ones come here
        return "{}" if type(value) is dict else "[]"
    return repr(value)


def media_free(text: str, tally: Tally) -> str:
    """A string, unless it is inline media: then a short note in its place."""
    if text.startswith("data:"):
        match = _DATA_URI.match(text, 0, 200)
        if match:
            kind = media_kind(match[1])
            tally.omit(kind)
            return f"[{kind}]"
    return text


def media_kind(mime: object) -> str:
    """`image`, `audio` or `video` by MIME type, else `document`."""
    family = mime.partition("/")[0] if type(mime) is str else ""
    return family if family in {"image", "audio", "video"} else "document"


def parsed(text: str) -> Any:
    """A JSON object or list inside a string, else None."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        if len(text) < _EXACT_CHARS_MAX and _WIDE_NUMBER.search(text):
            # orjson makes floats of whole numbers beyond 64 bits
            value = json.loads(text)
        else:
            value = orjson.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict or type(value) is list else None


def _flat(table: Mapping[str, Any]) -> bool:
    for key, value in table.items():
        if type(value) is not str or value.startswith("data:") or key in _OPAQUE:
            return False
        if key in _BINARY:
            return False
    return True


def _media_keys(table: Mapping[str, Any]) -> dict[str, str]:
    """Keys of a table that hold declared binary data, with their kind."""
    found: dict[str, str] = {}
    for key in _BINARY:
        data = table.get(key)
        if type(data) is not str or not _BASE64.fullmatch(data, 0, 512):
            continue
        mime = next((table[name] for name in _DECLARING if name in table), None)
        declared = mime is not None or word(table.get("type")) in {"base64", "image", "audio"}
        text = table.get("type") == "text" or (type(mime) is str and mime.startswith("text/"))
        if key == "base64" or (declared and not text):
            found[key] = media_kind(mime if mime is not None else f"{table.get('type')}/")
    return found


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _line(path: str, text: str) -> str:
    return f"{path}:\n{text}" if "\n" in text else f"{path}: {text}"
