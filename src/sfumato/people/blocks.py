"""Cells seen as differences of neighbouring blocks: an orthonormal change of view, for any number of cells and columns.

Neighbours are joined in pairs again and again (Haar). A pair of blocks with a and b cells and sums A and B gives one number,
how much they differ, ``(A/a - B/b) √(ab/(a+b))``, and is one block from then on. Every step is a rotation, so independent
noises of equal variance stay uncorrelated and keep their variance; a gap that is alike in many neighbouring cells becomes
one large number. Several columns are taken one after the other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@lru_cache(maxsize=64)
def _levels(cells: int) -> tuple[tuple[Floats, Floats], ...]:
    """Per level, how many cells the left and the right block of each pair have; a last odd one waits."""
    sizes, found = np.ones(cells), []
    while sizes.size > 1:
        half = sizes.size // 2
        left, right = sizes[0 : 2 * half : 2], sizes[1 : 2 * half : 2]
        found.append((left, right))
        sizes = np.concatenate([left + right, sizes[2 * half :]])
    return tuple(found)


def _along(x: Floats, variances: bool) -> Floats:
    """Differences of blocks along the last axis, the coarsest first; of variances, those of the differences."""
    out, rest = [], x
    for left, right in _levels(x.shape[-1]):
        half = left.size
        a, b = left / (left + right), right / (left + right)
        if not variances:
            a, b = np.sqrt(a), np.sqrt(b)
        first, second = rest[..., 0 : 2 * half : 2], rest[..., 1 : 2 * half : 2]
        out.append(b * first + a * second if variances else b * first - a * second)
        rest = np.concatenate([a * first + b * second, rest[..., 2 * half :]], axis=-1)
    return np.concatenate([rest, *out[::-1]], axis=-1)


def _back(x: Floats) -> Floats:
    rest, start = x[..., :1], 1
    for left, right in _levels(x.shape[-1])[::-1]:
        half = left.size
        a, b = np.sqrt(left / (left + right)), np.sqrt(right / (left + right))
        joined, apart = rest[..., :half], x[..., start : start + half]
        start += half
        fine = np.empty((*x.shape[:-1], rest.shape[-1] + half))
        fine[..., 0 : 2 * half : 2] = a * joined + b * apart
        fine[..., 1 : 2 * half : 2] = b * joined - a * apart
        fine[..., 2 * half :] = rest[..., half:]
        rest = fine
    return rest


def _each_column(x: Floats, shape: tuple[int, ...], step: object) -> Floats:
    table = x.reshape(*x.shape[:-1], *shape)
    for axis in range(-len(shape), 0):
        table = np.moveaxis(step(np.moveaxis(table, axis, -1)), -1, axis)  # type: ignore[operator]
    return np.asarray(table.reshape(x.shape))


def to_blocks(x: Floats, shape: tuple[int, ...]) -> Floats:
    """Differences of blocks of the cells in the last axis of `x`, which are laid out as `shape`.

    >>> to_blocks(np.array([3.0, 3.0, 1.0, 1.0]), (4,)).round(6).tolist()  # one number says what differs
    [4.0, 2.0, 0.0, 0.0]
    """
    return _each_column(x, shape, lambda part: _along(part, False))


def from_blocks(x: Floats, shape: tuple[int, ...]) -> Floats:
    """The cells again.

    >>> x = np.arange(21.0) ** 2
    >>> bool(np.allclose(from_blocks(to_blocks(x, (7, 3)), (7, 3)), x))
    True
    """
    return _each_column(x, shape, _back)


def block_variances(variances: Floats, shape: tuple[int, ...]) -> Floats:
    """Variances of the differences of blocks, where cells are independent and have these `variances`."""
    return _each_column(variances, shape, lambda part: _along(part, True))


@lru_cache(maxsize=64)
def block_sizes(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Per difference of blocks: how many cells it covers, and how many equal noises it is like (by its kurtosis)."""
    sizes, like = np.ones(1), np.ones(1)
    for cells in shape:
        size = [np.array([float(cells)])]
        alike = [np.array([float(cells)])]
        for left, right in _levels(cells)[::-1]:
            size.append(left + right)
            alike.append(left * right * (left + right) ** 2 / (left**3 + right**3))
        sizes = np.outer(sizes, np.concatenate(size)).reshape(-1)
        like = np.outer(like, np.concatenate(alike)).reshape(-1)
    return sizes, like
