"""Sums over records in memory, exactly: by person group, by value, by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy import Exact
from sfumato.privacy.integers import whole_numbers

Integers = NDArray[np.int64]


def per_part(sums: Integers, parts: Integers, weights: Integers) -> list[int]:
    """Sums times weights, added up by part as Python's integers."""
    products = sums.astype(object) * weights.astype(object)
    return [int(products[parts == part].sum()) for part in range(int(parts.max(initial=-1)) + 1)]


def records_of(groups: ArrayLike, values: ArrayLike) -> Exact[tuple[Integers, Integers]]:
    """Group and value of every record, as one private value; what is refused is the form of the arrays."""
    g, v = whole_numbers(groups, "person groups"), whole_numbers(values, "a measure's values")
    if g.ndim != 1 or g.shape != v.shape:
        raise InputError("groups and values must be flat arrays of equal length")
    return Exact((g, v))


def _known(groups: Integers, group_count: int | None) -> tuple[NDArray[np.bool_], int]:
    size = int(groups.max(initial=-1)) + 1 if group_count is None else group_count
    return (groups >= 0) & (groups < size), size


def tally(groups: Integers, values: Integers, low: int, high: int, group_count: int | None) -> Integers:
    """Records per group and value."""
    width = high - low + 1
    known, size = _known(groups, group_count)
    cell = groups[known] * width + (np.clip(values[known], low, high) - low)
    return np.bincount(cell, minlength=size * width).reshape(size, width).astype(np.int64)


def add_up(groups: Integers, values: Integers, group_count: int | None) -> tuple[int, ...]:
    """Values added up per group, as Python's integers."""
    known, size = _known(groups, group_count)
    found = np.zeros(size, dtype=object if _wide(values) else np.int64)
    np.add.at(found, groups[known], values[known].astype(found.dtype))
    return tuple(found.tolist())


def _wide(values: Integers) -> bool:
    """Whether their sum may pass 64 bits."""
    return values.size * max(-int(values.min(initial=0)), int(values.max(initial=0))) >= 2**63


def weighted(sums: Sequence[int], weights: Integers) -> int:
    """Sums times weights, added up; a group that no record shows adds nothing."""
    return sum(s * w for s, w in zip(sums, weights.tolist(), strict=False))
