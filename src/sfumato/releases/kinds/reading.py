"""How a personalized release reads the table: integer sums per person group, pushed down to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.integers import as_int64
from sfumato.releases.kinds.base import Facts

if TYPE_CHECKING:
    from sfumato.tables import Dataset


def weighted_cells(
    dataset: Dataset, facts: Facts, weights: NDArray[np.int64], columns: Sequence[str], where: Any
) -> NDArray[np.int64]:
    """Weighted sum of every cell of `columns`, with a weight per person group of the roster."""
    assert facts.budgets is not None
    exact = facts.roster is not None and not facts.roster.states_levels
    found = np.asarray(dataset.weighted_sums(engine_weights(facts.budgets.levels, weights, exact), by=columns, where=where))
    return as_int64(found.reshape(-1)).reshape(found.shape)  # held at the ends: to fail here would tell of the data


def engine_weights(levels: NDArray[np.int64], weights: NDArray[np.int64], exact: bool) -> int | tuple[Any, Any]:
    """The weights in the cheapest form: ``min(budget, cap)`` is one expression, anything else a table of levels.

    Only where every budget of the table is `exact`ly one of the levels: whoever granted something in between, or less than
    the first level, is charged as the level below and must not weigh more than it.
    """
    cap = int(weights.max())
    if exact and cap >= 1 and bool((weights == np.minimum(levels, cap)).all()):
        return cap
    keep = np.concatenate([np.diff(levels) > 0, [True]])  # tiers of equal budget have equal weights
    return levels[keep], weights[keep]
