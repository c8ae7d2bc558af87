"""`identity`: every bin gets its own discrete Laplace noise (the two-sided geometric mechanism; Dwork et al. 2006, Ghosh
et al. 2009). The yardstick, and the measurement on which `geb`, `covariate` and `noisefirst` build.

**Guarantee.** A record in bin i loses ``rates[i]``; the release loses the largest of them.

*Proof.* A record moves one coordinate by one unit. The probability of a noisy vector y is the product over bins of
``∝ exp(-|y_j - x_j| rate_j)``; moving x_i by one changes one factor by at most ``exp(rate_i)``.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.privacy import Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism


def identity(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Noise on every bin; bins with a smaller budget get more of it.

    >>> identity(Exact(np.array([5, 0, 12])), rates=np.full(3, 10**9), meter=Meter()).expected_rmse.__round__(3)
    1.357
    """
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    return HistogramEstimate(
        mechanism="identity",
        counts=noisy.astype(np.float64),
        noise=np.sqrt(laplace_variance(rates)),
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
        expected_rmse=identity_rmse(rates),
    )


def identity_rmse(rates: Ints) -> float:
    """Root mean squared error per bin: known before anything is read."""
    different = rates[:1] if int(rates.min()) == int(rates.max()) else rates  # millions of equal bins are one
    return float(np.sqrt(laplace_variance(different).mean()))


def plain_noise(rates: Ints, total: int | None) -> tuple[float, str]:
    """The error of a bin, which public facts decide."""
    return identity_rmse(rates), ""


def at_most_plain_noise(rates: Ints, total: int | None) -> tuple[float, str]:
    """The error of what starts from noise on every bin and improves it."""
    bound = identity_rmse(rates)
    capped = bound if total is None else min(bound, float(total))
    return capped, " (error at most about that of plain noise; the data decides how much better)"


MECHANISM = Mechanism(
    "identity",
    ("histogram",),
    identity,
    "independent noise on every bin; the only error is the noise",
    expected=plain_noise,
    rank={"shape": 7, "ranges": 6},
    paper="Dwork, McSherry, Nissim & Smith 2006",
)
