"""
What the demonstration shows: steps, quotes and outcomes, in plain lines.
"""

from __future__ import annotations

import sys

from imprintd.cli.output import harmless


class Screen:
    """Prints to stdout; colours and moving lines only on a terminal."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()

    def title(self, text: str) -> None:
        """The first line."""
        self._print(self._bold(text))

    def step(self, text: str) -> None:
        """What happens next."""
        self._print("\n" + self._bold("• " + text))

    def say(self, text: str) -> None:
        """A remark."""
        self._print("  " + harmless(text))

    def good(self, text: str) -> None:
        """Something was seen to work."""
        self._print("  ✓ " + harmless(text))

    def bad(self, text: str) -> None:
        """Something did not."""
        self._print("  ✗ " + harmless(text))

    def quote(self, head: str, text: str) -> None:
        """A few lines of stored text."""
        self._print(f"  {harmless(head)}:")
        for line in [line for line in text.splitlines() if line.strip()][:4]:
            self._print("    │ " + harmless(line)[:110])

    def progress(self, text: str) -> None:
        """A line that replaces itself."""
        if self._live:
            sys.stdout.write("\r\x1b[K" + (f"  {text}" if text else ""))
            sys.stdout.flush()

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._live else text

    def _print(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
