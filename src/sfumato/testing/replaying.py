"""Run on a table, replay to its neighbour, compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato.privacy.source import Source
from sfumato.testing.comparison import Compared, compare
from sfumato.testing.tape import Tape

T = TypeVar("T")
P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Replay(Generic[P]):
    """What came of a replay.

    Attributes
    ----------
    published : pair
        What was published for the table and for its neighbour.
    calls : tuple of Compared
        The calls, with the loss and the charge of each.
    """

    published: tuple[P, P]
    calls: tuple[Compared, ...]

    @property
    def loss(self) -> float:
        """All losses in sequence, in nano-ε.

        Branches in which the two tables are alike lose nothing; calls inside a sample count as if the differing record were
        in it.
        """
        return sum(call.loss for call in self.calls)

    @property
    def log_ratio(self) -> float:
        """How much likelier all answers together were on the first table, as a logarithm (in ε)."""
        return sum(call.log_ratio for call in self.calls)

    @property
    def same_output(self) -> bool:
        """Whether the same was published after the same answers; if not, data were used outside the Meter."""
        return alike(*self.published)


def replay(
    run: Callable[[T, Tape], P], here: T, there: T, *, source: Source | int = 0, draws: int | None = None
) -> Replay[P]:
    """Run a mechanism on a table, and on its neighbour with the same answers.

    Parameters
    ----------
    run : function of a table and a source
        Makes its Meter (or estimator, or session) with that source and returns what it publishes.
    here, there : tables
        Neighbours.
    source, draws
        As for `Tape`.

    Returns
    -------
    Replay

    Raises
    ------
    LeakError
        If the neighbour is asked other questions, at other rates or under other labels.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> def leaky(table, source):
    ...     return Meter(source=source).laplace([len(table)], rate=10**8 * len(table), label="size")
    >>> replay(leaky, [1, 2], [1])
    Traceback (most recent call last):
    ...
    sfumato.testing.tape.LeakError: call 1 ('size'): its rate differs for the neighbour, so the noise depends on the data
    """
    first = Tape(source, draws=draws)
    published = run(here, first)
    second = first.again()
    again = run(there, second)
    return Replay((published, again), compare(first, second))


def alike(a: Any, b: Any) -> bool:
    """Whether two results are the same: arrays, numbers and texts, in sequences or mappings of them."""
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(alike, a, b))
    return bool(np.array_equal(a, b))
