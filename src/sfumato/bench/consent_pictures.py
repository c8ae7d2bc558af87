"""Pictures about consent: what a gap between the tiers does to a count, and what a tier means for one person."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.demo import PATIENTS, TIERS
from sfumato.palette import BLUE, GREEN, GREY, VERMILION
from sfumato.privacy import PersonBudgets
from sfumato.privacy.odds import in_hundred, sure_after

_MOST_GAP = 0.2
_DRAWN = (("affine", VERMILION, "--"), ("minimum", GREEN, ":"), ("adaptive", BLUE, "-"))
_NAMES = {
    "affine": "affine: assumes that consent and values are unrelated",
    "minimum": "minimum: unbiased, everybody at the smallest budget",
    "adaptive": "adaptive: the default",
}


def _demo_budgets() -> PersonBudgets:
    """Half of every budget of the demo's tiers."""
    return PersonBudgets.from_tiers({n: (e, round(PATIENTS * part)) for n, (e, part) in TIERS.items()}).share(0.5)


def readme_picture() -> Any:
    """The clinic of `make demo`: expected error of one count by mechanism, and at a gap of 5 points. Public facts only."""
    import matplotlib.pyplot as plt

    from sfumato.offers import GAPS
    from sfumato.people import preview_count

    options = [o for o in preview_count(_demo_budgets()) if o.errors is not None]
    figure, ax = plt.subplots(figsize=(8, 3.9), layout="constrained")
    gap = GAPS.index(0.05)
    for place, offer in zip(range(len(options))[::-1], options, strict=True):
        assert offer.errors is not None
        alike, apart = offer.errors.independent, offer.errors.at[gap]
        first = place == len(options) - 1
        label = "if what people grant has nothing to do with what is counted" if first else None
        ax.barh(place, alike, color=BLUE if first else GREY, label=label)
        label = "if the strict tier differs by 5 percentage points from the others" if first else None
        ax.plot([apart], [place], "D", color=VERMILION, ms=8, label=label)
        ax.text(max(alike, apart) * 1.12, place, f"{alike:,.0f} / {apart:,.0f}", va="center", fontsize=9)
    ax.set_xscale("log")
    ax.set_xlim(80, 6000)
    ax.set_xticks([100, 200, 500, 1000, 2000], ["100", "200", "500", "1,000", "2,000"])
    ax.minorticks_off()
    ax.set_yticks(range(len(options))[::-1], [o.mechanism for o in options])
    ax.set_xlabel(f"expected error of a count over {PATIENTS:,} patients (root mean square, people)")
    ax.legend(fontsize=9, frameon=False, loc="lower center", bbox_to_anchor=(0.45, 1.0))
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def error_by_gap() -> Any:
    """Expected error of one count over the demo clinic against the gap between the strict tier and the rest."""
    import matplotlib.pyplot as plt

    from sfumato.people import Question, plan_offer

    question = Question(_demo_budgets(), selectivity=0.4)
    gaps = np.linspace(0, _MOST_GAP, 81)
    figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
    for mechanism, colour, style in _DRAWN:
        plan = plan_offer(question, mechanism).plan
        errors = [plan.error_at(float(gap)) for gap in gaps]
        ax.plot(100 * gaps, errors, color=colour, ls=style, lw=2.2, label=_NAMES[mechanism])
    ax.set_yscale("log")
    ax.set_yticks([100, 200, 500, 1000, 2000, 5000], ["100", "200", "500", "1,000", "2,000", "5,000"])
    ax.minorticks_off()
    ax.set_xlim(0, 100 * _MOST_GAP)
    ax.set_xlabel("gap between the strict tier and the others, in percentage points")
    ax.set_ylabel("expected error, people")
    ax.set_title(f"One count over the {PATIENTS:,} patients of the demo, half of every budget", fontsize=10)
    ax.legend(fontsize=9, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def how_sure() -> Any:
    """For somebody at a hospital desk: a guess about you before and after, by tier."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
    names = list(TIERS)
    for place, name in enumerate(reversed(names)):
        after = 100 * sure_after(0.5, TIERS[name][0])
        ax.plot([50, after], [place, place], color=BLUE, lw=6, solid_capstyle="butt")
        ax.plot([50], [place], "o", color=GREY, ms=11, label="before" if place == 0 else None)
        ax.plot([after], [place], "D", color=BLUE, ms=10, label="after, at the very most" if place == 0 else None)
        ax.text(after + 1.6, place, f"{in_hundred(0.5, TIERS[name][0])} in 100", va="center", fontsize=11)
    ax.set_yticks(range(len(names)), list(reversed(names)), fontsize=11)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(40, 100)
    ax.set_xticks([50, 60, 70, 80, 90, 100], ["50\nno idea", "60", "70", "80", "90", "100\ncertain"])
    ax.set_title("How sure could somebody become about one thing about you?", fontsize=11)
    ax.legend(fontsize=9, frameon=False, loc="upper right")
    ax.spines[["top", "right"]].set_visible(False)
    return figure
