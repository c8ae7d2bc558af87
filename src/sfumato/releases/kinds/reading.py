"""How a personalized release reads the table: integer sums per person group, pushed down to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.releases.kinds.base import Facts

if TYPE_CHECKING:
    from sfumato.tables import Dataset


def weighted_cells(
    dataset: Dataset, facts: Facts, weights: NDArray[np.int64], columns: Sequence[str], where: Any
) -> NDArray[np.int64]:
    """Weighted sum of every cell of `columns`, with a weight per person group of the roster."""
    found = dataset.weighted_sums(engine_weights(facts.levels, weights), by=columns, where=where)
    return np.asarray(found).astype(np.int64)


def engine_weights(levels: NDArray[np.int64], weights: NDArray[np.int64]) -> int | tuple[Any, Any]:
    """The weights in the cheapest form: ``min(budget, cap)`` is one expression, anything else a table of levels."""
    cap = int(weights.max())
    if cap >= 1 and bool((weights == np.minimum(levels, cap)).all()):
        return cap
    keep = np.concatenate([np.diff(levels) > 0, [True]])  # tiers of equal budget have equal weights
    return levels[keep], weights[keep]


@dataclass(frozen=True, eq=False)
class TableReader:
    """The `Reader` of the people family over a table: integer sums per person group, nothing else.

    A record contributes 1 (a count), or ``base + k`` where k is its measure on the lattice 0..steps: the value in units of
    ``(high - low) / steps``, with ``base = low / unit``.
    """

    dataset: Dataset
    budgets: PersonBudgets
    levels: NDArray[np.int64]
    where: Any = None
    measure: str | None = None
    steps: int | None = None
    base: int = 0

    def weighted_sum(self, weights: NDArray[np.int64]) -> int:
        if self.base:
            return int(sum(w * s for w, s in zip(weights.tolist(), self.group_sums().tolist(), strict=True)))
        found = self.dataset.weighted_sums(
            engine_weights(self.levels, weights), measure=self.measure, steps=self.steps, where=self.where
        )
        return int(found)

    def group_sums(self) -> NDArray[np.int64]:
        groups = PersonBudgets(self.levels, self.budgets.counts, self.budgets.names)
        return self.dataset.level_counts(groups, where=self.where, measure=self.measure, steps=self.steps, base=self.base)

    def group_values(self) -> NDArray[np.int64]:
        """Records per person group and value; whoever is absent or outside the condition contributes 0."""
        if self.measure is not None:
            raise InputError("a mechanism that samples records answers counts; choose another one for a sum")
        ones = self.group_sums()
        return np.stack([np.maximum(self.budgets.counts - ones, 0), ones], axis=1)
