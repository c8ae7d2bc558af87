"""What every personalized release owes its reader: how wrong it is if budgets and values go together.

Everything gained over Minimum rests on budgets being independent of the values. If they are not, the expected answer is
off by ``corr(x, a) σ_x CV(a)`` (as a share of the people), a the weight with which a person enters; whatever the data, by
at most ``span/2 Σ |a_u - 1/n|``: a public number, always shown.

Where a release has several parts, each part's noisy mean is already public, so whether the parts agree can be tested for
free (no budget), and the plain sum of the part totals is unbiased whatever the budgets: both are shown next to the estimate.
The test compares each part with the others under the exact law of the difference (Laplace noises plus sampling) and takes
the smallest p-value times the number of parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.headline import ALARM, P_VALUE
from sfumato.people.question import Question
from sfumato.people.words import amount, subject
from sfumato.privacy import NANO

if TYPE_CHECKING:
    from sfumato.people.linear import LinearPlan, Round

MOST_PARTS = 25


@dataclass(frozen=True)
class Heterogeneity:
    """Whether the parts agree, and the answer that does not need them to.

    Attributes
    ----------
    p_value : float
        Small: the parts' means differ more than noise and chance explain, so the estimate is probably biased.
    unbiased : float
        Sum of the part totals: unbiased whatever the budgets.
    unbiased_rmse : float
        Root mean squared error of `unbiased`.
    unbiased_scales : tuple of float
        Scales of the Laplace noises in `unbiased`.
    part_means : tuple of float
        Noisy mean per part, from the smallest budgets to the largest.
    part_people : tuple of int
        People per part.
    """

    p_value: float
    unbiased: float
    unbiased_rmse: float
    part_means: tuple[float, ...]
    part_people: tuple[int, ...]
    unbiased_scales: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as an estimate's details show them."""
        return {
            P_VALUE: self.p_value,
            "unbiased_value": self.unbiased,
            "unbiased_rmse": self.unbiased_rmse,
            "part_means": list(self.part_means),
            "part_people": list(self.part_people),
        }


def heterogeneity(plan: LinearPlan, part_means: NDArray[np.float64]) -> Heterogeneity | None:
    """The free test for a plan of one round with 2 to 25 parts; None for any other plan."""
    if len(plan.rounds) != 1 or not 2 <= plan.rounds[0].size <= MOST_PARTS:
        return None
    q, only = plan.question, plan.rounds[0]
    used = only.parts >= 0
    counts = np.bincount(only.parts[used], weights=q.budgets.counts[used], minlength=only.size)
    if int(counts.sum()) != q.people or (counts == 0).any():
        return None
    mass = np.bincount(only.parts[used], weights=(only.weights * q.budgets.counts)[used], minlength=only.size)
    scale = NANO * q.divisor / mass  # of the noise in each part's mean
    overall = float(np.dot(counts, part_means) / counts.sum())
    variance = _variance_at(q, overall)
    heads = abs(overall) * _head_noise(q, only) / mass  # of the noise that head counts bring into each part's mean
    p_value = 1.0
    for j in range(only.size):
        others = np.arange(only.size) != j
        precision = 1 / (variance / counts[others] + 2 * scale[others] ** 2 + 2 * heads[others] ** 2)
        share = precision / precision.sum()
        rest = float(np.dot(share, part_means[others]))
        sampling = variance / counts[j] + float(np.dot(share**2, variance / counts[others]))
        counted = () if q.budgets.noise is None else (float(heads[j]), *(share * heads[others]).tolist())
        noises = (float(scale[j]), *(share * scale[others]).tolist())
        law = LaplacePlusNormal(noises, float(np.sqrt(sampling)), counted)
        p_value = min(p_value, only.size * (1 - law.coverage(abs(float(part_means[j]) - rest))))
    return Heterogeneity(
        p_value=float(min(1.0, max(0.0, p_value))),
        unbiased=float(np.dot(counts, part_means)) * q.unit,
        unbiased_rmse=float(np.sqrt(2 * np.square(counts * scale).sum())) * q.unit,
        part_means=tuple((part_means * q.unit).tolist()),
        part_people=tuple(counts.astype(int).tolist()),
        unbiased_scales=tuple((counts * scale * q.unit).tolist()),
    )


def _head_noise(question: Question, only: Round) -> NDArray[np.float64]:
    """Scale of what noisy head counts do to the weight of each part: as one noise of the same variance."""
    if question.budgets.noise is None:
        return np.zeros(only.size)
    used = only.parts >= 0
    squares = np.square(only.weights * question.budgets.noise)[used]
    return np.sqrt(np.bincount(only.parts[used], weights=squares, minlength=only.size))


def bias_warnings(
    bound: float,
    rmse: float,
    question: Question,
    *,
    kind: str | None = None,
    worst_case: bool = False,
    found: Heterogeneity | None = None,
) -> tuple[str, ...]:
    """Sentences for the reader, in the unit of the answer; empty if it is unbiased whatever the data.

    Parameters
    ----------
    bound, rmse : float
        The largest possible bias and the expected error, in the unit of the answer.
    question : Question
    kind : str, optional
        What was asked, where the question is only a part of it (the sum behind a mean).
    worst_case : bool
        Whether the interval includes the bias.
    found : Heterogeneity, optional
        What the parts said.
    """
    kind = kind or question.kind
    answer = f"the {subject(kind, question.column)}"

    def words(value: float) -> str:
        if kind != "count":
            return amount(value, kind)
        return f"{math.ceil(value):,} {'people' if question.rows_per_person == 1 else 'rows'}"

    out = []
    if bound > 0 and worst_case:
        out.append(
            f"people enter with weights that follow their budgets: the bias of {answer} is at most {words(bound)} for "
            "any data, and the interval includes it"
        )
    elif bound > 0:
        out.append(
            "people with larger budgets weigh more: the error holds if budgets are independent of the values; if they are "
            f"not, {answer} can be off by up to {words(bound)} (expected error otherwise {words(rmse)})"
        )
    if found is not None and found.p_value < ALARM:
        out.append(
            f"budgets and values seem to go together (p = {found.p_value:.2g}): the parts disagree more than noise "
            f"explains; without that assumption {answer} is {words(found.unbiased)} ± {words(found.unbiased_rmse)}"
        )
    return tuple(out)


def bias_of_correlation(
    correlation: float, *, sd: float, influence: NDArray[np.float64], counts: NDArray[np.int64]
) -> float:
    """Bias of the mean when values correlate with the weights: ``corr σ CV(a)``.

    Parameters
    ----------
    correlation : float
        Between people's values and their weights.
    sd : float
        Standard deviation of the values.
    influence : float array
        The weight with which each group's people enter the mean.
    counts : int64 array
        People per group.

    Returns
    -------
    float

    Examples
    --------
    >>> a = np.array([0.5, 1.5]) / 100
    >>> round(bias_of_correlation(0.1, sd=0.5, influence=a, counts=np.array([50, 50])), 4)
    0.025
    """
    n = counts.sum()
    mean = np.dot(counts, influence) / n
    cv = np.sqrt(max(0.0, np.dot(counts, influence**2) / n - mean**2)) / mean
    return float(correlation * sd * cv)


def _variance_at(question: Question, mean: float) -> float:
    low, high = question.low * question.rows_per_person, question.high * question.rows_per_person
    inside = min(max(mean, float(low)), float(high))
    return max((high - inside) * (inside - low), question.span**2 / (question.people + 1))
