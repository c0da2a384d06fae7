"""
Chunking: which spans of a text are search units.

Greedy from the left and without looking ahead past an event, so a longer
version of a conversation changes no chunk but the last, and cutting can go on
from the start of that last chunk alone.

- Whole events are packed up to `size_prose`; one that does not fit begins a
  new chunk.
- An event longer than that is cut at paragraph, else line, else word ends;
  each piece repeats up to `overlap` characters of the one before. A rest that
  is hardly longer than `size_prose` stays whole: as a chunk of its own it
  would be little but overlap.
- A tool event whose span is over `hard_max` is one chunk. Over `piece` it is
  cut at line ends; only a line longer than a piece is cut inside. What stands
  before and after it never shares a chunk with it.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from typing import Final, Literal

from imprintd.errors import ConfigError
from imprintd.model.event import EventSpan
from imprintd.model.snapshot import Chunk, Limits
from imprintd.model.source import SourceId
from imprintd.text import ends
from imprintd.text.blocks import encode

TOOL_KINDS: Final = frozenset({"tool_call", "tool_output"})

_HEADING: Final = re.compile(r"(?<=\n)(?:#{1,6} |={3,}\n|<h[1-6])")
_DEFINITION: Final = re.compile(
    r"(?<=\n)(?:(?:export|default|public|private|protected|static|final|abstract|async|pub|unsafe"
    r"|extern|inline|const|local)\s+)*"
    r"(?:def|class|fn|func|function|struct|enum|impl|interface|trait|type|module|namespace|package"
    r"|create|CREATE)\b"
)
_BLOCK_START: Final = re.compile(r"(?<=\n)(?=[^\s)}\]])")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS: Final = [a + b for a in _LETTERS for b in _LETTERS]

_Cut = tuple[int, int, bool, int, int]
"""Start, end, long event, first event, one past the last event."""


class ChunkNamer:
    """
    Makes the chunks of one source: digests and memory ids.

    A memory id is `m` and the first 25 lower-case base32 characters of SHA-256
    over these parts, each after its length as 4 bytes big endian: `imprintd
    chunk 1`, project, source key, start and end (8 bytes big endian), content
    digest.
    """

    def __init__(self, source: SourceId) -> None:
        self._seed = hashlib.sha256()
        for part in (b"imprintd chunk 1", encode(source.project), encode(source.key)):
            self._seed.update(len(part).to_bytes(4, "big") + part)

    def memory_id(self, start: int, end: int, content_digest: bytes) -> str:
        """Id of the chunk with that span and content."""
        mixed = self._seed.copy()
        mixed.update(struct.pack(">IQIQI", 8, start, 8, end, 32) + content_digest)
        number = int.from_bytes(mixed.digest()[:16], "big")
        # 25 letters are 125 bits; in pairs this is far quicker than base64.b32encode
        pairs = "".join([_PAIRS[number >> shift & 1023] for shift in range(118, 0, -10)])
        return f"m{pairs}{_LETTERS[number >> 3 & 31]}"

    def chunk(
        self,
        content: str,
        start: int,
        *,
        long_event: bool = False,
        code: bool = False,
        events: tuple[EventSpan, ...] = (),
    ) -> Chunk:
        """The chunk that holds `content` from character `start` on."""
        digest = hashlib.sha256(encode(content)).digest()
        end = start + len(content)
        return Chunk(
            self.memory_id(start, end, digest), start, end, digest, long_event, code, events
        )


def chunk_events(
    text: str,
    offset: int,
    spans: Sequence[EventSpan],
    source: SourceId,
    limits: Limits,
) -> list[Chunk]:
    """
    Cut a conversation, or go on from the start of its last chunk.

    Args:
        text: Canonical text from `offset` to its end.
        offset: 0, or the start of the last chunk of an earlier result.
        spans: Whole spans of the events that `text` holds, in order; the first
            may begin before `offset`.
        source: For the memory ids.
        limits: Chunker limits.

    Returns:
        Chunks that cover `text`, in order; none for an empty text.

    Raises:
        ConfigError: The limits contradict each other.
    """
    _check(limits)
    cuts = _cuts(text, offset, spans, limits)
    namer = ChunkNamer(source)
    return [
        namer.chunk(
            text[start - offset : end - offset],
            start,
            long_event=is_long,
            events=_clipped(spans[first:last], start, end),
        )
        for start, end, is_long, first, last in cuts
    ]


def chunk_plain(
    text: str,
    source: SourceId,
    limits: Limits,
    kind: Literal["prose", "code"],
    offset: int = 0,
) -> list[Chunk]:
    """
    Cut the text of a file.

    Prose is cut before headings, else as a long message is. Code is cut where
    a new top-level block or definition begins, else at blank lines and line
    ends, and repeats nothing.

    Args:
        text: From `offset` (0, or the start of the last chunk) to its end.
        source: For the memory ids.
        limits: Chunker limits.
        kind: How to cut.
        offset: Position of `text` in the whole.

    Raises:
        ConfigError: The limits contradict each other.
    """
    _check(limits)
    namer = ChunkNamer(source)
    code = kind == "code"
    size = limits.size_code if code else limits.size_prose
    chunks = []
    start = 0
    while len(text) - start > size:
        cut = _code_end(text, start, size) if code else _prose_end(text, start, size)
        chunks.append(namer.chunk(text[start:cut], offset + start, code=code))
        start = cut if code or _HEADING.match(text, cut) else _overlap_start(text, cut, limits)
    if start < len(text):
        chunks.append(namer.chunk(text[start:], offset + start, code=code))
    return chunks


def _check(limits: Limits) -> None:
    """Limits that would make a cut stand still are refused, whoever made them."""
    if not (
        0 <= limits.overlap < min(limits.size_prose, limits.size_code) // 2
        and limits.size_prose <= limits.hard_max <= limits.piece
    ):
        raise ConfigError("the chunker limits contradict each other")


def _cuts(text: str, offset: int, spans: Sequence[EventSpan], limits: Limits) -> list[_Cut]:
    cuts: list[_Cut] = []
    size = limits.size_prose
    size_whole = min(size + limits.overlap, limits.hard_max)
    start = end = offset
    first = 0
    for index, span in enumerate(spans):
        if span.end - span.start > limits.hard_max and span.kind in TOOL_KINDS:
            if end > start:
                cuts.append((start, end, False, first, index))
                start = end
            while span.end - start > limits.piece:
                cut = offset + _piece_end(text, start - offset, limits.piece)
                cuts.append((start, cut, True, index, index + 1))
                start = cut
            cuts.append((start, span.end, True, index, index + 1))
            start = end = span.end
            first = index + 1
            continue
        if span.end - start > size:
            if end > start:
                cuts.append((start, end, False, first, index))
                start = end
                first = index
            while span.end - start > size_whole:
                cut = _message_end(text, start - offset, size)
                cuts.append((start, offset + cut, False, index, index + 1))
                start = offset + _overlap_start(text, cut, limits)
        end = span.end
    if end > start:
        cuts.append((start, end, False, first, len(spans)))
    return cuts


def _message_end(text: str, start: int, size: int) -> int:
    return ends.best_end(text, start + max(1, size // 2), start + size)


def _overlap_start(text: str, cut: int, limits: Limits) -> int:
    """Where the next piece begins so that it repeats whole lines or words."""
    if not limits.overlap:
        return cut
    low = cut - limits.overlap
    at = ends.word_start(text, low, cut - limits.overlap // 2)
    return at if at >= 0 else ends.whole(text, low, low - 1)


def _piece_end(text: str, start: int, piece: int) -> int:
    limit = start + piece
    line = ends.line_end(text, start, limit)
    line_start = line if line >= 0 else start
    # at most one piece ahead: is the line that crosses the limit itself too long?
    closing = text.find("\n", limit, line_start + piece)
    if line >= 0 and closing >= 0:
        return line
    return ends.whole(text, limit, start + 1)


def _prose_end(text: str, start: int, size: int) -> int:
    low, high = start + max(1, size // 2), start + size
    heading = _last(_HEADING, text, low, high)
    return heading if heading >= 0 else ends.best_end(text, low, high)


def _code_end(text: str, start: int, size: int) -> int:
    low, high = start + max(1, size // 2), start + size
    for found in (
        _last_block(text, low, high),
        _last(_DEFINITION, text, low, high),
        ends.paragraph_end(text, low, high),
        ends.line_end(text, low, high),
    ):
        if found >= 0:
            return found
    return ends.whole(text, high, low + 1)


def _last_block(text: str, low: int, high: int) -> int:
    """Last unindented line in [low, high) that follows a blank line, or -1."""
    at = ends.paragraph_end(text, low, high)
    while at >= 0 and not _BLOCK_START.match(text, at):
        at = ends.paragraph_end(text, low, at - 1)
    return at


def _last(pattern: re.Pattern[str], text: str, low: int, high: int) -> int:
    found = -1
    for match in pattern.finditer(text, low, high):
        found = match.start()
    return found


def _clipped(spans: Sequence[EventSpan], start: int, end: int) -> tuple[EventSpan, ...]:
    """The spans under a chunk; only the first and the last can reach past it."""
    inside = list(spans)
    for index in {0, len(inside) - 1}:
        s = inside[index]
        if s.start < start or s.end > end:
            inside[index] = EventSpan(
                max(s.start, start), min(s.end, end), s.role, s.kind, s.turn, s.timestamp
            )
    return tuple(inside)
