"""What answers say about the size of the noise: is it as large as the rates that were paid for?

Let every rate be ρ times what was recorded: ρ = 1 if all is well, ``1 / (1 - d)`` if the scale of the noise is short by a
share d. The answers' likelihood is known for every ρ (`sfumato.testing.likelihood`), and so is the ratio of two of them,
``Λ(ρ₁, ρ₀)``.

*Why the bound holds.* Under ρ₀ the ratio is a martingale with mean one, whatever the mechanism asks next, and so is the mean
over a fixed list of alternatives above ρ₀. By Ville's inequality it ever exceeds 1/α with probability at most α. The lower
bound is the smallest ρ₀ that is not refuted so, hence wrong with probability α at most, and one may stop at any time.

*Power.* For ρ₁ the mean μ and the variance σ² of ``ln Λ(ρ₁, 1)`` under ρ₁ are known call by call. A deficit is *caught* if
``μ - 2.33 σ`` passes the threshold: then 99 of 100 audits see it (normal approximation of a sum of many terms). The smallest
such deficit is what a case states.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy import NANO
from sfumato.privacy.calls import Call
from sfumato.testing import vector_loss
from sfumato.testing.likelihood import cut_probability, cuts, quadrature

Floats = NDArray[np.float64]
STEP = 1.02
LOWEST, HIGHEST = -35, 160
ONE = -LOWEST  # where ρ = 1 lies
RHO: Floats = STEP ** np.arange(LOWEST, HIGHEST + 1, dtype=np.float64)
ALTERNATIVES = np.array([2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 40, 80])  # steps above the hypothesis
DEFICITS: Floats = 1 - 1 / RHO[ONE + ALTERNATIVES]  # 4% to 79%
SURE = 2.33  # standard deviations: 99 in 100


class Evidence:
    """Log-likelihoods of all answers so far for every ρ, and what to expect of them under each deficit.

    >>> from sfumato.privacy import Meter
    >>> from sfumato.testing import Tape
    >>> tape, evidence = Tape(1), Evidence()
    >>> _ = Meter(source=tape).laplace(np.zeros(5000, dtype=int), rate=NANO // 10)
    >>> evidence.add(tape.calls[0])
    >>> round(evidence.smallest_deficit(0.999), 3), bool(0.8 < evidence.bound(0.999) < 1)
    (0.112, True)
    """

    def __init__(self) -> None:
        self._likelihood = np.zeros(RHO.size)
        self._mean = np.zeros(ALTERNATIVES.size)
        self._variance = np.zeros(ALTERNATIVES.size)

    def add(self, call: Call) -> None:
        """Take in the answer to a call; calls without noise say nothing."""
        if not call.noisy:
            return
        if call.kind == "laplace":
            x = np.broadcast_to(np.asarray(call.public["rate"]) / NANO, call.exact.shape).reshape(-1)
            away = float((x * np.abs(call.answer.astype(np.float64) - call.exact).reshape(-1)).sum())
            rates, times = np.unique(x, return_counts=True)
            likelihood, mean, variance = _laplace(tuple(rates.tolist()), tuple(times.tolist()))
            self._take(likelihood - RHO * away, mean, variance)
        elif call.kind in ("objective", "output"):
            dimension = int(call.public["dimension"])
            size = self._norm(call)
            self._take(dimension * np.log(RHO) - RHO * size, *_gamma(dimension))
        else:
            index = int(call.answer) if call.kind == "choice" else int(tuple(call.answer.tolist()) != cuts(call)[0])
            likelihoods, mean, variance = self._laws(call)
            self._take(likelihoods[:, index], mean, variance)

    @staticmethod
    def _norm(call: Call) -> float:
        """β times the norm of the noise vector that led to the answer: minus the gradient there, or what was added."""
        vector = call.answer - call.exact if call.kind == "output" else call.exact.gradient(call.answer, 0 * call.answer)[0]
        return vector_loss(call, vector) / NANO

    @staticmethod
    def _laws(call: Call) -> tuple[Floats, Floats, Floats]:
        """The log-probability of each outcome, per ρ, and mean and variance of the log-ratios."""
        if call.kind == "choice":
            scores = np.asarray(call.exact, dtype=np.float64)
            return _choice(tuple((scores - scores.max()).tolist()), float(call.public["rate"]))
        line = (tuple(np.asarray(call.public[name]).tolist()) for name in ("starts", "stops", "rate"))
        return _cut(*line, tuple(call.exact.tolist()))

    def _take(self, likelihood: Floats, mean: Floats, variance: Floats) -> None:
        self._likelihood += likelihood
        self._mean += mean
        self._variance += variance

    def refutes(self, confidence: float) -> bool:
        """Whether the answers refute that the noise is as large as was paid for."""
        return self._logarithm(ONE) >= -math.log(1 - confidence)

    def bound(self, confidence: float) -> float:
        """A lower confidence bound on ρ."""
        kept = [self._logarithm(k) < -math.log(1 - confidence) for k in range(RHO.size - int(ALTERNATIVES.max()))]
        return float(RHO[kept.index(True)]) if True in kept else float(RHO[len(kept)])

    def _logarithm(self, null: int) -> float:
        """Of the mean likelihood ratio of the alternatives to one ρ."""
        ratios = self._likelihood[null + ALTERNATIVES] - self._likelihood[null]
        top = float(ratios.max())
        return top + math.log(float(np.exp(ratios - top).mean()))

    def smallest_deficit(self, confidence: float) -> float:
        """The smallest deficit that 99 of 100 audits with these questions catch; 1 if none."""
        needed = math.log(ALTERNATIVES.size) - math.log(1 - confidence)
        caught = self._mean - SURE * np.sqrt(np.maximum(self._variance, 0)) >= needed
        return float(DEFICITS[caught].min(initial=1.0))


@lru_cache(maxsize=512)
def _laplace(rates: tuple[float, ...], times: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """The constants of the likelihoods, ``Σ ln tanh(ρ x / 2)``, and mean and variance of the log-ratios."""
    x, n = np.array(rates), np.array(times)
    constant = np.log(np.tanh(np.outer(RHO, x) / 2)) @ n
    rho = RHO[ONE + ALTERNATIVES][:, None]
    wide = np.minimum(rho * x, 600.0)  # beyond it the noise is 0 and says nothing
    away = 1 / np.sinh(wide)
    spread = np.maximum(0.5 / np.sinh(wide / 2) ** 2 - away**2, 0)
    mean = constant[ONE + ALTERNATIVES] - constant[ONE] - ((rho - 1) * x * away) @ n
    return constant, mean, ((rho - 1) ** 2 * x**2 * spread) @ n


@lru_cache(maxsize=64)
def _gamma(dimension: int) -> tuple[Floats, Floats]:
    """Mean and variance of the log-ratios for noise of density ∝ exp(-β‖b‖): β‖b‖ is Gamma."""
    rho = RHO[ONE + ALTERNATIVES]
    return dimension * (np.log(rho) - 1 + 1 / rho), dimension * (1 - 1 / rho) ** 2


@lru_cache(maxsize=512)
def _choice(gaps: tuple[float, ...], rate: float) -> tuple[Floats, Floats, Floats]:
    """``p_i ∫ Π_{j≠i} (1 - p_j t) dt`` for every ρ and candidate at once (see `sfumato.testing.comparison`)."""
    nodes, weights = quadrature()
    shares = np.exp(np.maximum(np.outer(RHO, gaps) * (rate / NANO), -690.0))
    terms = np.log1p(-np.minimum(shares[:, None, :] * nodes[:, None], 1 - 1e-15))
    others = np.exp(terms.sum(axis=2, keepdims=True) - terms)
    return _outcomes(np.asarray(shares * (weights[:, None] * others).sum(axis=1)))


@lru_cache(maxsize=512)
def _cut(
    starts: tuple[int, ...], stops: tuple[int, ...], rates: tuple[int, ...], costs: tuple[int, ...]
) -> tuple[Floats, Floats, Floats]:
    call = Call("partition", public={"starts": starts, "stops": stops, "rate": rates})
    first = np.array([cut_probability(call, np.array(costs), rho) for rho in RHO.tolist()])
    return _outcomes(np.stack([first, 1 - first], axis=1))


def _outcomes(laws: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-probabilities of a few outcomes per ρ, and mean and variance of the log-ratio to ρ = 1 under each alternative."""
    here = laws[ONE + ALTERNATIVES]
    ratio = np.log(here) - np.log(laws[ONE])
    mean = (here * ratio).sum(axis=1)
    return np.log(laws), mean, (here * ratio**2).sum(axis=1) - mean**2
