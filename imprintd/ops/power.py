"""
Manners: low priority for processor and disk, and a look at the power supply.

Everything here is best effort: a system that cannot do it is left as it is
and the answer says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path
from typing import Final

NICE: Final = 10
"""Behind everything the user looks at, ahead of nothing."""

_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "i686": 289, "armv7l": 314}
"""Number of the system call, which the C library does not wrap."""

_WHO_PROCESS: Final = 1
_CLASS_IDLE: Final = 3
_CLASS_SHIFT: Final = 13


def lower_priority(nice: int = NICE) -> bool:
    """
    Raise this process's nice value to at least `nice`; never lowers it.

    Returns: Whether it is that nice now.
    """
    try:
        now = os.getpriority(os.PRIO_PROCESS, 0)
        if now < nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return False
    return True


def idle_io(machine: str | None = None) -> bool:
    """
    Let this thread's disk work wait for everybody else's (Linux only).

    Threads started later inherit it. Returns: Whether the kernel agreed.
    """
    number = _IOPRIO_SET.get(platform.machine() if machine is None else machine)
    if number is None or sys.platform != "linux":
        return False
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        answer = libc.syscall(number, _WHO_PROCESS, 0, _CLASS_IDLE << _CLASS_SHIFT)
    except (OSError, AttributeError):
        return False
    return bool(answer == 0)


def on_battery(supplies: Path = Path("/sys/class/power_supply")) -> bool | None:
    """
    Whether the machine runs from its battery.

    None: nothing tells (a desktop, a container, another system). Batteries
    of mice and headsets (scope Device) do not count.
    """
    discharging = False
    known = False
    try:
        entries = sorted(supplies.iterdir())
    except OSError:
        return None
    for supply in entries:
        kind = _word(supply / "type")
        if kind in {"Mains", "USB"}:
            if _word(supply / "online") == "1":
                return False
            known = known or kind == "Mains"
        elif kind == "Battery" and _word(supply / "scope") != "Device":
            known = True
            discharging = discharging or _word(supply / "status") == "Discharging"
    return discharging if known else None


def _word(file: Path) -> str:
    try:
        return file.read_text("ascii", "replace").strip()
    except OSError:
        return ""
