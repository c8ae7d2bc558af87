"""Wide columns as bits: the binary and Gray encodings of PrivBayes (Zhang et al. 2014/2017).

A column of l values becomes ⌈log₂ l⌉ columns of two, so that the score F and its small spread can be used for any table. In
the *binary* code the bits are those of the value's number; in the *Gray* code neighbouring numbers differ in one bit only,
which suits ordered columns: a bit that is drawn wrong then often means a value close by.

Which bits a record has depends on that record and the public schema only, so one record more in the table is one record more
among the bits, and everything proven for binary columns holds (`dependence`). Codes beyond the last value can be drawn from
noise; decoding takes the last value for them. That is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.records.levels import Levels
from sfumato.records.records import Records

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bits:
    """How columns (the target last) become bits, most significant first.

    >>> code = Bits((Levels.flat("place", ["a", "b", "c"]), Levels.flat("ill", ["no", "yes"])), gray=True)
    >>> [c.name for c in code.columns]
    ['place (bit 1)', 'place (bit 0)', 'ill (bit 0)']
    >>> code.encode(np.array([[0, 0], [1, 0], [2, 1]])).tolist()
    [[0, 0, 0], [0, 1, 0], [1, 1, 1]]
    >>> code.decode(np.array([[1, 1, 1], [1, 0, 0]])).tolist()
    [[2, 1], [2, 0]]
    """

    wide: tuple[Levels, ...]
    gray: bool

    @property
    def widths(self) -> list[int]:
        """Bits per column; a column of a single value needs none."""
        return [(c.leaves - 1).bit_length() for c in self.wide]

    @cached_property
    def columns(self) -> tuple[Levels, ...]:
        """One binary column per bit."""
        named = zip(self.wide, self.widths, strict=True)
        return tuple(Levels.flat(f"{c.name} (bit {b})", ["0", "1"]) for c, width in named for b in reversed(range(width)))

    def encode(self, leaves: NDArray[np.integer]) -> Ints:
        """The bits of rows of leaves."""
        out = []
        for j, width in enumerate(self.widths):
            number = leaves[:, j].astype(np.int64)
            code = number ^ (number >> 1) if self.gray else number
            out += [(code >> b) & 1 for b in reversed(range(width))]
        return np.stack(out, axis=1)

    def decode(self, bits: NDArray[np.integer]) -> Ints:
        """The leaves of rows of bits; a code that stands for nothing becomes the last leaf."""
        out, first = np.zeros((len(bits), len(self.wide)), dtype=np.int64), 0
        for j, width in enumerate(self.widths):
            above = np.zeros(len(bits), dtype=np.int64)
            for b in range(first, first + width):
                bit = bits[:, b].astype(np.int64)
                above = bit ^ above if self.gray else bit  # a Gray bit tells whether the bit differs from the one above
                out[:, j] = 2 * out[:, j] + above
            first += width
        return np.asarray(np.minimum(out, np.array([c.leaves - 1 for c in self.wide])))

    def records(self, plain: Records) -> Records:
        """The same records as bits; the last bit of the target stands where a class does."""
        bits = self.encode(np.column_stack([plain.leaves, plain.classes]))
        return Records(self.columns[:-1], bits[:, :-1], bits[:, -1], ("0", "1"), plain.weights)


def bits_for(columns: Sequence[Levels], encoding: str) -> Bits | None:
    """The code that an encoding asks for; None where columns stay as they are."""
    return Bits(tuple(columns), gray=encoding == "gray") if encoding in ("binary", "gray") else None
