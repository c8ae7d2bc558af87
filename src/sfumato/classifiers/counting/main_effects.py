"""What the columns of a noisy grid say one at a time: class shares per cell by logistic regression over its groups.

Post-processing of published counts: free. The fit looks through the noise of single cells because a group's effect rests on
all cells it is part of; unlike naive Bayes over the grid's margins it does not count twice what two columns both say.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray


def main_effects(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class shares per cell, classes first, from counts in units of their noise (which is what the ridge is worth).

    Cells may not be negative. Where fewer than two classes have any count all cells get the overall shares.

    >>> counts = np.array([[[90.0, 10.0], [90.0, 10.0]], [[10.0, 90.0], [10.0, 90.0]]])
    >>> main_effects(counts).round(1)[0].tolist()
    [[0.9, 0.1], [0.9, 0.1]]
    """
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    classes, shape = len(counts), counts.shape[1:]
    flat = counts.reshape(classes, -1)
    totals = flat.sum(axis=1) + 1.0
    seen = np.flatnonzero(flat.sum(axis=1) > 0)
    share = np.tile((totals / totals.sum())[:, None], (1, flat.shape[1]))
    if seen.size < 2:
        return share.reshape(counts.shape)
    cells = prod(shape)
    offset = np.concatenate([[0], np.cumsum(shape)])
    columns = np.stack(np.unravel_index(np.arange(cells), shape), axis=1) + offset[:-1]
    rows = np.repeat(np.arange(cells), len(shape))
    groups = sparse.csr_matrix((np.ones(rows.size), (rows, columns.reshape(-1))), shape=(cells, int(offset[-1])))
    label, cell = np.nonzero(flat)
    model = LogisticRegression(C=1.0, max_iter=300).fit(groups[cell], label, sample_weight=flat[label, cell])
    share[:] = 0.0
    share[seen] = model.predict_proba(groups).T
    return share.reshape(counts.shape)
