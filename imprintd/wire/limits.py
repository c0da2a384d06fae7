"""
Every bound of the wire protocol, each with its reason.

A peer that breaks one is refused by name. All sizes are bytes unless a name
says otherwise.
"""

from __future__ import annotations

from typing import Final

PROTOCOL_MIN: Final = 1
PROTOCOL_MAX: Final = 1

FRAME_BYTES_MAX: Final = 300 * 1024
"""One encoded message. A block of 256 KiB that does not compress, its zstd
overhead and the fields around it fit; an MQTT packet stays under 320 KiB."""

CONTROL_BYTES_MAX: Final = 64 * 1024
"""Every message but DATA and POINTS."""

PLAIN_BYTES_MAX: Final = 256 * 1024
"""Plain bytes inside one DATA or POINTS frame."""

WINDOW_LOG_BYTES_MAX: Final = 8 * 1024 * 1024
"""Largest zstd window that a peer may make us allocate."""

DEPTH_MAX: Final = 8
"""Nesting of arrays and maps; the deepest message uses 4."""

CONTROL_ITEMS_MAX: Final = 16_384
"""Values in one control message. One MiB of empty arrays costs 72 MiB to
unpack, so the count is capped before anything is built."""

PAGE_ITEMS_MAX: Final = 131_072
"""Values in one manifest page or one frame of points."""

KEY_CHARS_MAX: Final = 1024
PROJECT_CHARS_MAX: Final = 4096
NAME_CHARS_MAX: Final = 256
TITLE_CHARS_MAX: Final = 4096
COUNTS_MAX: Final = 512
"""Names in one table of coverage counts."""

INT_MAX: Final = 2**53 - 1
"""Integers stay exact in every language."""

BLOCKS_MAX: Final = 1200
"""Blocks of one version: 64 MiB in 256 KiB blocks, four times over, since
greedy cutting may leave blocks short."""

PAGE_ENTRIES: Final = 64
"""Manifest entries of one page."""

CHANGES_ENTRIES_MAX: Final = 256
WANT_KEYS_MAX: Final = 16
NEED_RANGES_MAX: Final = 512
PREFIXES_MAX: Final = 16
RANGE_ASKS_MAX: Final = 64
RANGE_FAN_OUT: Final = 16
RANGE_LEAF: Final = 32
RANGE_ANSWER_ENTRIES_MAX: Final = 1024
AFTER_MAX: Final = 16
RULES_MAX: Final = 8

WINDOW_FRAMES: Final = 16
"""DATA frames in flight on a link: 1.6 to 4.3 times the throughput of 4."""

WINDOW_BYTES: Final = 4 * 1024 * 1024
TRANSFERS_MAX: Final = 4
"""Transfers in flight from one peer, and to one peer."""

STAGING_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Staged and unpublished bytes of one peer."""
