"""From a table to coded records: in the engine for a release, in memory for data frames.

A release counts distinct rows where the data lives and fetches those: one pass, whatever the number of candidate grids.
A row without a cell in one of the columns takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.records.attributes import Attribute
from sfumato.records.records import Records
from sfumato.tables.dataset import Dataset
from sfumato.tables.domains import Domain, Numeric
from sfumato.tables.predicates import Where


def read_records(
    dataset: Dataset,
    attributes: Sequence[Attribute],
    target: str,
    *,
    where: Where = None,
    roster: tuple[PersonBudgets, NDArray[np.int64]] | None = None,
) -> Records:
    """Distinct rows with their counts (or summed weights), from the engine that holds the table.

    `roster` gives person groups and the integer weight of a record of each.
    """
    from sfumato.tables import sums

    names = [*(a.name for a in attributes), target]
    if roster is None:
        codes, counts = dataset.sparse_counts(names, where)
    else:
        levels, weights = roster[0].levels, roster[1]
        keep = weights > 0
        codes, totals = sums.sparse_weighted(dataset, (levels[keep], weights[keep]), names, where)
        counts = np.array(totals, dtype=np.int64)
    order = np.lexsort(codes.T[::-1]) if len(codes) else np.zeros(0, dtype=np.intp)
    return records_of_cells(codes[order], counts[order], attributes, dataset.schema[target])


def records_of_cells(
    codes: NDArray[np.integer], counts: NDArray[np.int64] | None, attributes: Sequence[Attribute], target: Domain
) -> Records:
    """Records from schema cells: one column per attribute, the target last."""
    leaves = np.empty((len(codes), len(attributes)), dtype=np.int32, order="F")
    for j, attribute in enumerate(attributes):
        leaves[:, j] = attribute.leaf_of_cell[codes[:, j]]
    return Records(tuple(a.levels for a in attributes), leaves, codes[:, -1].astype(np.int64), target.labels(), counts)


def leaves_of_frame(frame: Any, attributes: Sequence[Attribute]) -> NDArray[np.int32]:
    """The leaf of every attribute for the rows of a data frame: to classify new rows, or for experiments."""
    leaves = np.empty((len(frame), len(attributes)), dtype=np.int32, order="F")
    for j, attribute in enumerate(attributes):
        if attribute.name not in frame:
            raise InputError(f"the table has no column {attribute.name!r}, which the grid needs")
        leaves[:, j] = attribute.leaf_of_cell[cells_of(attribute.domain, frame[attribute.name])]
    return leaves


def cells_of(domain: Domain, column: Any) -> NDArray[np.int64]:
    """The schema cell of every value; what is outside the domain goes to the other cell, or to the first without one.

    >>> cells_of(Numeric(0, 10, bins=2), [1, 7, 99]).tolist()
    [0, 1, 1]
    """
    outside = domain.size - 1 if domain.other else 0
    if isinstance(domain, Numeric):
        place = domain.places(np.array(column, dtype=np.float64))
        return np.where(place < 0, outside, place)
    number = {(type(value), value): i for i, value in enumerate(domain.values)}
    plain = column.tolist() if hasattr(column, "tolist") else list(column)
    return np.array([number.get((type(value), value), outside) for value in plain], dtype=np.int64)
