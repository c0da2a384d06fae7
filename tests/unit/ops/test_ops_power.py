"""
Manners: what sysfs says about the battery, and the priorities of a real process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from imprintd.ops.power import idle_io, on_battery
from imprintd.ops.trim import trim_memory


def _supply(folder: Path, name: str, **words: str) -> None:
    (folder / name).mkdir()
    for word, value in words.items():
        (folder / name / word).write_text(value + "\n")


LAPTOP_AWAY = (
    ("AC", {"type": "Mains", "online": "0"}),
    ("BAT0", {"type": "Battery", "status": "Discharging"}),
)
LAPTOP_HOME = (
    ("AC", {"type": "Mains", "online": "1"}),
    ("BAT0", {"type": "Battery", "status": "Charging"}),
)
USB_C_HOME = (
    ("BAT0", {"type": "Battery", "status": "Discharging"}),
    ("ucsi", {"type": "USB", "online": "1"}),
)
MOUSE = (("hid", {"type": "Battery", "status": "Discharging", "scope": "Device"}),)
FULL = (("BAT0", {"type": "Battery", "status": "Full"}),)


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        (LAPTOP_AWAY, True),
        (LAPTOP_HOME, False),
        (USB_C_HOME, False),
        (MOUSE, None),
        (FULL, False),
        ((), None),
    ],
)
def test_the_battery_is_read_from_the_system(
    tmp_path: Path, supplies: tuple[tuple[str, dict[str, str]], ...], expected: bool | None
) -> None:
    for name, words in supplies:
        _supply(tmp_path, name, **words)
    assert on_battery(tmp_path) is expected
    assert on_battery(tmp_path / "absent") is None


@pytest.mark.skipif(sys.platform != "linux", reason="the system call is Linux's")
def test_a_process_becomes_nice_and_idle() -> None:
    code = (
        "import os, ctypes\n"
        "from imprintd.ops.power import *\n"
        "assert lower_priority(7)\n"
        "assert lower_priority(3)\n"
        "print(os.getpriority(os.PRIO_PROCESS, 0), idle_io(),"
        " ctypes.CDLL(None).syscall({'x86_64': 252, 'aarch64': 31}[os.uname().machine], 1, 0) >> 13)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (int(shown[0]) >= 7, shown[1], shown[2]) == (True, "True", "3")


def test_an_unknown_machine_is_left_as_it_is() -> None:
    assert idle_io("vax") is False


def test_trimming_answers() -> None:
    assert isinstance(trim_memory(), bool)
