"""Features for linear models, from public domains only: rows of Euclidean norm at most one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.levels import Levels

Floats = NDArray[np.float64]
_INSIDE = 1 - 1e-12  # keeps rounding from pushing a row beyond norm one


def one_hot(leaves: NDArray[np.integer], taxonomies: Sequence[Levels]) -> Any:
    """Sparse indicator of every leaf; a leaf that is not known has no entry.

    >>> one_hot(np.array([[1], [-1]]), [Levels.flat("sex", ["F", "M"])]).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    from scipy import sparse

    starts = np.concatenate([[0], np.cumsum([t.leaves for t in taxonomies])])
    rows, columns = np.nonzero(leaves >= 0)
    places = leaves[rows, columns] + starts[columns]
    return sparse.csr_matrix((np.ones(rows.size), (rows, places)), shape=(len(leaves), int(starts[-1])))


def design(leaves: NDArray[np.integer], taxonomies: Sequence[Levels], *, groups: int = 8) -> Floats:
    """A matrix for linear models: ordered columns as one number in [-1, 1], others one indicator per group, and a constant.

    A category with many values is taken at the finest level with at most `groups` of them. Each column's part of a row has
    norm at most one, so after division by ``sqrt(columns + 1)`` a row has norm at most one.

    >>> x = design(np.array([[0, 1], [3, 0]]), [Levels.numeric("age", [0, 1, 2, 3, 4]), Levels.flat("sex", ["F", "M"])])
    >>> (x * 3**0.5).round(3).tolist()
    [[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]
    """
    parts = []
    for j, taxonomy in enumerate(taxonomies):
        column = leaves[:, j]
        known = column >= 0
        if taxonomy.edges is not None or taxonomy.leaves == 2:
            place = 2.0 * column / max(1, taxonomy.leaves - 1) - 1.0
            parts.append(np.where(known, place, 0.0)[:, None])
        else:
            level = max(i for i, size in enumerate(taxonomy.sizes) if i <= 1 or size <= groups)
            node = taxonomy.maps[level][np.maximum(column, 0)]
            parts.append(((node[:, None] == np.arange(taxonomy.sizes[level])) & known[:, None]).astype(np.float64))
    parts.append(np.ones((len(leaves), 1)))
    return np.asarray(np.hstack(parts) * (_INSIDE / np.sqrt(len(taxonomies) + 1)))
