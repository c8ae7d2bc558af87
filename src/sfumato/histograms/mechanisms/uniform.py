"""`uniform`: measure the total, spread it evenly. The best there is when the noise drowns every bin.

**Guarantee.** A record loses the smallest of the bins' rates, whatever its bin.

*Proof.* A record moves the total by one unit; the noise on it has rate ``min(rates)``. Spreading is post-processing.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Ints, addable
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.privacy import Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism


def uniform(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """The same estimate in every bin.

    >>> uniform(Exact(np.array([500, 700])), rates=np.full(2, 10**9), meter=Meter()).counts.shape
    (2,)
    """
    rate = np.array([rates.min()])
    total = meter.laplace(counts.map(lambda found: addable(found).sum(keepdims=True)), rate=rate, label="total")
    n = rates.size
    return HistogramEstimate(
        mechanism="uniform",
        counts=np.full(n, max(float(total[0]), 0.0) / n),
        noise=np.full(n, np.sqrt(laplace_variance(rate)[0]) / n),
        losses=np.full(n, rate[0]),
        measurements=(Measurement(np.zeros(n, dtype=np.int64), total, rate),),
    )


MECHANISM = Mechanism("uniform", ("histogram",), uniform, "one noisy total, spread evenly", rank={"shape": 12, "ranges": 12})
