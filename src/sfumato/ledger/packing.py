"""Integers as few bytes: what a ledger keeps for each of a million people.

A column is stored as its least value and, for every entry, how far it lies above it, in as many bytes as the furthest needs.
The bytes of equal weight lie together (they are alike), and zlib does the rest. A column of equal values costs nothing.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import LedgerError

CHUNK = 4096  # people whose changes and charges lie in one line, so that a receipt opens little


def squeeze(columns: Sequence[ArrayLike]) -> bytes:
    """Columns of int64 of one length, packed.

    >>> [column.tolist() for column in widen(squeeze([[3, 5, 4], [7, 7, 7]]))]
    [[3, 5, 4], [7, 7, 7]]
    """
    arrays = [np.ascontiguousarray(column, dtype="<i8") for column in columns]
    parts = [struct.pack("<IB", len(arrays[0]), len(arrays))]
    for array in arrays:
        least = int(array.min(initial=2**63 - 1)) if array.size else 0
        above = array - least
        width = (int(above.max(initial=0)).bit_length() + 7) // 8
        planes = above.view(np.uint8).reshape(-1, 8)[:, :width]
        parts += [struct.pack("<qB", least, width), np.ascontiguousarray(planes.T).tobytes()]
    return zlib.compress(b"".join(parts), 1)


def widen(packed: Any) -> list[NDArray[np.int64]]:
    """The columns that `squeeze` packed."""
    try:
        raw = zlib.decompress(bytes(packed))
        length, columns = struct.unpack_from("<IB", raw)
        at, found = 5, []
        for _ in range(columns):
            least, width = struct.unpack_from("<qB", raw, at)
            at += 9
            planes = np.frombuffer(raw, np.uint8, length * width, at).reshape(width, length)
            wide = np.zeros((length, 8), dtype=np.uint8)
            wide[:, :width] = planes.T
            found.append(wide.view("<i8").reshape(length).astype(np.int64, copy=False) + least)
            at += length * width
    except (zlib.error, struct.error, ValueError):
        raise LedgerError("a line of the ledger is damaged; restore it from a backup before releasing anything") from None
    return found


def chunks_of(places: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """Where each chunk begins and ends in sorted `places`: its number, and the entries that lie in it."""
    if not places.size:
        return []
    numbers = places // CHUNK
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(starts[1:], places.size)
    return [(int(numbers[a]), slice(int(a), int(b))) for a, b in zip(starts, ends, strict=True)]
