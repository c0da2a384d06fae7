"""Blocks that a peer sent, and the chains over them."""

import hashlib

import pytest
import zstandard

from imprintd.errors import IntegrityError
from imprintd.model.snapshot import BLOCK_BYTES_MAX, Block
from imprintd.text.blocks import CHAIN_START, chain, close_chain, cut, decode, encode, pack, unpack

PLAIN = encode("Grüße, \ud83d und mehr. " * 2000)


def compressed(data: bytes, **options: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, **options)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def streamed(data: bytes) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(data) + stream.flush()


def test_a_block_says_what_it_holds() -> None:
    block = pack(PLAIN)
    assert block == Block(
        hashlib.sha256(PLAIN).digest(), len(decode(PLAIN)), len(PLAIN), block.packed
    )
    assert unpack(block.packed, block.digest) == PLAIN
    assert unpack(block.packed, None) == PLAIN


def test_the_largest_block_is_taken() -> None:
    block = pack(b"a" * BLOCK_BYTES_MAX)
    assert unpack(block.packed, block.digest) == b"a" * BLOCK_BYTES_MAX


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x28\xb5\x2f\xfd",
        PLAIN,
        pack(PLAIN).packed[:-1],
        pack(PLAIN).packed + b"\0",
        pack(PLAIN).packed * 2,
        b"\x50\x2a\x4d\x18\4\0\0\0abcd" + pack(PLAIN).packed,
        streamed(PLAIN),
        compressed(b"a" * (BLOCK_BYTES_MAX + 1)),
        compressed(b"\0" * 64 * 1024 * 1024),
        pack(PLAIN).packed[:40] + b"\xff" * 40 + pack(PLAIN).packed[80:],
    ],
    ids=[
        "empty",
        "magic only",
        "plain",
        "cut short",
        "trailing byte",
        "two frames",
        "skippable frame",
        "no declared size",
        "too large by one",
        "bomb",
        "damaged",
    ],
)
def test_what_is_no_block_is_refused(packed: bytes) -> None:
    with pytest.raises(IntegrityError):
        unpack(packed, None)


def test_a_frame_that_asks_for_a_dictionary_is_refused() -> None:
    words = zstandard.ZstdCompressionDict(b"a dictionary " * 100, dict_type=0)
    trained = zstandard.train_dictionary(1024, [b"sample text %d" % i * 9 for i in range(500)])
    for dictionary in (words, trained):
        packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(
            b"a dictionary a dictionary "
        )
        if dictionary.dict_id():
            with pytest.raises(IntegrityError):
                unpack(packed, None)
    assert trained.dict_id()


def test_a_frame_that_lies_about_its_size_is_refused() -> None:
    packed = bytearray(pack(b"abc" * 30).packed)
    # frame header: magic, descriptor with the single-segment bit, one byte of size
    assert packed[5] == 90
    for size in (1, 89, 91, 255):
        packed[5] = size
        with pytest.raises(IntegrityError):
            unpack(bytes(packed), None)


def test_another_digest_is_refused() -> None:
    block = pack(PLAIN)
    with pytest.raises(IntegrityError):
        unpack(block.packed, hashlib.sha256(b"other").digest())


def test_bytes_that_are_no_text_are_refused() -> None:
    for wrong in (b"\xff\xfe", b"\xc3"):
        with pytest.raises(IntegrityError):
            decode(wrong)
        with pytest.raises(IntegrityError):
            pack(wrong)
    with pytest.raises(IntegrityError):
        cut(b"\x80" * 100, 8)


def test_chains_as_written_down() -> None:
    digest = hashlib.sha256(b"x").digest()
    link = hashlib.sha256(b"imprintd block 1" + bytes(32) + digest + b"\0\0\0\0\0\0\0\1").digest()
    assert chain(CHAIN_START, digest, 1) == link
    eights = b"".join(n.to_bytes(8, "big") for n in (1, 1, 1))
    assert close_chain(link, 1, 1, 1) == hashlib.sha256(b"imprintd root 1" + link + eights).digest()
