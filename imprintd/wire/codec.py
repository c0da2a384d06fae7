"""
Bytes to values and back, bounded: msgpack with a scan before unpacking, and zstd.

Both libraries trust their input further than a peer may be trusted. msgpack
builds whatever the counts promise; zstd ignores an output limit when the
frame declares its size. So every message is scanned token by token first,
and every compressed frame is looked at before a byte of it is inflated.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Final

import msgpack
import zstandard

from imprintd.errors import LocalProtocolError, RemoteProtocolError
from imprintd.wire import limits

_LEVEL: Final = 3
_FIXED_WIDTH: Final = {
    0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8,
    0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
"""Integers by their first byte, and how many bytes follow it."""

_LENGTH_WIDTH: Final = {
    0xC4: 1, 0xC5: 2, 0xC6: 4,
    0xD9: 1, 0xDA: 2, 0xDB: 4,
    0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4,
}  # fmt: skip
"""Strings, binaries, arrays and maps, and how wide their length is."""


def digest(data: bytes) -> bytes:
    """SHA-256, 32 bytes."""
    return hashlib.sha256(data).digest()


def pack(value: object) -> bytes:
    """
    A value of None, bool, int, str, bytes, lists and str-keyed dicts as msgpack.

    The same value always gives the same bytes: keys keep the order given.
    """
    packed: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
    return packed


def unpack(
    data: bytes | memoryview,
    *,
    size_max: int = limits.CONTROL_BYTES_MAX,
    items_max: int = limits.CONTROL_ITEMS_MAX,
) -> Any:
    """
    The one value that `data` holds.

    Args:
        data: As received.
        size_max: Longer data is refused unread.
        items_max: Values in all, containers and map keys included.

    Raises:
        RemoteProtocolError: Not one well-formed value, or over a bound: size,
            count, depth, an extension type, a float, a key that is no string,
            a key given twice.
    """
    raw = bytes(data)
    if len(raw) > size_max:
        raise RemoteProtocolError(f"message of {len(raw)} bytes, {size_max} are allowed")
    _scan(raw, items_max)
    try:
        return msgpack.unpackb(
            raw,
            raw=False,
            strict_map_key=True,
            unicode_errors="surrogatepass",
            object_pairs_hook=_unique,
            max_str_len=len(raw),
            max_bin_len=len(raw),
            max_array_len=items_max,
            max_map_len=items_max,
            max_ext_len=0,
        )
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        # UnicodeDecodeError is a ValueError and quotes the bytes: name it only
        raise RemoteProtocolError(f"message is damaged: {type(error).__name__}") from None


def _unique(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise RemoteProtocolError("message has a key twice")
    return table


def _scan(data: bytes, items_max: int) -> None:
    """
    Walk the tokens without building anything; raises as `unpack` does.

    `open_counts` holds, for every open container, how many values are still
    to come; a map counts as twice its pairs and its even ones are keys.
    """
    size = len(data)
    position = 0
    items = 0
    open_counts: list[int] = []
    is_map: list[bool] = []
    while True:
        if position >= size:
            raise RemoteProtocolError("message is cut short")
        items += 1
        if items > items_max:
            raise RemoteProtocolError(f"message of more than {items_max} values")
        first = data[position]
        position += 1
        key = bool(is_map) and is_map[-1] and open_counts[-1] % 2 == 0
        if open_counts:
            open_counts[-1] -= 1
        children = -1
        mapping = False
        string = False
        if first <= 0x7F or first >= 0xE0 or first in {0xC0, 0xC2, 0xC3}:
            pass
        elif first <= 0x8F:
            children, mapping = (first & 0x0F) * 2, True
        elif first <= 0x9F:
            children = first & 0x0F
        elif first <= 0xBF:
            position += first & 0x1F
            string = True
        elif first in _FIXED_WIDTH:
            position += _FIXED_WIDTH[first]
        elif first in _LENGTH_WIDTH:
            width = _LENGTH_WIDTH[first]
            length = int.from_bytes(data[position : position + width], "big")
            position += width
            if first <= 0xC6:
                position += length
            elif first <= 0xDB:
                position += length
                string = True
            else:
                mapping = first >= 0xDE
                children = length * 2 if mapping else length
        else:
            raise RemoteProtocolError(f"message has a value of type 0x{first:02x}, not allowed")
        if key and not string:
            raise RemoteProtocolError("message has a key that is no string")
        if position > size:
            raise RemoteProtocolError("message is cut short")
        if children >= 0:
            if children > items_max - items:
                raise RemoteProtocolError(f"message of more than {items_max} values")
            if len(open_counts) >= limits.DEPTH_MAX:
                raise RemoteProtocolError(f"message deeper than {limits.DEPTH_MAX}")
            open_counts.append(children)
            is_map.append(mapping)
        while open_counts and open_counts[-1] == 0:
            open_counts.pop()
            is_map.pop()
        if not open_counts:
            break
    if position != size:
        raise RemoteProtocolError("message has bytes after its end")


@functools.cache
def _compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True, write_checksum=False)


def deflate(plain: bytes) -> bytes:
    """
    One zstd frame that declares its content size.

    Raises:
        LocalProtocolError: More than PLAIN_BYTES_MAX; a caller's mistake.
    """
    if len(plain) > limits.PLAIN_BYTES_MAX:
        raise LocalProtocolError(f"{len(plain)} plain bytes in one frame")
    return _compressor().compress(plain)


def inflate(packed: bytes, size: int) -> bytes:
    """
    The content of one zstd frame, inflated under a running limit.

    Args:
        packed: One frame, nothing after it, no dictionary.
        size: What the message around it says the content has.

    Raises:
        RemoteProtocolError: The frame is no such frame, declares another size
            or a window above the limit, or holds more or less than it says.
    """
    if not 0 <= size <= limits.PLAIN_BYTES_MAX:
        raise RemoteProtocolError(f"frame of {size} plain bytes")
    try:
        parameters = zstandard.get_frame_parameters(packed)
    except zstandard.ZstdError:
        raise RemoteProtocolError("frame is not zstd") from None
    if parameters.content_size != size:
        raise RemoteProtocolError("frame does not declare the size its message says")
    if parameters.window_size > limits.WINDOW_LOG_BYTES_MAX:
        raise RemoteProtocolError("frame wants too large a window")
    if parameters.dict_id:
        raise RemoteProtocolError("frame wants a dictionary")
    if _frame_end(packed, parameters.has_checksum) != len(packed):
        raise RemoteProtocolError("frame is cut short or followed by more")
    decompressor = zstandard.ZstdDecompressor(max_window_size=limits.WINDOW_LOG_BYTES_MAX)
    try:
        # reading one byte more than declared is what finds a frame that lies
        with decompressor.stream_reader(packed, read_across_frames=False) as stream:
            plain = stream.read(size + 1)
    except zstandard.ZstdError:
        raise RemoteProtocolError("frame is damaged") from None
    if len(plain) != size:
        raise RemoteProtocolError("frame does not hold what it declares")
    return plain


def _frame_end(packed: bytes, has_checksum: bool) -> int:
    """Where the frame's own block headers say that it ends; -1 if past the data."""
    position = zstandard.frame_header_size(packed)
    last = False
    while not last:
        header = int.from_bytes(packed[position : position + 3], "little")
        last = bool(header & 1)
        length = header >> 3
        position += 3 + (1 if (header >> 1) & 3 == 1 else length)
        if position > len(packed):
            return -1
    return position + (4 if has_checksum else 0)
