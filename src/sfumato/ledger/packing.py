"""Integers as few bytes: what a ledger keeps for each of a million people.

A column is stored as its least value and, for every entry, how far it lies above it, in as many bytes as the furthest needs.
The bytes of equal weight lie together (they are alike), compressed where that helps: what does not compress can be looked
into without opening it. A column of equal values costs nothing.
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

    >>> packed = squeeze([[3, 5, 4], [7, 7, 7]])
    >>> [column.tolist() for column in widen(packed)], Columns(packed).at(0, 1)
    ([[3, 5, 4], [7, 7, 7]], 5)
    """
    arrays = [np.ascontiguousarray(column, dtype="<i8") for column in columns]
    parts = [struct.pack("<IB", len(arrays[0]), len(arrays))]
    for array in arrays:
        least = int(array.min()) if array.size else 0
        above = array - least
        width = (int(above.max(initial=0)).bit_length() + 7) // 8
        parts.append(struct.pack("<qB", least, width))
        for plane in np.ascontiguousarray(above.view(np.uint8).reshape(-1, 8)[:, :width].T):
            raw = plane.tobytes()
            small = zlib.compress(raw, 1)
            kept = small if len(small) < len(raw) else raw
            parts += [struct.pack("<I", len(kept)), kept]
    return b"".join(parts)


class Columns:
    """Packed columns, opened only where somebody looks."""

    def __init__(self, packed: Any) -> None:
        self._raw = bytes(packed)
        try:
            self.length, columns = struct.unpack_from("<IB", self._raw)
            at = 5
            self._columns: list[tuple[int, list[tuple[int, int]]]] = []
            for _ in range(columns):
                least, width = struct.unpack_from("<qB", self._raw, at)
                at += 9
                planes = []
                for _ in range(width):
                    (size,) = struct.unpack_from("<I", self._raw, at)
                    planes.append((at + 4, size))
                    at += 4 + size
                self._columns.append((least, planes))
        except struct.error:
            raise _damaged() from None
        if at != len(self._raw):
            raise _damaged()

    def __len__(self) -> int:
        return len(self._columns)

    def _plane(self, start: int, size: int) -> bytes:
        raw = self._raw[start : start + size]
        try:
            whole = raw if size == self.length else zlib.decompress(raw)
        except zlib.error:
            raise _damaged() from None
        if len(whole) != self.length:
            raise _damaged()
        return whole

    def column(self, number: int) -> NDArray[np.int64]:
        """A whole column."""
        least, planes = self._columns[number]
        wide = np.zeros((self.length, 8), dtype=np.uint8)
        for byte, place in enumerate(planes):
            wide[:, byte] = np.frombuffer(self._plane(*place), dtype=np.uint8)
        found: NDArray[np.int64] = wide.view("<i8").reshape(self.length).astype(np.int64, copy=False) + least
        return found

    def at(self, number: int, entry: int) -> int:
        """One entry of a column."""
        least, planes = self._columns[number]
        if not 0 <= entry < self.length:
            raise _damaged()
        # A plane that is kept as it is need not be copied to look at one byte of it.
        found = (self._raw[a + entry] if size == self.length else self._plane(a, size)[entry] for a, size in planes)
        return least + int.from_bytes(bytes(found), "little")


def widen(packed: Any) -> list[NDArray[np.int64]]:
    """The columns that `squeeze` packed."""
    columns = Columns(packed)
    return [columns.column(number) for number in range(len(columns))]


def _damaged() -> LedgerError:
    return LedgerError("a line of the ledger is damaged; restore it from a backup before releasing anything")


def chunks_of(places: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """Where each chunk begins and ends in sorted `places`: its number, and the entries that lie in it."""
    if not places.size:
        return []
    numbers = places // CHUNK
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(starts[1:], places.size)
    return [(int(numbers[a]), slice(int(a), int(b))) for a, b in zip(starts, ends, strict=True)]
