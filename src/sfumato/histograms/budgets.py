"""What a record in each bin may lose, and how a mechanism with several steps divides it.

A record sits in exactly one bin, so a histogram whose bin i is noised at rate r_i costs a record in bin i exactly r_i and
the release ``max r_i``: budgets per bin are a *protection policy* (these bins matter more), not a way to gain accuracy.
All numbers are whole nano-ε; shares are rounded down, the last share takes what is left.

*Against which neighbour.* Compared with the same data without a person's rows in bin i (at most k of them), these rows lose
``k r_i``. Compared with the same data with other rows in their place, in whatever bins, they lose ``k (r_i + r_j)``, j being
the costliest of the other bins: the row shows where it is and where it is not. So bins that differ keep a budget of
their own against absence only; against replacement each would be worth no more than the smallest, and they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError, PrivacyError
from sfumato.histograms.bins import Bins
from sfumato.privacy import Epsilon, Exact, Meter, positive_nano
from sfumato.privacy.integers import whole_numbers
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import nano_down_array

Counts: TypeAlias = Exact[Any] | NDArray[np.integer] | Sequence[int] | Callable[[], Any]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


def lost_by_bin(losses: Ints, terms: Terms, *, elsewhere: int = 0) -> Ints:
    """What a person loses by their rows in each bin, from what one row in it loses against absence.

    `elsewhere` is the most a row loses that is in no bin of this histogram but in another one of the release.

    >>> lost_by_bin(np.array([1, 5, 3]), Terms(rows_per_person=2)).tolist()
    [2, 10, 6]
    >>> lost_by_bin(np.array([1, 5, 3]), Terms(rows_per_person=2, neighbours="replacement")).tolist()
    [12, 16, 16]
    """
    if terms.neighbours != "replacement":
        return losses * terms.rows_per_person
    first, second = np.sort(np.append(losses, [0, elsewhere]))[::-1][:2].tolist()
    return np.asarray((losses + np.where(losses == first, second, first)) * terms.rows_per_person)


def bin_rates(*, epsilon: Epsilon, bins: Bins, terms: Terms, bin_budgets: ArrayLike | None = None) -> Ints:
    """The noise rate each bin can afford: its own budget or epsilon, whichever is smaller, per unit of loss.

    >>> bin_rates(epsilon=1, bins=Bins.numbered(3), terms=Terms(), bin_budgets=[0.5, 2, 1]).tolist()
    [500000000, 1000000000, 1000000000]
    """
    limit = positive_nano(epsilon)
    if bin_budgets is None:
        nano = np.full(bins.size, limit, dtype=np.int64)
    else:
        given = np.asarray(bin_budgets)
        if given.size != bins.size:
            raise InputError(f"{given.size} bin budgets for {bins.size} bins; give one per bin")
        nano = np.minimum(nano_down_array(given.reshape(-1), "bin budgets"), limit)
    rates = nano // terms.factor
    if int(rates.min()) < 1:
        raise InputError("every bin needs a budget of at least 1e-9 per row a person may own; raise the smallest one")
    if (lost_by_bin(rates, terms) > nano).any():
        raise InputError(
            "bin budgets that differ hold against absence only: a record replaced by one of another bin loses what both "
            "bins cost. Ask for neighbours='absence', or give all bins the smallest budget"
        )
    return rates


def rates_for(meter: Meter, *, epsilon: Epsilon, bins: Bins, bin_budgets: ArrayLike | None) -> Ints:
    """`bin_rates` under the meter's neighbours and rows per person."""
    if meter.neighbours == "item":
        raise PrivacyError("a histogram protects people's records; ask for neighbours='absence' or 'replacement'")
    return bin_rates(epsilon=epsilon, bins=bins, terms=meter.terms, bin_budgets=bin_budgets)


def share(rates: Ints, percent: int) -> tuple[Ints, Ints]:
    """Divide every bin's rate: `percent` for the first step, the rest for the second.

    >>> [part.tolist() for part in share(np.array([100, 10]), 85)]
    [[85, 8], [15, 2]]
    """
    first = rates * percent // 100
    second = rates - first
    if int(first.min()) < 1 or int(second.min()) < 1:
        raise InputError("the budget is too small to be divided between the steps of this mechanism; raise epsilon")
    return first, second


def exact_counts(counts: Counts, bins: Bins) -> Exact[Ints]:
    """The private counts, one int64 per bin. What the caller holds in hand is checked at once, a table's form when read."""
    if isinstance(counts, Exact):
        return counts.map(lambda found: _flat(found, bins))
    if callable(counts):
        return Exact.reading(counts).map(lambda found: _flat(found, bins))
    return Exact(_flat(counts, bins))


def _flat(counts: Any, bins: Bins) -> Ints:
    array = whole_numbers(counts, "counts")
    if array.size != bins.size:
        raise InputError(f"the table gave {array.size} counts for {bins.size} public bins")
    return array.reshape(-1)


def addable(counts: Ints) -> Ints:
    """Counts that add up within 64 bits, whichever are added: held at an equal part of the range, which is public.

    Holding moves no two tables further apart. A sum that wrapped around would.

    >>> int(addable(np.array([2**63 - 1, 2**63 - 1, 5])).sum()) == 2 * ((2**63 - 1) // 3) + 5
    True
    """
    most = np.iinfo(np.int64).max // max(counts.size, 1)
    return np.clip(counts, -most, most)
