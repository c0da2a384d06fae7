"""Messages survive the wire; golden vectors hold both ways; wrong fields are named."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprintd.errors import LocalProtocolError, RemoteProtocolError
from imprintd.model.event import EventSpan
from imprintd.model.snapshot import Chunk, Point, Stamp
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.wire import frames, limits, messages
from imprintd.wire.codec import pack, unpack
from imprintd.wire.offer import transcript, transfer_id, version_hash
from imprintd.wire.pages import decode_page, decode_points, encode_page, encode_points

VECTORS = Path(__file__).resolve().parents[3] / "proto" / "vectors" / "frames.json"

OFFER = messages.Offer(
    key=bytes(range(16)),
    source=SourceId("default", "/home/ada/engine", "claude:0b5e-77"),
    meta=SourceMeta("claude", "Why does the\tbridge sway?", None, 1_700_000_000_123, "en"),
    stamp=Stamp(1_700_000_000_123, 2, "dabc", bytes([7]) * 32),
    origin="dabc",
    version="00112233445566778899aabbccddeeff",
    profile="imprintd-7",
    learner=3,
    blocks=(
        messages.BlockRef(bytes([1]) * 32, 262_144, 262_100),
        messages.BlockRef(bytes([2]) * 32, 77, 70),
    ),
    chunks=65,
    total_chars=262_170,
    total_bytes=262_221,
    events=12,
    root=bytes([3]) * 32,
    manifest_root=bytes([4]) * 32,
    coverage=Coverage({"image": 2, "encrypted": 1}, {"new-kind": 3}, 1, 0, 4, 17),
    rules=("minilm-l6-v2/1",),
    after=(bytes([5]) * 16,),
)

EXAMPLES: tuple[messages.Message, ...] = (
    messages.Hello(1, 2, ("kem1",), "imprintd 1.0", 1_700_000_000_000),
    messages.Summary(b"i" * 8, 12, b"j" * 8, 9, 8, 5),
    messages.Summary(b"i" * 8, 0, b"", 0, 0, 0),
    messages.Changes(
        b"i" * 8,
        3,
        9,
        (messages.Change(4, b"k" * 16, b"v" * 16), messages.Change(9, b"l" * 16, b"w" * 16)),
    ),
    messages.Ask(
        1,
        (messages.Span(b"", b"", 2, b"s" * 16), messages.Span(b"a" * 16, b"b" * 16, 0, b"t" * 16)),
    ),
    messages.Answer(1, b"", b"", b"i" * 8, 9, True),
    messages.Answer(
        1, b"", b"c" * 16, b"i" * 8, 9, False, (), (messages.Change(0, b"k" * 16, b"v" * 16),)
    ),
    messages.Want((b"k" * 16,)),
    OFFER,
    messages.Accept(
        b"t" * 16, 0, ((0, 2), (5, 1)), (messages.Prefix(1, 70, b"d" * 32),), 16, 4 * 2**20
    ),
    messages.Reject(b"t" * 16, b"k" * 16, "have-newer"),
    messages.Reject(b"", b"k" * 16, "gone"),
    messages.Data(b"t" * 16, 1, 70, 7, b"d" * 32, b"(zstd)"),
    messages.Points(b"t" * 16, ((4, 3),), "minilm-l6-v2/1", 9, b"d" * 32, b"(zstd)"),
    messages.Credit(b"t" * 16, 3, (), 16, 4 * 2**20, True),
    messages.Done(b"t" * 16, 69, b"x" * 32),
    messages.Committed(b"t" * 16, b"k" * 16, b"v" * 16),
    messages.Nack(b"t" * 16, "unknown"),
    messages.Ping(77),
    messages.Pong(77, 1_700_000_000_000),
    messages.Unsupported(99),
)


def _golden() -> list[dict[str, Any]]:
    return [
        {"message": repr(message), "bytes": base64.b64encode(frames.encode(message)).decode()}
        for message in EXAMPLES
    ]


def test_vectors_hold_both_ways() -> None:
    stored = json.loads(VECTORS.read_text())

    assert stored["frames"] == _golden()
    assert [frames.decode(base64.b64decode(v["bytes"])) for v in stored["frames"]] == list(EXAMPLES)
    assert stored["offer"] == {
        "transfer": transfer_id(OFFER).hex(),
        "transcript": transcript(OFFER).hex(),
        "version_hash": version_hash(OFFER.stamp).hex(),
    }


def test_every_message_has_an_example() -> None:
    shown = {type(message) for message in EXAMPLES} | {messages.Unknown}

    assert shown == set(messages.Message.__args__)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_more_fields_and_elements_are_ignored(message: messages.Message) -> None:
    code, flags, body = unpack(frames.encode(message), size_max=limits.FRAME_BYTES_MAX)
    newer = pack([code, flags, {**body, "from-the-future": [1, {"x": b"y"}]}, "tail"])

    assert frames.decode(newer) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_a_field_of_another_type_is_refused(message: messages.Message) -> None:
    code, flags, body = unpack(frames.encode(message), size_max=limits.FRAME_BYTES_MAX)
    for name in body:
        wrong = pack([code, flags, {**body, name: {"not": "this"}}])
        with pytest.raises(RemoteProtocolError):
            frames.decode(wrong)


def test_unknown_types_follow_their_flag() -> None:
    assert frames.decode(pack([200, 0, {}])) == messages.Unknown(200, must_understand=False)
    assert frames.decode(pack([200, 1, None])) == messages.Unknown(200, must_understand=True)
    assert frames.decode(pack([200, 3, [], 4])) == messages.Unknown(200, must_understand=True)
    with pytest.raises(LocalProtocolError):
        frames.encode(messages.Unknown(200, must_understand=False))


WRONG = {
    "no envelope": pack({"a": 1}),
    "short envelope": pack([1, 0]),
    "type 256": pack([256, 0, {}]),
    "type true": pack([True, 0, {}]),
    "body no map": pack([1, 0, []]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_envelope_is_refused(name: str) -> None:
    with pytest.raises(RemoteProtocolError):
        frames.decode(WRONG[name])


def _refused(message: messages.Message, **changed: Any) -> None:
    code, flags, body = unpack(frames.encode(message), size_max=limits.FRAME_BYTES_MAX)
    with pytest.raises(RemoteProtocolError):
        frames.decode(pack([code, flags, {**body, **changed}]))


def test_offer_that_does_not_add_up_is_refused() -> None:
    row = [bytes(32), 1, 1]
    _refused(OFFER, bytes=OFFER.total_bytes + 1)
    _refused(OFFER, chars=OFFER.total_chars - 1)
    _refused(OFFER, blocks=[row] * (limits.BLOCKS_MAX + 1))
    _refused(OFFER, blocks=[[bytes(32), 262_145, 1]])
    _refused(OFFER, chunks=100_001)
    _refused(OFFER, bytes=64 * 2**20 + 1)
    _refused(OFFER, stamp=[2**53, 0, "d", bytes(32)])
    _refused(OFFER, stamp=[-1, 0, "d", bytes(32)])


@pytest.mark.parametrize(
    "key",
    ["", "a\0b", "a\nb", "claude:\u202eevil", "x" * 1025, "claude:\ud800", "a\u2028b"],
    ids=repr,
)
def test_key_that_looks_like_something_else_is_refused(key: str) -> None:
    _refused(OFFER, source=["default", "/p", key])


def test_ranges_have_to_rise() -> None:
    accept = EXAMPLES[9]
    assert isinstance(accept, messages.Accept)
    for need in ([[2, 1], [1, 1]], [[0, 2], [1, 2]], [[0, 0]], [[0, 2**53]], [[0, 1]] * 513):
        _refused(accept, need=need)


def test_changes_have_to_rise() -> None:
    changes = EXAMPLES[3]
    row = [4, b"k" * 16, b"v" * 16]
    for heads in ([row, row], [[3, *row[1:]]], [[10, *row[1:]]]):
        _refused(changes, heads=heads)
    _refused(changes, last=2, heads=[])


def test_a_control_message_over_its_size_is_refused_both_ways() -> None:
    big = dataclasses.replace(OFFER, profile="p" * 66_000)
    with pytest.raises(LocalProtocolError):
        frames.encode(big)
    with pytest.raises(RemoteProtocolError):
        frames.decode(pack([16, 0, {"token": 1, "pad": bytes(70_000)}]))


def test_transfer_is_named_by_what_is_transferred() -> None:
    assert transfer_id(dataclasses.replace(OFFER, rules=(), after=())) == transfer_id(OFFER)
    for changed in (
        dataclasses.replace(OFFER, chunks=64),
        dataclasses.replace(OFFER, manifest_root=bytes(32)),
        dataclasses.replace(OFFER, stamp=dataclasses.replace(OFFER.stamp, counter=3)),
        dataclasses.replace(OFFER, source=SourceId("default", "/p", "claude:other")),
    ):
        assert transfer_id(changed) != transfer_id(OFFER)


SPANS = st.builds(
    EventSpan,
    st.just(10),
    st.integers(10, 20),
    st.sampled_from(["user", "tool"]),
    st.sampled_from(["message", "tool_output"]),
    st.integers(0, 1000),
    st.none() | st.text(max_size=30),
)
CHUNKS = st.builds(
    Chunk,
    st.from_regex(r"m[a-z2-7]{25}", fullmatch=True),
    st.just(10),
    st.just(20),
    st.binary(min_size=32, max_size=32),
    st.booleans(),
    st.booleans(),
    st.lists(SPANS, max_size=3).map(tuple),
)


@given(st.lists(CHUNKS, max_size=limits.PAGE_ENTRIES).map(tuple))
def test_pages_round_trip(chunks: tuple[Chunk, ...]) -> None:
    assert decode_page(encode_page(chunks)) == chunks


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page_or_a_named_error(data: bytes) -> None:
    try:
        decode_page(data)
    except RemoteProtocolError:
        return


def test_page_with_a_span_outside_its_chunk_is_refused() -> None:
    span = EventSpan(9, 20, "user", "message", 0, None)
    chunk = Chunk("m", 10, 20, bytes(32), long_event=False, code=False, events=(span,))
    with pytest.raises(RemoteProtocolError):
        decode_page(encode_page([chunk]))


def test_points_round_trip_and_are_bounded() -> None:
    points = tuple(Point(bytes([n]) * 32, n, 3, "r", bytes(768)) for n in range(3))

    assert decode_points(encode_points(points), "r") == points
    for bad in (
        Point(bytes(32), 3, 3, "r", bytes(768)),
        Point(bytes(32), 0, 1, "r", b""),
        Point(bytes(32), 0, 1, "r", bytes(7)),
        Point(bytes(32), 0, 1, "r", bytes(9000)),
        Point(bytes(31), 0, 1, "r", bytes(8)),
        Point(bytes(32), 0, 0, "r", bytes(8)),
    ):
        with pytest.raises(RemoteProtocolError):
            decode_points(encode_points([bad]), "r")


if __name__ == "__main__":
    VECTORS.write_text(
        json.dumps(
            {
                "frames": _golden(),
                "offer": {
                    "transfer": transfer_id(OFFER).hex(),
                    "transcript": transcript(OFFER).hex(),
                    "version_hash": version_hash(OFFER.stamp).hex(),
                },
            },
            indent=1,
        )
        + "\n"
    )
