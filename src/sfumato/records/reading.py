"""From a table to coded records, counted by the engine that holds it (`records.coding` codes data frames in memory).

A release counts distinct rows where the data lives and fetches those: one pass, whatever the number of candidate grids.
A row without a cell in one of the columns takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.records.attributes import Attribute
from sfumato.records.records import Records
from sfumato.tables.dataset import Dataset
from sfumato.tables.domains import Domain
from sfumato.tables.personal import PersonalTable
from sfumato.tables.predicates import Where


def read_records(
    dataset: Dataset,
    attributes: Sequence[Attribute],
    target: str,
    *,
    where: Where = None,
    roster: tuple[PersonBudgets, NDArray[np.int64]] | None = None,
) -> Exact[Records]:
    """Distinct rows with their counts (or summed weights), from the engine that holds the table.

    Names are checked here; the table is read when a Meter opens the records.

    Parameters
    ----------
    dataset : Dataset
        The private table.
    attributes : sequence of Attribute
        The columns to read.
    target : str
        The column with the classes.
    where : predicate, optional
        Only rows that it holds for.
    roster : (PersonBudgets, int64 array), optional
        Person groups, and the integer weight of a record of each; without it every row weighs 1.

    Returns
    -------
    Exact of Records
    """
    names = [*(a.name for a in attributes), target]
    if roster is None:
        found = dataset.sparse_counts(names, where)
    else:
        found = PersonalTable(dataset, roster[0]).weighted_rows(roster[1], names, where)
    return found.map(lambda rows: records_of_cells(*rows, attributes, dataset.schema[target]))


def read_rows(dataset: Dataset, attributes: Sequence[Attribute], target: str, *, where: Where = None) -> Exact[Records]:
    """Every record as a row of its own, in the order of their cells: what a learner needs that looks at records one by one.

    The engine counts distinct rows, as for `read_records`, so all engines give the same rows in the same order.

    Parameters
    ----------
    dataset : Dataset
        The private table.
    attributes : sequence of Attribute
        The columns to read.
    target : str
        The column with the classes.
    where : predicate, optional
        Only rows that it holds for.

    Returns
    -------
    Exact of Records
    """
    return read_records(dataset, attributes, target, where=where).map(Records.expanded)


def read_members(
    dataset: Dataset, attributes: Sequence[Attribute], target: str, budgets: PersonBudgets, *, where: Where = None
) -> Exact[tuple[Records, NDArray[np.int64]]]:
    """Every record as a row of its own, and the person group that each belongs to; see `PersonalTable` for who that is.

    Parameters
    ----------
    dataset : Dataset
        The private table, with its roster.
    attributes : sequence of Attribute
        The columns to read.
    target : str
        The column with the classes.
    budgets : PersonBudgets
        The person groups.
    where : predicate, optional
        Only rows that it holds for.

    Returns
    -------
    Exact of (Records, int64 array)
    """
    names = [*(a.name for a in attributes), target]
    domain = dataset.schema[target]

    def rows_of(found: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]) -> tuple[Records, NDArray[np.int64]]:
        groups, cells, counts = found
        order = np.lexsort((*cells.T[::-1], groups))  # engines give groups in any order
        kept = np.repeat(order, counts[order])
        return records_of_cells(cells[kept], None, attributes, domain), groups[kept]

    return PersonalTable(dataset, budgets).group_rows(names, where).map(rows_of)


def records_of_cells(
    codes: NDArray[np.integer], counts: NDArray[np.int64] | None, attributes: Sequence[Attribute], target: Domain
) -> Records:
    """Records from schema cells: one column per attribute, the target last."""
    leaves = np.empty((len(codes), len(attributes)), dtype=np.int32, order="F")
    for j, attribute in enumerate(attributes):
        leaves[:, j] = attribute.leaf_of_cell[codes[:, j]]
    return Records(tuple(a.levels for a in attributes), leaves, codes[:, -1].astype(np.int64), target.labels(), counts)
