"""Blocks of calls and the rule by which their losses join those outside: sum, maximum, or amplification by sampling."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.losses import amplified

Kind = Literal["sequence", "parallel", "sampled"]


class Scope:
    """One open block. `spent` holds person groups first (`groups` of them), then attributes."""

    def __init__(
        self,
        kind: Kind,
        *,
        groups: int,
        size: int,
        probability: NDArray[np.float64] | None = None,
    ) -> None:
        self.kind = kind
        self.groups = groups
        self.spent = np.zeros(size, dtype=np.int64)
        self.probability = probability
        self.drawn = kind != "sampled"  # whether the sample that the price speaks of was really drawn

    def join(self, inner: NDArray[np.int64]) -> NDArray[np.int64]:
        """Losses inside this block after a call or an inner block that costs `inner`."""
        return np.maximum(self.spent, inner) if self.kind == "parallel" else self.spent + inner

    def seen_from_outside(self, losses: NDArray[np.int64]) -> NDArray[np.int64]:
        """What these losses inside the block mean for the data it was drawn from."""
        if self.probability is None:
            return losses
        outside = losses.copy()  # attributes keep their full loss: an upper bound
        outside[: self.groups] = amplified(losses[: self.groups], self.probability)
        return outside
