"""Figure 10: what each method would gain if its structure were chosen without noise. Not private, for experiments only.

The variants go through `Meter.unsound`, so secure noise refuses them and a seeded run marks its guarantee. Choices still
cost what they would cost, so the counts get the same noise as in the private method and only the structure differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from sfumato.bench.grids_accuracy import evaluate
from sfumato.bench.grids_data import Case
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.privacy import Exact, Meter

_FAR = 1e12  # records: no noise reaches this far down


class ExactChoices:
    """A Meter in which the best candidate (the first of them) always wins; everything else is the meter's own."""

    def __init__(self, meter: Meter) -> None:
        meter.unsound("the structure is chosen without noise")
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._meter, name)

    def choose(self, scores: Exact[Any], **how: Any) -> int:
        return self._meter.choose(scores.map(_sharpened), **how)


def _sharpened(scores: Any) -> Any:
    found = np.asarray(scores, dtype=np.float64)
    return np.where(np.arange(found.size) == found.argmax(), 0.0, -_FAR)


class _Exactly:
    """Releases through `ExactChoices`."""

    def release(self, records: Any, task: Any, meter: Meter, **more: Any) -> Any:
        return cast(Any, super()).release(records, task, cast(Meter, ExactChoices(meter)), **more)


class NoiseFreePrivPfC(_Exactly, PrivPfC):
    """PrivPfC-SelNF: the grid without noise."""


class NoiseFreeDiffGen(_Exactly, DiffGen):
    """DiffGen-Struct-NF: every specialisation without noise."""


class NoiseFreePrivBayes(_Exactly, PrivBayes):
    """PrivBayes-Struct-NF: the network without noise."""


VARIANTS: dict[str, Callable[..., Any]] = {
    "privpfc": lambda **how: NoiseFreePrivPfC(grids=1, **how),
    "diffgen": NoiseFreeDiffGen,
    "privbayes": NoiseFreePrivBayes,
}


def noise_free(case: Case, names: Sequence[str] = tuple(VARIANTS), **how: Any) -> dict[str, Any]:
    """Misclassification per method with a structure chosen without noise."""
    return {
        name: evaluate(
            case,
            lambda epsilon, rows, name=name: VARIANTS[name](epsilon=epsilon, target=case.target, rows=rows),  # type: ignore[misc]
            name=f"{name}, noise-free structure (not private)",
            **how,
        )
        for name in names
    }
