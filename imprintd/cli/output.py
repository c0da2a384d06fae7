"""
Words on the terminal, or one JSON document; progress and errors on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from imprintd.errors import ImprintdError

# what a terminal might obey: C0 and C1 controls (but tab and newline), bidi overrides
_HARMFUL = {
    **{n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0)) if n not in (0x09, 0x0A)},
    **{n: f"\\u{n:04x}" for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    **dict.fromkeys(range(55296, 57344), "�"),
}


def harmless(text: str) -> str:
    """The text with everything a terminal might obey made visible."""
    return text.translate(_HARMFUL)


@dataclass(frozen=True, slots=True)
class Output:
    """
    Where a command's answer goes.

    Attributes:
        json: One JSON document on stdout instead of words.
    """

    json: bool

    def document(self, document: Any) -> None:
        """Print the answer as JSON; lone surrogates stay escaped."""
        sys.stdout.write(json.dumps(document, indent=2 if sys.stdout.isatty() else None) + "\n")

    def line(self, text: str = "") -> None:
        """Print one line of words on stdout."""
        sys.stdout.write(harmless(text) + "\n")

    def exact(self, text: str) -> None:
        """Print stored text byte for byte into a pipe, made harmless on a terminal."""
        if sys.stdout.isatty():
            sys.stdout.write(harmless(text))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))

    def table(self, rows: Iterable[Sequence[object]], heads: Sequence[str]) -> None:
        """Print rows in aligned columns; numbers to the right."""
        cells = [[harmless(str(cell)) for cell in row] for row in rows]
        widths = [
            max(len(heads[i]), *(len(row[i]) for row in cells)) if cells else len(heads[i])
            for i in range(len(heads))
        ]
        for row in [list(heads), *cells]:
            padded = [
                cell.rjust(width) if cell.replace(",", "").isdigit() else cell.ljust(width)
                for cell, width in zip(row, widths, strict=True)
            ]
            sys.stdout.write("  ".join(padded).rstrip() + "\n")

    def note(self, text: str) -> None:
        """Say something beside the answer, on stderr."""
        sys.stderr.write(harmless(text) + "\n")

    def error(self, error: ImprintdError) -> None:
        """Say what went wrong and what to do; as JSON on stdout when asked for."""
        if self.json:
            self.document(
                {
                    "error": {
                        "code": error.code,
                        "message": error.message,
                        "remedy": error.remedy,
                    }
                }
            )
        self.note(f"imprintd: {error.message}")
        if error.remedy:
            self.note(f"  {error.remedy}")
