"""The database: schema, one writer, read connections; the only truth there is."""

from imprintd.store.records import (
    BaseData,
    ChunkRow,
    Codec,
    DeadChunk,
    Fence,
    OwedContent,
    Page,
    PointRow,
    Statistics,
    StoredBlock,
    StoredCursor,
    StoredError,
    StoreVerdict,
)
from imprintd.store.store import Store, set_aside

__all__ = [
    "BaseData",
    "ChunkRow",
    "Codec",
    "DeadChunk",
    "Fence",
    "OwedContent",
    "Page",
    "PointRow",
    "Statistics",
    "Store",
    "StoreVerdict",
    "StoredBlock",
    "StoredCursor",
    "StoredError",
    "set_aside",
]
