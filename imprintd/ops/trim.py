"""
Giving memory back to the system after bulk work.

The C library keeps what was freed for later; a daemon that was busy once and
idles for days should not.
"""

from __future__ import annotations

import ctypes
import gc


def trim_memory() -> bool:
    """
    Collect garbage and return free pages to the system.

    Returns: Whether the C library released anything; False also where it has
        no such call (musl, macOS).
    """
    gc.collect()
    try:
        release = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return False
    return bool(release(0))
