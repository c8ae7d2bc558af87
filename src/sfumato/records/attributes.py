"""From the public schema to levels whose nodes are runs of leaves (see `Domain.levels` for columns without a tree)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.records.levels import Levels
from sfumato.tables.domains import Domain
from sfumato.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column of coded records: its levels, and the leaf of each schema cell.

    Attributes
    ----------
    name : str
        The column.
    domain : Domain
        Its public domain.
    levels : Levels
        The levels of its tree, leaves in tree order.
    leaf_of_cell : int64 array
        The leaf of each cell of the domain.

    Examples
    --------
    >>> from sfumato.tables.domains import Categorical
    >>> place = Categorical(["oslo", "bern", "nice"], other=True, taxonomy={"south": ["bern", "nice"], "north": ["oslo"]})
    >>> a = attribute_of("place", place)
    >>> a.levels.labels[1], a.levels.labels[2], a.leaf_of_cell.tolist()
    (('south', 'north', 'other'), ('bern', 'nice', 'oslo', 'other'), [2, 0, 1, 3])
    """

    name: str
    domain: Domain
    levels: Levels
    leaf_of_cell: NDArray[np.int64]


def attribute_of(name: str, domain: Domain) -> Attribute:
    """A column with its levels: those of its tree, or made where it has none (see `Domain.levels`).

    Parameters
    ----------
    name : str
        The column.
    domain : Domain
        Its public domain.

    Returns
    -------
    Attribute
    """
    return Attribute(name, domain, *_in_tree_order(name, domain, *domain.levels()))


def _in_tree_order(
    name: str, domain: Domain, partitions: list[NDArray[np.int64]], groups: list[list[str]]
) -> tuple[Levels, NDArray[np.int64]]:
    cell_of_leaf = np.argsort(partitions[-1], kind="stable") if len(partitions[-1]) else np.zeros(0, dtype=np.int64)
    leaf_of_cell = np.argsort(cell_of_leaf)
    starts: list[NDArray[np.int64]] = []
    labels: list[tuple[str, ...]] = []
    for codes, group in zip(partitions, groups, strict=True):
        run = codes[cell_of_leaf]
        first = np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1])
        if np.unique(run).size != first.size:
            raise SchemaError(f"the taxonomy of {name!r} does not keep its nodes together")
        text = tuple(group[int(code)] for code in run[first])
        if starts and first.size == starts[-1].size:
            labels[-1] = text if first.size > 1 else labels[-1]
        else:
            starts.append(first)
            labels.append(text)
    if starts[0].size > 1:
        raise SchemaError(f"the taxonomy of {name!r} needs a root that covers the whole domain")
    in_order = domain.cell_edges is not None and (np.diff(cell_of_leaf) == 1).all()
    edges = np.array(domain.cell_edges, dtype=np.float64) if in_order else None
    return Levels(name, tuple(labels), tuple(starts), edges=edges), leaf_of_cell


def attributes_of(schema: Schema, *, target: str, attributes: Sequence[str] | None = None) -> tuple[Attribute, ...]:
    """The predictors of a schema.

    Parameters
    ----------
    schema : Schema
        The public schema.
    target : str
        The column to be predicted.
    attributes : sequence of str, optional
        The predictors by name; by default every column but the target.

    Returns
    -------
    tuple of Attribute
    """
    schema[target]
    wanted = tuple(attributes) if attributes is not None else tuple(c for c in schema.names if c != target)
    if target in wanted:
        raise SchemaError(f"{target!r} is the target, so it cannot be a predictor")
    if not wanted:
        raise SchemaError(f"no predictors beside the target {target!r}")
    return tuple(attribute_of(name, schema[name]) for name in wanted)
