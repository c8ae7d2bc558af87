"""Many histograms at once, one per group (per user, per region): each at the full ε where the groups are disjoint.

**Guarantee.** If every record belongs to one group that is fixed in advance and public, a record is in one histogram
only, so the release costs the largest of their losses, not the sum (the Meter's parallel block; the reason is written
into the guarantee). If records may be in several groups, the losses add up: say `disjoint=None` and the budget is
divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts
from sfumato.histograms.release import run_mechanism
from sfumato.histograms.result import Histogram
from sfumato.privacy import Epsilon, Meter, as_epsilon, positive_nano


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
        What a record in each bin may lose, in ε; `epsilon` if left out.
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
    request: dict[str, Any] = {"bins": domain, "meter": meter, "mechanism": mechanism, "bin_budgets": bin_budgets}
    request.update(options)
    estimates = {}
    if disjoint is None:
        each = as_epsilon(positive_nano(epsilon) // len(groups))
        for name, counts in groups.items():
            estimates[name] = run_mechanism(counts, epsilon=each, **request)
    else:
        with meter.parallel(disjoint) as branch:
            for name, counts in groups.items():
                with branch():
                    estimates[name] = run_mechanism(counts, epsilon=epsilon, **request)
    guarantee = meter.guarantee()
    factor = meter.terms.factor
    return {name: Histogram.of(e, bins=domain, guarantee=guarantee, factor=factor) for name, e in estimates.items()}
