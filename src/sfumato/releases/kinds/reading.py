"""How a personalized release reads the table: integer sums per person group, pushed down to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.releases.kinds.base import Facts

if TYPE_CHECKING:
    from sfumato.tables import Dataset


def weighted_cells(
    dataset: Dataset, facts: Facts, weights: NDArray[np.int64], columns: Sequence[str], where: Any
) -> NDArray[np.int64]:
    """Weighted sum of every cell of `columns`, with a weight per person group of the roster."""
    assert facts.budgets is not None
    found = dataset.weighted_sums(engine_weights(facts.budgets.levels, weights), by=columns, where=where)
    return np.asarray(found).astype(np.int64)


def engine_weights(levels: NDArray[np.int64], weights: NDArray[np.int64]) -> int | tuple[Any, Any]:
    """The weights in the cheapest form: ``min(budget, cap)`` is one expression, anything else a table of levels."""
    cap = int(weights.max())
    if cap >= 1 and bool((weights == np.minimum(levels, cap)).all()):
        return cap
    keep = np.concatenate([np.diff(levels) > 0, [True]])  # tiers of equal budget have equal weights
    return levels[keep], weights[keep]
