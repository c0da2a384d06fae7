"""Hostile bytes are refused by name before anything large is built."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import msgpack
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from imprintd.errors import LocalProtocolError, RemoteProtocolError
from imprintd.wire import limits
from imprintd.wire.codec import deflate, digest, inflate, pack, unpack

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(max_size=20)
    | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=5)
    ),
    max_leaves=30,
)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(VALUES)
@example("\ud800 lone")
def test_what_is_packed_is_unpacked(value: Any) -> None:
    if _depth(value) > limits.DEPTH_MAX:
        with pytest.raises(RemoteProtocolError):
            unpack(pack(value))
    else:
        assert unpack(pack(value)) == value


@given(st.binary(max_size=300))
def test_any_bytes_are_a_value_or_a_named_error(data: bytes) -> None:
    try:
        value = unpack(data)
    except RemoteProtocolError:
        return
    reference = msgpack.unpackb(
        data, raw=False, unicode_errors="surrogatepass", strict_map_key=False
    )
    assert value == reference


HOSTILE = {
    "empty": b"",
    "trailing": b"\x01\x01",
    "cut string": b"\xa5ab",
    "cut length": b"\xda\x00",
    "cut array": b"\x93\x01\x02",
    "array of 2^32-1": b"\xdd\xff\xff\xff\xff",
    "map of 2^32-1": b"\xdf\xff\xff\xff\xff",
    "binary of 2^32-1": b"\xc6\xff\xff\xff\xff",
    "string of 2^32-1": b"\xdb\xff\xff\xff\xff",
    "nine deep": b"\x91" * 9 + b"\x01",
    "400 deep": b"\x91" * 400 + b"\x01",
    "extension": b"\xd4\x01\x00",
    "timestamp": b"\xd6\xff\x00\x00\x00\x00",
    "never used": b"\xc1",
    "float": b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    "short float": b"\xca\x7f\xc0\x00\x00",
    "key twice": b"\x82\xa1a\x01\xa1a\x02",
    "key twice below": b"\x91\x82\xa1a\x01\xa1a\x02",
    "number as key": b"\x81\x01\x02",
    "binary as key": b"\x81\xc4\x01a\x02",
    "array as key": b"\x81\x91\x01\x02",
    "no UTF-8": b"\xa2\xff\xfe",
    "one MiB of empty arrays": b"\xdd\x00\x0f\xff\xfb" + b"\x90" * 0xFFFFB,
    "many empty arrays": b"\xdc\xf0\x00" + b"\x90" * 0xF000,
    "many empty maps": b"\xdc\xf0\x00" + b"\x80" * 0xF000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_message_is_refused_without_memory(name: str) -> None:
    tracemalloc.start()
    with pytest.raises(RemoteProtocolError):
        unpack(HOSTILE[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2 * len(HOSTILE[name]) + 100_000


def test_count_cap_is_exact() -> None:
    assert unpack(pack([0] * 9), items_max=10) == [0] * 9
    with pytest.raises(RemoteProtocolError):
        unpack(pack([0] * 10), items_max=10)


def test_size_cap_is_exact() -> None:
    assert unpack(pack(b"x" * 98), size_max=100) == b"x" * 98
    with pytest.raises(RemoteProtocolError):
        unpack(pack(b"x" * 99), size_max=100)


@given(st.binary(max_size=5000))
def test_what_is_deflated_is_inflated(plain: bytes) -> None:
    assert inflate(deflate(plain), len(plain)) == plain


def test_largest_frame_that_does_not_compress() -> None:
    plain = os.urandom(limits.PLAIN_BYTES_MAX)
    packed = deflate(plain)

    assert inflate(packed, len(plain)) == plain
    assert len(packed) + 1024 < limits.FRAME_BYTES_MAX


def test_too_much_is_not_deflated() -> None:
    with pytest.raises(LocalProtocolError):
        deflate(bytes(limits.PLAIN_BYTES_MAX + 1))


def _bomb(blocks: int, declared: int) -> bytes:
    """A frame of run-length blocks of 128 KiB each that declares another size."""
    frame = b"\x28\xb5\x2f\xfd\x80\x58" + declared.to_bytes(4, "little")
    for number in range(blocks):
        header = (128 * 1024 << 3) | (1 << 1) | (number == blocks - 1)
        frame += header.to_bytes(3, "little") + b"\0"
    return frame


def _with_dictionary() -> bytes:
    trained = zstandard.ZstdCompressionDict(b"some words that come often " * 50)
    dictionary = zstandard.ZstdCompressionDict(
        zstandard.train_dictionary(
            2000, [os.urandom(200) + b"abc" * 9 for _ in range(500)]
        ).as_bytes()
    )
    del trained
    return zstandard.ZstdCompressor(dict_data=dictionary).compress(b"abc" * 9)


BAD_FRAMES = {
    "nothing": (b"", 0),
    "no zstd": (b"hello, world, this is no frame", 10),
    "honest bomb": (zstandard.ZstdCompressor().compress(bytes(64 * 2**20)), 64 * 2**20),
    "bomb that says less": (zstandard.ZstdCompressor().compress(bytes(64 * 2**20)), 1000),
    "bomb that lies": (_bomb(4000, 262_144), 262_144),
    "one block too many": (_bomb(3, 262_144), 262_144),
    "one block too few": (_bomb(1, 262_144), 262_144),
    "no declared size": (zstandard.ZstdCompressor(write_content_size=False).compress(b"abc"), 3),
    "two frames": (deflate(b"abc") + deflate(b""), 3),
    "trailing byte": (deflate(b"abc") + b"\0", 3),
    "cut": (deflate(b"abcabcabc")[:-1], 9),
    "only a header": (deflate(b"abcabcabc")[:6], 9),
    "dictionary": (_with_dictionary(), 27),
    "window of 128 MiB": (b"\x28\xb5\x2f\xfd\x40\x88\x03\x00\x19\x00\x00abc", 259),
    "negative": (deflate(b""), -1),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frame_is_refused(name: str) -> None:
    packed, size = BAD_FRAMES[name]

    with pytest.raises(RemoteProtocolError):
        inflate(packed, size)


@given(st.data())
def test_damaged_frame_never_gives_more_than_declared(data: st.DataObject) -> None:
    plain = b"the same line again\n" * 40
    packed = bytearray(deflate(plain))
    bit = data.draw(st.integers(0, len(packed) * 8 - 1))
    packed[bit // 8] ^= 1 << bit % 8
    try:
        found = inflate(bytes(packed), len(plain))
    except RemoteProtocolError:
        return
    assert len(found) == len(plain)


def test_digest_is_sha256() -> None:
    assert digest(b"abc").hex() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
