"""Which attributes give a protected one away.

A smaller budget on a sensitive attribute protects *that column*. Columns that go with it are released with budgets of their
own and tell about it too; what bounds the damage of all of them together is the overall ε. This module finds such columns,
from the public catalogue (do the items that have j also have k?) or from noisy histograms of many people (the variance of
the noise is known and subtracted). Both inputs are public, so the answer costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.errors import InputError
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import as_epsilon

_CHUNK = 1 << 15


@dataclass(frozen=True)
class Leak:
    """How well other attributes predict a protected one.

    Attributes
    ----------
    attribute : str
        The protected attribute.
    explained : float
        Share of the protected attribute's variance that a linear rule on all others explains, 0 to 1.
    predictors : tuple of (attribute, correlation)
        The strongest single ones, strongest first.
    budget : Decimal or None
        What the protected attribute itself loses, if a policy was given.
    overall : Decimal or None
        What all attributes lose together, if a policy was given.
    """

    attribute: str
    explained: float
    predictors: tuple[tuple[str, float], ...]
    budget: Decimal | None = None
    overall: Decimal | None = None

    @property
    def serious(self) -> bool:
        """Whether the others explain a quarter of it, or one of them correlates by at least a half."""
        return self.explained >= 0.25 or any(abs(r) >= 0.5 for _, r in self.predictors)

    def sentence(self) -> str:
        """For the person who set the budget."""
        told = ", ".join(f"{name} ({r:+.2f})" for name, r in self.predictors)
        text = f"{self.attribute!r} can be told from other attributes ({self.explained:.0%} of it): {told}."
        if self.budget is not None and self.overall is not None:
            text += f" Its own ε is {self.budget}; what all attributes lose together is ε {self.overall}."
        return text


def catalogue_leaks(
    catalogue: Catalogue, protected: Sequence[str], *, policy: Policy | None = None, popularity: ArrayLike | None = None
) -> list[Leak]:
    """Which attributes of a public catalogue give protected ones away.

    Parameters
    ----------
    catalogue : Catalogue
        The public items.
    protected : sequence of str
        The attributes to protect.
    policy : Policy, optional
        Adds to each leak what the attribute, and what all of them together, would lose.
    popularity : numbers, optional
        How often each item is chosen, if that is public; all alike if left out.

    Returns
    -------
    list of Leak
        One per protected attribute, in order.

    Examples
    --------
    >>> shop = Catalogue.of({"bible": ["book", "faith"], "cross": ["faith"], "map": ["book"], "pen": [], "ink": []})
    >>> [round(r, 2) for _, r in catalogue_leaks(shop, ["faith"])[0].predictors]
    [0.17]
    """
    weights = np.ones(catalogue.size) if popularity is None else np.asarray(popularity, dtype=np.float64)
    if weights.shape != (catalogue.size,) or not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError(f"popularity is one number, not negative, for each of {catalogue.size} items")
    m = len(catalogue.attributes)
    mean, second = np.zeros(m), np.zeros((m, m))
    for start in range(0, catalogue.size, _CHUNK):
        stop = min(start + _CHUNK, catalogue.size)
        dense = np.zeros((stop - start, m))
        entries = slice(int(catalogue.indptr[start]), int(catalogue.indptr[stop]))
        row = np.repeat(np.arange(stop - start), np.diff(catalogue.indptr[start : stop + 1]))
        dense[row, catalogue.indices[entries]] = catalogue.values[entries]
        weighted = dense * weights[start:stop, None]
        mean += weighted.sum(axis=0)
        second += weighted.T @ dense
    mean, second = mean / weights.sum(), second / weights.sum()
    return _leaks(second - np.outer(mean, mean), catalogue.attributes, protected, policy)


def noisy_leaks(noisy: NDArray[Any], policy: Policy, protected: Sequence[str]) -> list[Leak]:
    """Which attributes give protected ones away, from released histograms: the noise's own variance is taken out.

    Parameters
    ----------
    noisy : array of shape (people, attributes)
        Released sums in lattice units, at least two rows.
    policy : Policy
        The noise that is in them.
    protected : sequence of str
        The attributes to protect.

    Returns
    -------
    list of Leak
        One per protected attribute, in order.

    Examples
    --------
    >>> p = Policy(("x", "y"), np.array([10**9] * 2), np.array([[1, 1]]), 2 * 10**9, np.array([10**9] * 2))
    >>> both = np.arange(200)[:, None] * np.array([[1, 2]])
    >>> noisy_leaks(both, p, ["x"])[0].serious
    True
    """
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] != len(policy.attributes):
        raise InputError(f"give at least two noisy histograms of {len(policy.attributes)} attributes")
    centred = values - values.mean(axis=0)
    covariance = centred.T @ centred / (values.shape[0] - 1) - np.diag(laplace_variance(policy.rates))
    return _leaks(covariance, policy.attributes, protected, policy)


def _leaks(
    covariance: NDArray[np.float64], names: Sequence[str], protected: Sequence[str], policy: Policy | None
) -> list[Leak]:
    unknown = [name for name in protected if name not in names]
    if unknown:
        raise InputError(f"protected attribute {unknown[0]!r} is not one of {', '.join(names)}")
    variance = np.diagonal(covariance)
    usable = variance > 1e-12 * max(float(variance.max()), 1e-300)
    deviation = np.sqrt(np.where(usable, variance, 1.0))
    correlation = np.clip(np.where(np.outer(usable, usable), covariance / np.outer(deviation, deviation), 0.0), -1.0, 1.0)
    leaks = []
    for name in protected:
        j = list(names).index(name)
        others = np.array([k for k in range(len(names)) if k != j and usable[k]], dtype=np.intp)
        r = correlation[others, j]
        explained = 0.0
        if others.size and usable[j]:
            # A ridge keeps the noisy matrix invertible and the share conservative.
            matrix = correlation[np.ix_(others, others)] + 1e-6 * np.eye(others.size)
            explained = float(np.clip(r @ np.linalg.lstsq(matrix, r, rcond=1e-6)[0], 0.0, 1.0))
        strongest = others[np.argsort(-np.abs(r), kind="stable")[:3]]
        found = tuple((names[k], float(correlation[k, j])) for k in strongest if abs(correlation[k, j]) > 1e-9)
        own = overall = None
        if policy is not None:
            own, overall = as_epsilon(policy.charge.attributes[name]), as_epsilon(policy.charge.total)
        leaks.append(Leak(name, explained, found, own, overall))
    return leaks
