"""
Cut token ids into windows and windows into batches.

Pure arithmetic on ids: which model the ids belong to does not matter here.
A text becomes consecutive windows that cover every token exactly once; a run
becomes batches of similar length, because a batch is padded to its longest
member and padding costs as much as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WINDOWS_MAX: Final = 128
"""
Windows of one text; the rest has no vector.

Ordinary chunks and reduced views have at most 8,000 characters. A token is at
least one character after normalisation, which makes at most four of one (Korean
syllables come apart into three): 32,000 tokens are 126 windows of 254, so the
cap cuts only texts that no chunk can hold.
"""

CHARS_MAX: Final = 65_536
"""Characters of one text that are looked at; bounds the tokenizer's work."""

BATCH_TOKENS: Final = 512
"""Tokens of a batch, padding included: measured best, small batches stay in the cache."""


PADDING_MAX: Final = 12
"""
Tokens by which a batch's members may differ in length.

Starting a run costs about as much as ten tokens, so an item that would be
padded by more is cheaper in a batch of its own.
"""


def clean(text: str) -> str:
    """
    The text as a tokenizer may see it.

    Cut to `CHARS_MAX` characters; lone surrogates, which have no UTF-8 form,
    become the replacement character, one for one.
    """
    head = text[:CHARS_MAX]
    try:
        head.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in head)
    return head


def cut(
    ids: Sequence[int], before: Sequence[int], after: Sequence[int], window_tokens: int
) -> list[list[int]]:
    """
    Consecutive windows over `ids`, each between `before` and `after`.

    An empty text has one window, so that every text has a vector.

    Args:
        ids: The text's tokens without special ones.
        before: Special tokens and prefix that open every window.
        after: Special tokens that close it.
        window_tokens: Length of a full window, `before` and `after` included.

    Returns:
        At most `WINDOWS_MAX` windows; all but the last are full.
    """
    body = window_tokens - len(before) - len(after)
    if body < 1:
        raise ValueError(f"a window of {window_tokens} tokens has no room for text")
    end = min(len(ids), WINDOWS_MAX * body)
    return [
        [*before, *ids[start : min(start + body, end)], *after]
        for start in range(0, max(end, 1), body)
    ]


def plan(lengths: Sequence[int], tokens_max: int = BATCH_TOKENS) -> list[list[int]]:
    """
    Batches of indices into `lengths`, each of similar length.

    Longest first, so that the largest buffers are allocated once. A batch's
    rows times its longest member stay within `tokens_max` (a single longer
    item is a batch of its own), and none is padded by more than `PADDING_MAX`.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batches: list[list[int]] = []
    rows = longest = 0
    for index in order:
        length = lengths[index]
        if batches and len(batches[-1]) < rows and longest - length <= PADDING_MAX:
            batches[-1].append(index)
            continue
        batches.append([index])
        longest = length
        rows = max(1, tokens_max // max(1, length))
    return batches
