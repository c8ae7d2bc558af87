"""Pictures of a policy: budgets asked and given, and utility against ε between its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.attributes.policy import Policy
from sfumato.extras import need
from sfumato.privacy.units import NANO

# Okabe and Ito's colours stay apart for every kind of colour vision.
ASKED, GIVEN, LIMIT = "#BBBBBB", "#0072B2", "#D55E00"
LINES = {"mae": "#0072B2", "mse": "#D55E00", "mael": "#009E73", "composition": "#555555"}
MARKS = {"mae": "o", "mse": "s", "mael": "^", "composition": "x"}


def _axes(ax: Any, width: float = 7.0) -> Any:
    if ax is not None:
        return ax
    return need("matplotlib.pyplot", "a plot").subplots(figsize=(width, 4), layout="constrained")[1]


def plot_budgets(policy: Policy, *, ax: Any = None) -> Any:
    """Per attribute: the ε asked for and the ε given, and the overall ε that all of them lose together."""
    axes = _axes(ax, width=max(6.0, 0.4 * len(policy.attributes) + 2))
    place = np.arange(len(policy.attributes))
    axes.bar(place, policy.budgets / NANO, color=ASKED, width=0.8, label="granted $t_j$")
    axes.bar(place, policy.given / NANO, color=GIVEN, width=0.5, label="given")
    axes.axhline(policy.charge.total / NANO, color=LIMIT, linestyle="--", label="overall ε of the release")
    axes.set_xticks(place, policy.attributes, rotation=60, ha="right")
    axes.set_ylabel("ε")
    axes.set_title(f"Budgets granted and given (for {policy.utility})")
    axes.legend(frameon=False)
    return axes


def plot_values(attributes: Sequence[str], values: Any, ends: Any, *, ax: Any = None) -> Any:
    """Released totals per attribute, each with the ends of its interval."""
    axes = _axes(ax, width=max(6.0, 0.4 * len(attributes) + 2))
    place = np.arange(len(attributes))
    reach = np.abs(np.asarray(ends, dtype=np.float64).T - np.asarray(values, dtype=np.float64))
    axes.bar(place, values, color=GIVEN, width=0.7)
    axes.errorbar(place, values, yerr=reach, fmt="none", ecolor="#333333", capsize=3, label="95% interval")
    axes.axhline(0, color="#333333", linewidth=0.8)
    axes.set_xticks(place, attributes, rotation=60, ha="right")
    axes.set_ylabel("total")
    axes.legend(frameon=False)
    return axes


def plot_utility(
    epsilons: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    *,
    measure: str,
    bounds: Sequence[tuple[float, float]] | None = None,
    threshold: float | None = None,
    ax: Any = None,
) -> Any:
    """A loss against the overall ε for several policies, with Theorem 3's bound below and composition above.

    Parameters
    ----------
    curves : mapping of policy name to losses
    bounds : sequence of (lower, upper), optional
        From `bounds.utility_bounds`, shaded.
    threshold : float, optional
        Theorem 2's ε, beyond which no attribute is held back.
    """
    axes = _axes(ax)
    if bounds is not None:
        low, high = np.array(bounds, dtype=np.float64).T
        axes.fill_between(epsilons, low, high, color=ASKED, alpha=0.35, label="between the bounds")
    for size, (name, losses) in enumerate(reversed(list(curves.items()))):
        # Policies often coincide: large open marks under small ones keep all of them in sight.
        look = {"color": LINES.get(name, "#CC79A7"), "marker": MARKS.get(name, "d"), "markersize": 5 + 2 * size}
        axes.plot(epsilons, losses, label=name, markerfacecolor="none", linewidth=1.2, zorder=10 - size, **look)
    if threshold is not None and threshold <= max(epsilons) * 1.2:
        axes.axvline(threshold, color=LIMIT, linestyle=":", label="Theorem 2: nothing held back")
    if measure in ("mae", "mse"):
        axes.set_yscale("log")
    axes.set_xlabel("overall ε")
    axes.set_ylabel(measure.upper())
    axes.legend(frameon=False)
    return axes
