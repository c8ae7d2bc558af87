"""Pictures: an estimate, the options of a preview, their error against the gap, the roster, error against the threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.offers import GAPS
from sfumato.palette import BLUE, CYCLE, ORANGE, VERMILION, axes
from sfumato.people.estimate import Estimate
from sfumato.people.headline import ANY_DATA, IF_INDEPENDENT
from sfumato.people.linear import LinearPlan
from sfumato.privacy import NANO, PersonBudgets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.offers import Offer


def plot_estimate(estimate: Estimate, ax: Axes | None = None, *, confidence: float = 0.95) -> Axes:
    """The headline: value and interval for any data, then, lower and lighter, what holds under independence only."""
    ax = axes(ax, (7.0, 2.2))
    first, words = estimate.headline(confidence), estimate.words
    low, high = first.interval
    whatever = "" if first.interval_if_independent is None else f" {ANY_DATA}"
    # The interval is cut to the public bounds and the value is not, so the value may lie outside.
    reach = [[max(first.value - low, 0.0)], [max(high - first.value, 0.0)]]
    ax.errorbar(
        [first.value], [0], xerr=reach, fmt="o", color=BLUE, ms=10, capsize=8, lw=3,
        label=f"{words(first.value)}, {confidence:.0%} interval {words(low)} to {words(high)}{whatever}",
    )  # fmt: skip
    view = [min(low, first.value), max(high, first.value)]
    if first.interval_if_independent is not None and first.alarm is None:
        start, end = first.interval_if_independent
        ax.errorbar(
            [(start + end) / 2], [-0.5], xerr=[[(end - start) / 2]] * 2, fmt="none", ecolor=ORANGE, capsize=6, lw=2,
            label=f"{words(start)} to {words(end)} {IF_INDEPENDENT}",
        )  # fmt: skip
        view = [min(view[0], start), max(view[1], end)]
    wide = max(view[1] - view[0], 1e-12)
    ax.set_xlim(view[0] - 0.05 * wide, view[1] + 0.05 * wide)
    ax.set_ylim(-1, 1.6)
    ax.set_yticks([])
    unit = estimate.wording.unit
    ax.set_xlabel(f"{estimate.subject} ({unit})" if unit else estimate.subject)
    if estimate.wording.start:  # days or seconds say nothing to a reader
        ax.xaxis.set_major_formatter(lambda number, _place: estimate.words(number))
    said = "consent and values seem to go together: " if first.alarm else ""
    ax.set_title(f"{said}{estimate.mechanism}, ε up to {estimate.guarantee.epsilon}", fontsize=10)
    ax.legend(fontsize=9, loc="upper center", frameon=False)
    return ax


def plot_options(options: Sequence[Offer], ax: Axes | None = None) -> Axes:
    """Preview bars: expected error of each mechanism, and the worst possible bias as a mark."""
    ax = axes(ax)
    place = np.arange(len(options))[::-1]
    errors = [o.expected_rmse or 0.0 for o in options]
    ax.barh(place, errors, color=BLUE, label="expected error (RMSE)")
    biased = [(y, o.bias_bound) for y, o in zip(place, options, strict=True) if o.bias_bound > 0]
    if biased:
        ax.plot(
            [b for _, b in biased], [y for y, _ in biased], "|", color=VERMILION, ms=14, mew=2, label="worst possible bias"
        )
    ax.set_xscale("log")
    ax.set_xlim(left=max(min(errors), 1e-12) / 5)
    ax.set_yticks(place, [o.mechanism for o in options])
    ax.set_xlabel("error in the answer's unit")
    ax.legend(fontsize=8)
    return ax


def plot_gaps(errors: Mapping[str, Sequence[float]], ax: Axes | None = None, *, chosen: str | None = None) -> Axes:
    """Error of each mechanism against the gap between the stricter people and the rest.

    Parameters
    ----------
    errors : mapping
        By mechanism: under independence, at each gap of `GAPS`, and in the worst case.
    ax : Axes, optional
        A new figure's if left out.
    chosen : str, optional
        The mechanism to draw with a thick line.

    Returns
    -------
    Axes
    """
    ax = axes(ax)
    places = np.arange(len(GAPS) + 2)
    styles, marks = ("-", "--", "-.", ":"), "osD^vPX*<>"
    for i, (name, values) in enumerate(errors.items()):
        thick = name == chosen
        ax.plot(
            places, values, color=CYCLE[i % len(CYCLE)], ls="-" if thick else styles[i % len(styles)],
            marker=marks[i % len(marks)], ms=6 if thick else 4, lw=3 if thick else 1.4, label=name, zorder=3 if thick else 2,
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_xticks(
        places, ["independent", *(f"{100 * gap:.0f} point{'s' if gap > 0.01 else ''}" for gap in GAPS), "worst case"]
    )
    ax.set_xlabel("gap between the stricter people and the rest")
    ax.set_ylabel("error (RMSE) in the answer's unit")
    ax.legend(fontsize=8, ncols=2, frameon=False)
    return ax


def plot_budgets(budgets: PersonBudgets, ax: Axes | None = None, *, plan: LinearPlan | None = None) -> Axes:
    """How many people grant which ε, with what a plan uses of it: a cap, a threshold or parts."""
    ax = axes(ax)
    e = budgets.epsilons
    if budgets.groups <= 12:
        width = 0.12
        ax.bar(e, budgets.counts, width=[x * width * 2 for x in e], color=BLUE)
        ax.set_xscale("log")
        ax.set_xticks(e, [budgets.name(g) for g in range(budgets.groups)])
        ax.minorticks_off()
    else:
        ax.hist(e, bins=60, weights=budgets.counts.astype(float), color=BLUE, alpha=0.75)
    ax.set_xlabel("granted ε")
    ax.set_ylabel("people")
    if plan is not None:
        used = np.sum([r.weights for r in plan.rounds], axis=0) * plan.question.cost / NANO
        twin = ax.twinx()
        twin.step(e, used, where="post", color=VERMILION, lw=2)
        twin.set_ylabel(f"ε used by {plan.mechanism}", color=VERMILION)
        twin.set_ylim(bottom=0)
    return ax


def plot_threshold_sweep(
    thresholds: Sequence[float],
    sampling: Sequence[float],
    others: dict[str, float],
    ax: Axes | None = None,
    **labels: Any,
) -> Axes:
    """Error of Sampling against its threshold, with the mechanisms that have none as horizontal lines."""
    ax = axes(ax)
    ax.plot(thresholds, sampling, "o-", color=CYCLE[0], ms=4, label="sampling")
    styles = ("-", "--", "-.", ":")
    for i, (name, value) in enumerate(others.items()):
        ax.axhline(value, color=CYCLE[(i + 1) % len(CYCLE)], ls=styles[i % len(styles)], lw=1.6, label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(labels.get("xlabel", "threshold ε of Sampling"))
    ax.set_ylabel(labels.get("ylabel", "relative frequency error (RMSE / n)"))
    ax.set_title(labels.get("title", ""), fontsize=10)
    ax.legend(fontsize=7, ncols=2)
    return ax
