"""An audit of everything a mechanism is told, not only of the model it publishes in the end.

The strongest observer sees every answer of the Meter and the free random draws in between (which tree a record was sent
to, which candidates were bred). What tells two neighbours apart best is then the log-likelihood ratio of all answers
together, and it can be computed: run the mechanism on one table, *replay* its answers to the mechanism on the other, and
compare, call by call, what was asked (`sfumato.testing`).

The replay sees a second kind of flaw too: if the mechanism asks its neighbour other questions (more of them, at other
rates), or publishes something else after the same answers, then it used the data outside the Meter. Such a draw counts as
one that gives the table away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.privacy import Meter, Seeded, Source
from sfumato.testing import LeakError, replay

T = TypeVar("T")
Fit = Callable[[T, Meter], Sequence[NDArray[Any]]]  # runs on a table through a Meter and returns what is published
GIVEN_AWAY = 1000.0  # the ratio that stands for certainty


def ratio_of_run(fit: Fit[T], here: T, there: T, source: Source, draws: int | None = None) -> float:
    """Run on one table, replay to the other: the log-likelihood ratio of what came out, in favour of the first."""
    try:
        found = replay(lambda table, tape: fit(table, Meter(source=tape)), here, there, source=source, draws=draws)
    except LeakError:
        return GIVEN_AWAY
    return round(found.log_ratio, 6) if found.same_output else GIVEN_AWAY


def transcript_case(
    name: str, fit: Fit[T], pair: tuple[T, T], words: str, *, known: bool = False, control: bool = False, most: int = 10_000
) -> AuditCase:
    """An audit case whose number is the log-likelihood ratio of all answers.

    `known` fixes the free draws to those, of many, after which the answers tell the pair apart best.
    """

    @cache
    def worst() -> int | None:
        if not known:
            return None
        return max(range(300), key=lambda k: abs(_largest(fit, pair, k)))

    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        way, draws = 1 - 2 * which, worst()
        return np.array([way * ratio_of_run(fit, pair[which], pair[1 - which], source, draws) for _ in range(n)])

    meter = Meter(source=Seeded(0))
    fit(pair[0], meter)
    return AuditCase(name, meter.spent().total, draw, words, control=control, most=most)


def _largest(fit: Fit[T], pair: tuple[T, T], draws: int) -> float:
    return ratio_of_run(fit, pair[0], pair[1], Seeded(0), draws)
