"""Many histograms at once, one per group (per user, per region): each at the full ε where the groups are disjoint.

**Guarantee.** If every record belongs to one group that is fixed in advance and public, a record is in one histogram
only, so the release costs the largest of their losses, not the sum (the Meter's parallel block; the reason is written
into the guarantee). If records may be in several groups, the losses add up: say `disjoint=None` and the budget is
divided, that of every bin too. What a bin loses is told for the whole release: summed over the groups where a record may be
in several (in the same bin of each); against replacement the other record may be in any bin of any group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, Ints, lost_by_bin
from sfumato.histograms.release import run_mechanism
from sfumato.histograms.result import Histogram
from sfumato.privacy import Epsilon, Meter, as_epsilon, positive_nano
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import nano_down_array


def release_histograms(
    groups: Mapping[str, Counts],
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    meter: Meter,
    disjoint: str | None,
    mechanism: str = "auto",
    bin_budgets: ArrayLike | None = None,
    **options: Any,
) -> dict[str, Histogram]:
    """Release one histogram per group over the same bins.

    Parameters
    ----------
    groups : mapping
        Public group name -> private counts (or a function that returns them). All public groups must be listed, also
        those that happen to be empty.
    epsilon : ε
        What all of them together may cost a person; it is divided among the groups only if people may be in several.
    bins : Bins or int
        The public domain of every histogram, or just a number of bins.
    meter : Meter
        Pays and draws.
    disjoint : str or None
        Why a person is in one group only ("each person lives in one region"); None if they may be in several.
    mechanism : str
        A mechanism's name; "auto" takes the default for the shape.
    bin_budgets : numbers, optional
        What a person may lose by their rows in each bin, in all groups, in ε; `epsilon` if left out.
    options
        Parameters of the mechanism.

    Returns
    -------
    dict of str to Histogram
        By group, all with the guarantee of the whole.

    Examples
    --------
    >>> made = release_histograms({"north": [5, 0], "south": [1, 9]}, epsilon=1, bins=2, meter=Meter(),
    ...                           disjoint="each person lives in one region", mechanism="identity")
    >>> made["north"].guarantee.epsilon
    Decimal('1')
    """
    if not groups:
        raise InputError("name at least one group")
    domain = Bins.numbered(bins) if isinstance(bins, int) else bins
    request: dict[str, Any] = {"bins": domain, "meter": meter, "mechanism": mechanism, **options}
    estimates = {}
    if disjoint is None:
        each = as_epsilon(positive_nano(epsilon) // len(groups))
        part = _part(bin_budgets, len(groups))
        for name, counts in groups.items():
            estimates[name] = run_mechanism(counts, epsilon=each, bin_budgets=part, **request)
    else:
        with meter.parallel(disjoint) as branch:
            for name, counts in groups.items():
                with branch():
                    estimates[name] = run_mechanism(counts, epsilon=epsilon, bin_budgets=bin_budgets, **request)
    guarantee = meter.guarantee()
    each_row = {name: estimate.losses for name, estimate in estimates.items()}
    lost = _lost(each_row, meter.terms, disjoint=disjoint is not None)
    return {name: Histogram.of(e, bins=domain, guarantee=guarantee, bin_losses=lost[name]) for name, e in estimates.items()}


def _part(bin_budgets: ArrayLike | None, parts: int) -> NDArray[Any] | None:
    if bin_budgets is None:
        return None
    nano = nano_down_array(np.asarray(bin_budgets).reshape(-1), "bin budgets") // parts
    return np.array([as_epsilon(value) for value in nano.tolist()], dtype=object)  # decimals: rounded down once only


def _lost(losses: dict[str, Ints], terms: Terms, *, disjoint: bool) -> dict[str, Ints]:
    """What a person loses in the whole release by their rows in each bin of each group."""
    if not disjoint:
        everywhere = np.sum(list(losses.values()), axis=0)
        return {name: lost_by_bin(everywhere, terms) for name in losses}
    most = {name: int(mine.max()) for name, mine in losses.items()}
    return {
        name: lost_by_bin(mine, terms, elsewhere=max((v for other, v in most.items() if other != name), default=0))
        for name, mine in losses.items()
    }
