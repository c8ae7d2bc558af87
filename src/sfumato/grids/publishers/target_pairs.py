"""Columns together with the target: how many a general table counts, for what share of its budget, and which.

Whoever learns from a synthetic table needs what columns say about the target. That drowns first where records are few: a
class that is rare has few of them in each group of a column. Let R be the records outside the most frequent class and E the
budget that is shared. k pairs counted for a share s of E, of which choices take about half, have noise of about
``2 k / (s E)`` records on each count, against ``R / 4`` in each of four groups. Where noise is to be `DROWNED` of that at
most, the largest share `MOST` is enough for ``a = R E / PER_PAIR`` pairs:

- Less than one pair: the share falls with a, because it would be spent on noise.
- One to `WANTED` pairs: the largest share. Few columns say most of what all of them say.
- More: the share falls like 1 / a, down to `LEAST`, and leaves the rest to other tables.

The score of a pair is that of any pair (`search.pairs`), both classes of a cell alike. A score of the rarer class alone has
the same spread, but half the signal: the model meets the column and the target by themselves, so with two classes what it
misses in one it has too much of in the other. Pairs that were counted before may be chosen again, at finer groups or for
less noise: the model misses what noise has put there. After every two pairs comes a new fit, so that a column which
only repeats another is not counted twice.

All of it follows from published counts and the budget; choices and counts are priced by the `Chooser`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.grids.graphical import Fitted
from sfumato.grids.published.joint import Measured
from sfumato.grids.publishers.choosing import Chooser, refined
from sfumato.grids.search.pairs import Columns
from sfumato.privacy.units import Nano

LEAST, MOST = 0.15, 0.3
DROWNED = 1 / 6  # noise over the count of a rarer class's group
PER_PAIR = 2 * 4 / (MOST * DROWNED)  # records times ε
WANTED = 6
_AT_ONCE = 2
Refit = Callable[[Sequence[Measured], Fitted], Fitted]


def affordable(rarer: float, epsilon: float, columns: int) -> tuple[float, int]:
    """The share of a budget `epsilon`, and the number of pairs, for `rarer` records outside the most frequent class.

    >>> [affordable(8000, epsilon, 15) for epsilon in (0.01, 0.05, 0.1, 1)]
    [(0.15, 1), (0.3, 2), (0.3, 5), (0.15, 6)]
    """
    wanted = min(max(columns - 1, 1), WANTED)
    pairs = max(rarer, 1.0) * epsilon / PER_PAIR
    share = MOST * min(1.0, pairs, wanted / pairs)
    return max(share, LEAST), int(np.clip(round(pairs), 1, wanted))


def with_target(
    chooser: Chooser,
    pairs: Sequence[Columns],
    tables: Sequence[Measured],
    fitted: Fitted,
    refit: Refit,
    *,
    budget: Nano,
    select: float,
    many: int,
) -> tuple[list[Measured], Fitted, Nano]:
    """All tables with up to `many` of these pairs among them, the fit to them, and what is left of the budget."""
    tables = list(tables)
    rounds = -(-many // _AT_ONCE)
    for number in range(rounds):
        found, spent = refined(
            chooser,
            pairs,
            fitted,
            [m.columns for m in tables],
            budget=Nano(budget // (rounds - number)),
            select=select,
            many=many * (number + 1) // rounds - many * number // rounds,
        )
        budget = Nano(budget - spent)
        if found:
            tables = [*tables, *found]
            fitted = refit(tables, fitted)
    return tables, fitted, budget
