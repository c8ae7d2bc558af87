"""One release of an attribute histogram, and the same for many people at once.

*Guarantee.* `Meter.laplace` adds noise of rate r_j to attribute j; an item whose row lies under one of the policy's rows
costs at most ``Σ_j a_ij r_j <= ε`` overall and ``a_ij r_j <= t_j`` for attribute j (Theorem 4 of the paper). The neighbour
is the same history with one item absent. Nothing else is computed from the history. The sums say which rows an item may
have, and sums to which an item may add more than the policy was priced for are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.policy import Policy
from sfumato.attributes.sums import ItemSums
from sfumato.errors import InputError, PrivacyError
from sfumato.extras import need
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.items import laplace_each, require_items
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import NANO, as_epsilon
from sfumato.results import Result

MECHANISM = "attribute histogram with multi-level budgets"
WHOLE_COUNTS = (
    "a small budget protects its own attribute; attributes that go with it tell about it too, and together they lose "
    "the overall ε = {epsilon}"
)
_BATCH = 1 << 15  # people per block of a batch


@dataclass(frozen=True, eq=False)
class AttributeRelease(Result):
    """Noisy totals per attribute and what they promise.

    Attributes
    ----------
    counts : int64 array
        Noisy sums in lattice units; `values` gives them in the attributes' own unit.
    policy : Policy
        The noise that was used.
    guarantee : Guarantee
        What is promised for the whole release and for each attribute.
    recipient : str
        Who is to have it.
    again : bool
        Whether this is an earlier release again, at no cost; also told by `repeated`.
    warnings : tuple of str
        What a reader must know before using the figures.
    shares : tuple of (parts, times)
        The noise in each value: `times` draws at the policy's rate divided by `parts`. One whole draw but for streams.
    """

    counts: NDArray[np.int64]
    policy: Policy
    guarantee: Guarantee
    recipient: str = ""
    again: bool = False
    warnings: tuple[str, ...] = ()
    shares: tuple[tuple[int, int], ...] = ((1, 1),)

    mechanism = MECHANISM

    @property
    def values(self) -> NDArray[np.float64]:
        """Noisy sums per attribute."""
        return np.asarray(self.counts * float(self.policy.unit), dtype=np.float64)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each value."""
        variance = sum((n * laplace_variance(self.policy.rates // p) for p, n in self.shares), np.zeros(self.counts.size))
        return np.asarray(float(self.policy.unit) * np.sqrt(variance))

    @property
    def expected_rmse(self) -> float:
        """Root mean squared error over the attributes."""
        return float(np.sqrt(np.mean(self.deviations**2)))

    @property
    def parameters(self) -> dict[str, Any]:
        """How it was made; public."""
        return {
            "recipient": self.recipient,
            "utility": self.policy.utility,
            "attributes": list(self.policy.attributes),
            "rates_nano": self.policy.rates.tolist(),
            "unit": str(self.policy.unit),
            "optimality_gap": None if math.isnan(self.policy.gap) else self.policy.gap,
            "repeated": self.repeated,
        }

    @property
    def repeated(self) -> bool:
        """Whether this is an earlier release again, at no cost."""
        return self.again or super().repeated

    def interval(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each attribute an interval that holds the exact sum with a probability of at least `confidence`.

        Returns
        -------
        float array of shape (attributes, 2)
            Lower and upper ends.
        """
        if not 0 < confidence < 1:
            raise InputError(f"confidence lies between 0 and 1, got {confidence}")
        if self.shares == ((1, 1),):
            # P(|X| > k) = 2 q^(k+1) / (1 + q), q = e^-x: the smallest k for which this is at most 1 - confidence.
            x = self.policy.rates / NANO
            reach = np.maximum(np.ceil(np.log(2 / ((1 - confidence) * (1 + np.exp(-x)))) / x) - 1, 0)
        else:
            tail = math.log(2 / (1 - confidence))
            reach = np.array([_chernoff(int(rate), self.shares, tail) for rate in self.policy.rates])
        reach = reach * float(self.policy.unit)
        return np.stack([self.values - reach, self.values + reach], axis=1)

    def rows(self) -> list[dict[str, Any]]:
        """One line per attribute; the overall ε stands beside every budget, for it is what a coalition of columns loses."""
        overall = str(self.guarantee.epsilon)
        return [
            {
                "attribute": name,
                "value": float(value),
                "deviation": float(deviation),
                "granted": str(as_epsilon(int(granted))),
                "given": str(as_epsilon(self.guarantee.attributes.get(name, 0))),
                "overall": overall,
            }
            for name, value, deviation, granted in zip(
                self.policy.attributes, self.values, self.deviations, self.policy.budgets, strict=True
            )
        ]

    def to_frame(self) -> Any:
        """A pandas frame, one row per attribute."""
        return need("pandas", "to_frame()").DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers."""
        return {
            **super().to_dict(),
            "kind": "attributes",
            "mechanism": self.mechanism,
            "parameters": self.parameters,
            "attributes": self.rows(),
            "counts": self.counts.tolist(),
            "shares": [list(share) for share in self.shares],
            "policy": self.policy.to_json(),
            "recipient": self.recipient,
            "expected_rmse": self.expected_rmse,
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The release that `to_dict` wrote down as `data`."""
        policy, promise = Policy.from_json(data["policy"]), Guarantee.from_dict(data["guarantee"])
        # In the order of the policy: whoever stores it may sort its keys, and its words are to stay the same.
        each = {name: promise.attributes[name] for name in policy.attributes if name in promise.attributes}
        return cls(
            np.array(data["counts"], dtype=np.int64),
            policy,
            replace(promise, attributes=each),
            recipient=data["recipient"],
            warnings=tuple(data["warnings"]),
            shares=tuple((parts, times) for parts, times in data["shares"]),
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the budgets asked and given per attribute, on `ax` or on a new figure."""
        from sfumato.attributes.plots import plot_budgets

        return plot_budgets(self.policy, ax=ax)

    def __repr__(self) -> str:
        to = f" to {self.recipient!r}" if self.recipient else ""
        return f"AttributeRelease({len(self.policy.attributes)} attributes{to}, overall ε {self.guarantee.epsilon})"


def _chernoff(rate: int, shares: tuple[tuple[int, int], ...], tail: float) -> float:
    """t with ``P(|S| > t) <= 2 exp(-tail)`` for a sum S of discrete Laplace draws.

    ``E exp(λX) <= 1 / (1 - λ²b²)`` with b = 1 / x for λ < x (discrete Laplace lies below the continuous one, because
    ``(cosh y - 1) / y²`` grows); so ``t = (tail - Σ ln(1 - λ²b²)) / λ`` does for every λ, and the best of a grid is taken.
    """
    drawn = [(NANO / (rate // parts), times) for parts, times in shares if times]
    if not drawn:
        return 0.0
    grid = np.linspace(0.01, 0.99, 99) / max(b for b, _ in drawn)
    bounds = (tail - sum(times * np.log1p(-((grid * b) ** 2)) for b, times in drawn)) / grid
    return float(np.ceil(bounds.min()))


def release_histogram(histogram: ItemSums, policy: Policy, meter: Meter, *, recipient: str = "") -> AttributeRelease:
    """Noise on one person's attribute sums.

    Parameters
    ----------
    histogram : ItemSums
        What `Catalogue.histogram` or `Policy.sums` made of a history. It is opened only after the price was accepted.
    policy : Policy
        The noise of each attribute.
    meter : Meter
        Pays and draws, per item; it must know the policy's attributes.
    recipient : str
        Who is to have it.

    Returns
    -------
    AttributeRelease

    Examples
    --------
    >>> policy = Policy(("x", "y"), np.array([10**9] * 2), np.array([[1, 1]]), 2 * 10**9, np.array([10**9] * 2))
    >>> meter = Meter(attributes=policy.attributes, neighbours="item")
    >>> release_histogram(policy.sums([["x", "y"], ["y"]]), policy, meter)
    AttributeRelease(2 attributes, overall ε 2)
    """
    _admit(histogram, policy, meter)
    if histogram.length is not None:
        raise InputError("these are the sums of many people: use release_batch, or release each person's own")
    counts = meter.laplace(
        histogram.exact,
        rate=policy.rates,
        touches=policy.touches,
        attributes=policy.attributes,
        label="attribute histogram",
    )
    promise = meter.guarantee()
    warnings = (WHOLE_COUNTS.format(epsilon=promise.epsilon),)
    return AttributeRelease(counts, policy, promise, recipient=recipient, warnings=warnings)


def release_batch(histograms: ItemSums, policy: Policy, *, source: Source = SECURE) -> tuple[NDArray[np.int64], Guarantee]:
    """Noise for many people at once, as if every device had drawn its own. For simulations.

    Parameters
    ----------
    histograms : ItemSums
        One row per person, as `Catalogue.histograms` makes them.
    policy : Policy
        The noise of each attribute.
    source : Source
        Where the random bits come from.

    Returns
    -------
    tuple of int64 array and Guarantee
        The noisy sums in the same shape, and what each person is promised.

    Examples
    --------
    >>> policy = Policy(("x", "y"), np.array([10**9] * 2), np.array([[1, 1]]), 2 * 10**9, np.array([10**9] * 2))
    >>> nobody = ItemSums.as_stated(np.zeros((1000, 2), dtype=np.int64), policy)
    >>> noisy, promise = release_batch(nobody, policy)
    >>> noisy.shape, promise.epsilon
    ((1000, 2), Decimal('2'))
    """
    meter = Meter.under(policy.terms, source=source)
    _admit(histograms, policy, meter)
    if histograms.length is None:
        raise InputError("a batch has one row of sums per person; one person's sums go to release_histogram")
    out = np.empty((histograms.length, len(policy.attributes)), dtype=np.int64)
    with meter.parallel("each person's device adds noise to that person's history alone") as branch:
        for start in range(0, histograms.length, _BATCH):
            with branch():
                out[start : start + _BATCH] = laplace_each(
                    meter,
                    histograms.exact[start : start + _BATCH],
                    rate=policy.rates,
                    touches=policy.touches,
                    attributes=policy.attributes,
                    label="attribute histograms",
                )
    return out, meter.guarantee()


def _admit(sums: ItemSums, policy: Policy, meter: Meter) -> None:
    """Refuse sums that the policy was not priced for, or a Meter that would promise more than the price of an item."""
    if not isinstance(sums, ItemSums):
        raise PrivacyError(
            "sums must say how much one item adds to them: take catalogue.histogram(history) or policy.sums(history); "
            "for sums of your own making, ItemSums.as_stated"
        )
    require_items(meter)
    policy.admit(sums.attributes, sums.unit, sums.rows)
    for note in sums.notes:
        meter.assume(note)
