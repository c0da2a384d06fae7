"""
The messages of the protocol as plain frozen data; `frames.py` writes them down.

Digests, keys and ids are raw bytes. A `need` is a tuple of (first, count)
ranges of item numbers. The items of a version are numbered: its blocks, then
the pages of its manifest, then the points of its chunks by ordinal.
"""

from __future__ import annotations

from dataclasses import dataclass

from imprintd.model.snapshot import Stamp
from imprintd.model.source import Coverage, SourceId, SourceMeta
from imprintd.wire import limits

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """
    First message of an epoch, both ways.

    Attributes:
        proto_min: Oldest protocol that the sender speaks.
        proto_max: Newest.
        caps: Optional features; one is used only when both name it.
        build: Name and version, for people.
        wall_ms: The sender's clock.
    """

    proto_min: int
    proto_max: int
    caps: tuple[str, ...]
    build: str
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Summary:
    """
    Where both change logs stand; states, never requests, so any may be lost.

    Attributes:
        index: Id of the life of the sender's change log.
        change: Its last change number.
        seen_index: The receiver's log as the sender knows it; empty: unknown.
        seen: Last change number of that log that the sender has looked at:
            what follows it is asked for.
        settled: Last number up to which nothing is left to do, durably.
        heads: How many heads the sender has.
    """

    index: bytes
    change: int
    seen_index: bytes
    seen: int
    settled: int
    heads: int


@dataclass(frozen=True, slots=True)
class Change:
    """One head in a change log: its number, source and version, hashed for the link."""

    change: int
    key: bytes
    version: bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """
    The change log after `prev` up to and with `last`.

    Entries rise strictly. Numbers that are missing concern heads that were
    replaced since, or that the sender knows the receiver to have.
    """

    index: bytes
    prev: int
    last: int
    entries: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """
    A range of keys, `low` up to but without `high`; empty `high`: to the end.

    Attributes:
        count: Heads in it.
        sum: SHA-256, shortened to 16 bytes, over their number and the sum of
            their hashes.
    """

    low: bytes
    high: bytes
    count: int
    sum: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """Asks whether these ranges are equal on the other side."""

    round: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What one range of an `Ask` holds on the answering side.

    Attributes:
        round: Of the question.
        low: Names the range together with `high`.
        high: Likewise.
        index: Change log of the answering side.
        change: Where that log stood; what comes later is a delta.
        equal: Nothing differs.
        spans: Smaller ranges that together are this one, or
        entries: all heads in it (change numbers are 0 here).
    """

    round: int
    low: bytes
    high: bytes
    index: bytes
    change: int
    equal: bool
    spans: tuple[Span, ...] = ()
    entries: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Want:
    """Offer me the heads of these keys, in this order."""

    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block of the offered text: SHA-256 of its plain bytes, bytes, characters."""

    digest: bytes
    size: int
    chars: int


@dataclass(frozen=True, slots=True)
class Offer:
    """
    Everything about a head but its text, manifest entries and points.

    Attributes:
        key: The key it was wanted by.
        stamp: Names the version: as its origin published it.
        origin: Device that learned it.
        version: 32 hex characters, see SnapshotUpdate.
        root: Chain over the blocks.
        manifest_root: Chain over the chunks.
        rules: Fingerprints under which points can be asked for.
        after: Version hashes of heads that this one replaced, newest first.
    """

    key: bytes
    source: SourceId
    meta: SourceMeta
    stamp: Stamp
    origin: str
    version: str
    profile: str
    learner: int
    blocks: tuple[BlockRef, ...]
    chunks: int
    total_chars: int
    total_bytes: int
    events: int
    root: bytes
    manifest_root: bytes
    coverage: Coverage
    rules: tuple[str, ...] = ()
    after: tuple[bytes, ...] = ()

    @property
    def pages(self) -> int:
        """How many manifest pages there are."""
        return -(-self.chunks // limits.PAGE_ENTRIES)

    @property
    def first_page(self) -> int:
        """Item number of the first manifest page."""
        return len(self.blocks)

    @property
    def first_point(self) -> int:
        """Item number of the points of the first chunk."""
        return len(self.blocks) + self.pages

    @property
    def items(self) -> int:
        """How many items there are."""
        return self.first_point + self.chunks


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first `size` plain bytes of a block, by hash: send what follows them."""

    item: int
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Accept:
    """
    Take up a transfer, or go on with one.

    Attributes:
        transfer: Digest of the offer, 16 bytes.
        turn: Grows with every ACCEPT and CREDIT of a transfer; older ones
            that come late are passed over.
        need: Items still missing, the first NEED_RANGES_MAX ranges of them.
        prefixes: Blocks whose start is held.
        frames: Frames that may be in flight.
        size: Encoded bytes that may be in flight.
    """

    transfer: bytes
    turn: int
    need: Ranges
    prefixes: tuple[Prefix, ...]
    frames: int
    size: int


@dataclass(frozen=True, slots=True)
class Credit:
    """
    Progress of a transfer: what is durably staged is no longer in `need`.

    `again` says that nothing came for a while: whatever is in flight is lost.
    """

    transfer: bytes
    turn: int
    need: Ranges
    frames: int
    size: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """
    An offer is not taken, or there is nothing to offer.

    Attributes:
        transfer: Digest of the offer; empty when answering a WANT.
        key: The key concerned.
        reason: `have-newer`, `have-same`, `excluded`, `purged`, `too-big`,
            `clock-ahead`, `quota`, `gone`, `not-verified`, `bad-key`.
    """

    transfer: bytes
    key: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Data:
    """
    One item, or the rest of one.

    Attributes:
        offset: Plain bytes left out because the receiver has them.
        size: Plain bytes here.
        digest: SHA-256 of them.
        packed: One zstd frame that declares `size`.
    """

    transfer: bytes
    item: int
    offset: int
    size: int
    digest: bytes
    packed: bytes


@dataclass(frozen=True, slots=True)
class Points:
    """
    Points of some chunks. The plain content is what `pages.encode_points` makes.

    Attributes:
        items: The items that this frame settles, as ranges.
        rules: Fingerprint of the rules the vectors were made under.
    """

    transfer: bytes
    items: Ranges
    rules: str
    size: int
    digest: bytes
    packed: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """
    All that was needed has been sent.

    `transcript` is SHA-256 over the offer's digest, all block digests in
    order and the number of items: what was offered is what is published.
    """

    transfer: bytes
    items: int
    transcript: bytes


@dataclass(frozen=True, slots=True)
class Committed:
    """The version is published, durably, at the receiver."""

    transfer: bytes
    key: bytes
    version: bytes


@dataclass(frozen=True, slots=True)
class Nack:
    """The transfer is not known (any more); start again with WANT."""

    transfer: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Are you there? Answered by PONG with the same token."""

    token: int


@dataclass(frozen=True, slots=True)
class Pong:
    """Yes; `wall_ms` is the answering clock."""

    token: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A message that had to be understood was not."""

    type: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """What decoding gives for a type of a newer protocol; never sent."""

    type: int
    must_understand: bool


Message = (
    Hello
    | Summary
    | Changes
    | Ask
    | Answer
    | Want
    | Offer
    | Accept
    | Credit
    | Reject
    | Data
    | Points
    | Done
    | Committed
    | Nack
    | Ping
    | Pong
    | Unsupported
    | Unknown
)
