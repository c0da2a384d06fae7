"""
Blocks: the UTF-8 bytes of a text in pieces that are stored, sent and paged.

Cut greedily from the left at whole code points, so a longer version of a text
shares every block but the last. Hash chains name lists of blocks and chunks;
closing them with the length keeps two texts from ever sharing a root.
"""

from __future__ import annotations

import hashlib
from typing import Final

import zstandard

from imprintd.errors import IntegrityError
from imprintd.model.snapshot import BLOCK_BYTES_MAX, LEARNER_VERSION, Block, Chunk

CHAIN_START: Final = b"\0" * 32
LEVEL: Final = 3
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def encode(text: str) -> bytes:
    """UTF-8 with lone surrogates passed through: every Python text has one."""
    return text.encode("utf-8", "surrogatepass")


def decode(plain: bytes) -> str:
    """
    The inverse of `encode`.

    Raises:
        IntegrityError: The bytes are not UTF-8.
    """
    try:
        return plain.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise IntegrityError("stored text is not UTF-8") from None


def cut(data: bytes, size_max: int = BLOCK_BYTES_MAX) -> list[bytes]:
    """
    Cut encoded text into plain blocks.

    Args:
        data: UTF-8 (surrogatepass) bytes of whole code points.
        size_max: At least 4, so that every code point fits.

    Returns:
        Pieces of at most `size_max` bytes that join to `data`; each takes as
        many whole code points as fit. Only the last may grow with more text,
        and only if it is shorter than `size_max`.
    """
    pieces = []
    start = 0
    while start < len(data):
        end = start + size_max
        if end < len(data):
            while data[end] & 0xC0 == 0x80:
                end -= 1
                if end <= start:
                    raise IntegrityError("stored text is not UTF-8")
        pieces.append(data[start:end])
        start = end
    return pieces


def pack(plain: bytes) -> Block:
    """
    Make a block: digest, counts and one zstd frame that declares its size.

    Raises:
        IntegrityError: The bytes are not UTF-8.
    """
    # one compressor a call: they are not safe to share, and cost 20 µs
    packed = zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(plain)
    chars = len(plain) if plain.isascii() else len(decode(plain))
    return Block(hashlib.sha256(plain).digest(), chars, len(plain), packed)


def unpack(packed: bytes, digest: bytes | None, size_max: int = BLOCK_BYTES_MAX) -> bytes:
    """
    Plain bytes of a packed block; safe on bytes that a peer sent.

    Args:
        packed: One zstd frame that declares its content size, nothing after it.
        digest: SHA-256 that the plain bytes must have; None: not checked here.
        size_max: Largest declared size that is decompressed at all.

    Raises:
        IntegrityError: Anything about it is not as it should be.
    """
    if packed[:4] != _MAGIC:
        raise IntegrityError("a block is no zstd frame")
    try:
        declared = zstandard.frame_content_size(packed)
        dictionary = zstandard.get_frame_parameters(packed).dict_id
    except zstandard.ZstdError:
        raise IntegrityError("a block has a damaged frame header") from None
    # checked first: the decoder allocates whatever a frame declares
    if not 0 <= declared <= size_max:
        raise IntegrityError("a block declares no size or one over the limit")
    if dictionary:
        raise IntegrityError("a block asks for a dictionary")
    try:
        plain = zstandard.ZstdDecompressor().decompress(
            packed, max_output_size=size_max, allow_extra_data=False
        )
    except zstandard.ZstdError:
        raise IntegrityError("a block does not decompress") from None
    if len(plain) != declared:
        raise IntegrityError("a block does not hold what it declares")
    if digest is not None and hashlib.sha256(plain).digest() != digest:
        raise IntegrityError("a block differs from its digest")
    return plain


def chain(previous: bytes, digest: bytes, size: int) -> bytes:
    """
    One more block on a chain.

    SHA-256 over `imprintd block 1`, the previous link (CHAIN_START for the
    first block), the digest and the size as 8 bytes, big endian.
    """
    return hashlib.sha256(
        b"imprintd block 1" + previous + digest + size.to_bytes(8, "big")
    ).digest()


def chain_chunk(previous: bytes, chunk: Chunk) -> bytes:
    """
    One more chunk on a chain.

    SHA-256 over `imprintd chunk link 1`, the previous link, start and end (8
    bytes each, big endian), the content digest, one byte of flags (1 long
    event, 2 code) and the memory id in ASCII.
    """
    return hashlib.sha256(
        b"imprintd chunk link 1"
        + previous
        + chunk.start.to_bytes(8, "big")
        + chunk.end.to_bytes(8, "big")
        + chunk.content_digest
        + bytes([chunk.long_event | chunk.code << 1])
        + chunk.memory_id.encode("ascii")
    ).digest()


def close_chain(link: bytes, count: int, chars: int, size: int) -> bytes:
    """
    The root of a chain.

    SHA-256 over `imprintd root 1`, the last link, the number of links, the
    characters and the bytes of the whole text (8 bytes each, big endian).
    """
    return hashlib.sha256(
        b"imprintd root 1"
        + link
        + count.to_bytes(8, "big")
        + chars.to_bytes(8, "big")
        + size.to_bytes(8, "big")
    ).digest()


def version_of(root: bytes, manifest_root: bytes, profile: str) -> str:
    """
    Name of a snapshot: 32 hex characters of SHA-256.

    Over `imprintd version 1`, both roots, the learner version as 4 bytes big
    endian, and the profile in UTF-8.
    """
    return hashlib.sha256(
        b"imprintd version 1"
        + root
        + manifest_root
        + LEARNER_VERSION.to_bytes(4, "big")
        + encode(profile)
    ).hexdigest()[:32]


class BlockWriter:
    """
    Cuts a text that arrives piece by piece; keeps plain only what may grow.

    Args:
        open_block: Plain bytes of the last block so far, if it may grow.
        link: Chain over the blocks before it.
        size_max: Plain bytes of a block.

    Attributes:
        link: Chain over all closed blocks.
        open_block: Plain bytes of the block that may grow, else empty.
        closed: Blocks closed here, in order.
        closed_bytes: Plain bytes in them.
        closed_chars: Characters in them.
    """

    def __init__(
        self,
        open_block: bytes = b"",
        link: bytes = CHAIN_START,
        *,
        size_max: int = BLOCK_BYTES_MAX,
    ) -> None:
        self.link = link
        self.open_block = open_block
        self.closed: list[Block] = []
        self.closed_bytes = 0
        self.closed_chars = 0
        self._size_max = size_max

    def write(self, data: bytes) -> None:
        """Take the next bytes of the text, whole code points."""
        pieces = cut(self.open_block + data, self._size_max)
        self.open_block = b""
        if pieces and len(pieces[-1]) < self._size_max:
            self.open_block = pieces.pop()
        for piece in pieces:
            block = pack(piece)
            self.link = chain(self.link, block.digest, block.size)
            self.closed.append(block)
            self.closed_bytes += block.size
            self.closed_chars += block.chars
