"""
How imprintd marks what it recalls, so that no reader learns it as new.

Whatever prints retrieved memory into a conversation wraps it in these marks.
"""

from __future__ import annotations

from typing import Final

RECALL_OPEN: Final = "<imprintd-recall>"
RECALL_CLOSE: Final = "</imprintd-recall>"
RECALL_STUB: Final = "[recalled from memory]"
"""What a reader keeps in place of recalled text."""
