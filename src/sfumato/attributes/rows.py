"""Distinct and Pareto-maximal rows of a sparse integer matrix, exactly, for a million rows.

Each row is packed into as few 64-bit words as its columns need bits: the packing is one-to-one, so equal words mean equal
rows and sorting words finds duplicates without hashing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MANY = 2000  # rows left that the solver handles as they are, when looking for dominated ones does not pay
_WORK = 100_000_000  # comparisons spent on dominated rows; beyond it the rest is kept, which costs time but no exactness


def _pack(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], values: NDArray[np.int64], columns: int
) -> NDArray[np.uint64]:
    """One-to-one packing of rows into words, shape (words, rows)."""
    most = np.zeros(columns, dtype=np.int64)
    np.maximum.at(most, indices, values)
    bits = np.array([int(v).bit_length() for v in most.tolist()])
    word, shift, used, number = np.zeros(columns, np.int64), np.zeros(columns, np.uint64), 0, 0
    for j, need in enumerate(bits.tolist()):
        if used + need > 64:
            used, number = 0, number + 1
        word[j], shift[j], used = number, used, used + need
    packed = np.zeros((number + 1, indptr.size - 1), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(indptr))
    if filled.size:
        placed = values.astype(np.uint64) << shift[indices]
        for w in range(number + 1):
            part = placed if number == 0 else np.where(word[indices] == w, placed, np.uint64(0))
            packed[w, filled] = np.add.reduceat(part, indptr[filled])
    return packed


def canonical(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], values: NDArray[Any], columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """The same matrix with every cell listed once, in order, and no zeros: what is listed twice is added up.

    >>> [part.tolist() for part in canonical(np.array([0, 3]), np.array([1, 0, 1]), np.array([2, 1, 3]), 2)]
    [[0, 2], [0, 1], [1, 5]]
    """
    rows = indptr.size - 1
    cell = np.repeat(np.arange(rows), np.diff(indptr)) * columns + indices
    if (cell[1:] > cell[:-1]).all() and (values != 0).all():
        return indptr, indices, values
    cells, place = np.unique(cell, return_inverse=True)
    sums = np.zeros(cells.size, dtype=values.dtype)
    np.add.at(sums, place.reshape(-1), values)
    cells, sums = cells[sums != 0], sums[sums != 0]
    return np.searchsorted(cells, np.arange(rows + 1) * columns).astype(np.int64), cells % columns, sums


def distinct_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], values: NDArray[np.int64], columns: int
) -> NDArray[Any]:
    """Distinct rows as a dense matrix of the narrowest integers that hold them.

    >>> distinct_rows(np.array([0, 1, 2, 2]), np.array([1, 1]), np.array([3, 3]), 2).tolist()
    [[0, 0], [0, 3]]
    """
    kind = _narrowest(int(values.max(initial=0)))
    if indptr.size < 2:
        return np.zeros((0, columns), dtype=kind)
    first = _first_of_each(_pack(indptr, indices, values, columns))
    dense = np.zeros((first.size, columns), dtype=kind)
    lengths = indptr[first + 1] - indptr[first]
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    entry = np.repeat(indptr[first], lengths) + within
    dense[np.repeat(np.arange(first.size), lengths), indices[entry]] = values[entry]
    return dense


def _first_of_each(packed: NDArray[np.uint64]) -> NDArray[np.intp]:
    """One row number for each distinct row of words."""
    order = np.argsort(packed[0], kind="stable")
    new = _changes(packed[:1, order])
    if packed.shape[0] > 1 and not new.all():  # some rows share their first word: the others decide
        order = np.lexsort(packed)
        new = _changes(packed[:, order])
    return np.asarray(order[new])


def _changes(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.concatenate([[True], (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])


def maximal_rows(rows: NDArray[Any], *, block: int = 64, work: int = _WORK) -> NDArray[Any]:
    """Distinct rows without those dominated by another; always a superset of the maximal rows.

    Rows come in order of falling sums, so a row can only be dominated by one before it.

    >>> maximal_rows(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])).tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    if rows.shape[0] > block and block * rows.size > work:
        return rows
    left = rows[np.argsort(-rows.sum(axis=1, dtype=np.int64), kind="stable")]
    kept: list[NDArray[Any]] = []
    spent = 0
    while left.shape[0]:
        head, left = left[:block], left[block:]
        inside = (head[None, :, :] >= head[:, None, :]).all(axis=2)
        head = head[~np.tril(inside, -1).any(axis=1)]
        kept.append(head)
        spent += head.shape[0] * left.size
        if spent > work:
            kept.append(left)
            break
        before = left.shape[0]
        for row in head:
            left = left[~(left <= row).all(axis=1)]
        if left.shape[0] > max(_MANY, 0.98 * before):  # rows with weights of their own: hardly any is dominated
            kept.append(left)
            break
    return np.concatenate(kept) if kept else rows


def _narrowest(top: int) -> type[np.integer[Any]]:
    return np.uint8 if top < 1 << 8 else np.uint16 if top < 1 << 16 else np.int64
