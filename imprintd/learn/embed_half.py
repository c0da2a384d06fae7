"""
Vectors as they are stored: half precision, little endian.

A component of a vector of length 1 keeps eleven significant bits; the cosine
of a stored vector with its original is above 0.9999.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from imprintd.errors import IntegrityError

Vectors = npt.NDArray[np.float32]


def to_half(vectors: Vectors) -> list[bytes]:
    """One blob of 2 * dimension bytes for each row of (n, dimension)."""
    half = np.ascontiguousarray(vectors, dtype="<f2")
    return [row.tobytes() for row in half]


def from_half(blobs: Sequence[bytes], dimension: int) -> Vectors:
    """
    The rows again, float32 (n, dimension).

    Raises:
        IntegrityError: A blob has another length.
    """
    if any(len(blob) != 2 * dimension for blob in blobs):
        raise IntegrityError(f"a stored vector does not have {dimension} components")
    joined = np.frombuffer(b"".join(blobs), dtype="<f2")
    return joined.reshape(len(blobs), dimension).astype(np.float32)
