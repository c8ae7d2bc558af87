"""An audit of everything a mechanism is told, not only of the model it publishes in the end.

The strongest observer sees every answer of the Meter and the free random draws in between (which tree a record was sent
to, which candidates were bred). What tells two neighbours apart best is then the log-likelihood ratio of all answers
together, and it can be computed: run the mechanism on one table, *replay* its answers to the mechanism on the other, and
compare, call by call, what was asked.

- noise of rate r on integers: an answer z to a or b adds ``r (|z - b| - |z - a|)``;
- a choice: candidate i with scores s wins with probability ``p_i ∫₀¹ Π_{j≠i} (1 - p_j t) dt``, where
  ``p_j = exp(r (s_j - max s))`` (the noisy maximum of `noise.choose` is permute-and-flip; i is drawn at time t).

The replay sees a second kind of flaw too: if the mechanism asks its neighbour other questions (more of them, at other
rates), or publishes something else after the same answers, then it used the data outside the Meter. Such a draw counts as
one that gives the table away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.audit.harness import AuditCase
from sfumato.errors import InputError
from sfumato.privacy import NANO, Meter, Seeded, Source
from sfumato.privacy.source import Generator

T = TypeVar("T")
Fit = Callable[[T, Meter], Sequence[NDArray[Any]]]  # runs on a table through a Meter and returns what is published
GIVEN_AWAY = 1000.0  # the ratio that stands for certainty


@dataclass(frozen=True, eq=False)
class Call:
    """One noisy call: what was asked of the table, the rate, the answer."""

    kind: str
    exact: NDArray[Any]
    rate: Any
    answer: Any


class Transcript(Meter):
    """A Meter that writes down every call; with the calls of an earlier run it gives their answers again.

    >>> first = Transcript(source=Seeded(1))
    >>> z = first.laplace([5], rate=NANO)
    >>> again = Transcript(source=Seeded(2), replay=first.calls)
    >>> (again.laplace([4], rate=NANO) == z).all(), again.calls[0].exact.tolist()
    (np.True_, [4])
    """

    def __init__(self, *, source: Source, replay: Sequence[Call] | None = None, draws: int | None = None) -> None:
        super().__init__(source=source)
        self.calls: list[Call] = []
        self._replay = replay
        self._draws = draws

    def _next(self, kind: str, exact: NDArray[Any], rate: Any, made: Callable[[], Any]) -> Any:
        if self._replay is None:
            answer = made()
        else:
            at = len(self.calls)
            if at >= len(self._replay) or self._replay[at].kind != kind:
                raise InputError("the neighbour is asked other questions")
            answer = self._replay[at].answer
        self.calls.append(Call(kind, exact, rate, answer))
        return answer

    def laplace(self, values: Any, *, rate: ArrayLike, **rest: Any) -> NDArray[np.int64]:
        seen: list[NDArray[np.int64]] = []

        def look() -> NDArray[np.int64]:
            seen.append(np.array(values() if callable(values) else values, dtype=np.int64))
            return seen[0]

        noisy = super().laplace(look, rate=rate, **rest)
        return np.asarray(self._next("laplace", seen[0], np.asarray(rate), lambda: noisy))

    def choose(self, scores: Any, *, rate: int, **rest: Any) -> int:
        seen: list[NDArray[np.float64]] = []

        def look() -> NDArray[np.float64]:
            seen.append(np.array(scores() if callable(scores) else scores, dtype=np.float64))
            return seen[0]

        index = super().choose(look, rate=rate, **rest)
        return int(self._next("choose", seen[0], np.asarray(rate), lambda: index))

    def post_processing(self) -> Generator:
        """Draws that do not look at the data; the replay makes the same ones."""
        fixed = self._draws
        drawn = self._next(
            "draws", np.zeros(0), np.asarray(0), lambda: int(self._source.words(1)[0] >> 1) if fixed is None else fixed
        )
        return Seeded(drawn).generator()

    def deal(self, records: int, parts: int) -> NDArray[np.int64]:
        """The same parts for the records that both neighbours have: they are drawn in order."""
        return self.post_processing().integers(parts, size=records)


def winning(scores: NDArray[np.float64], rate: float, index: int) -> float:
    """The logarithm of the probability that the exponential choice takes `index`.

    >>> round(float(np.exp(winning(np.array([0.0, 1.0]), NANO, 0))), 6) == round(float(np.exp(-1) / 2), 6)
    True
    """
    nodes, weights = _quadrature()
    gaps = np.exp((scores - scores.max()) * (rate / NANO))
    others = np.delete(gaps, index)
    log_terms = np.log1p(-np.minimum(np.outer(nodes, others), 1 - 1e-15)).sum(axis=1)
    top = float(log_terms.max())
    mine = (scores[index] - scores.max()) * (rate / NANO)
    return float(mine + top + np.log((weights * np.exp(log_terms - top)).sum()))


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(64)  # exact for up to 128 candidates
    return (nodes + 1) / 2, weights / 2


def log_ratio(here: Sequence[Call], there: Sequence[Call]) -> float:
    """log P(answers | here) - log P(answers | there); `GIVEN_AWAY` if other questions were asked there."""
    if len(here) != len(there):
        return GIVEN_AWAY
    total = 0.0
    for a, b in zip(here, there, strict=True):
        if a.kind != b.kind or a.exact.shape != b.exact.shape or not np.array_equal(a.rate, b.rate):
            return GIVEN_AWAY
        if a.kind == "laplace":
            further = np.abs(a.answer - b.exact) - np.abs(a.answer - a.exact)
            total += float((further * (a.rate / NANO)).sum())
        elif a.kind == "choose":
            total += winning(a.exact, float(a.rate), a.answer) - winning(b.exact, float(b.rate), a.answer)
    return total


def ratio_of_run(fit: Fit[T], here: T, there: T, source: Source, draws: int | None = None) -> float:
    """Run on one table, replay to the other: the log-likelihood ratio of what came out, in favour of the first."""
    first = Transcript(source=source, draws=draws)
    published = fit(here, first)
    second = Transcript(source=source, replay=first.calls)
    try:
        again = fit(there, second)
    except InputError:
        return GIVEN_AWAY
    if len(published) != len(again) or not all(map(np.array_equal, published, again)):
        return GIVEN_AWAY
    return round(log_ratio(first.calls, second.calls), 6)


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

    meter = Transcript(source=Seeded(0))
    fit(pair[0], meter)
    return AuditCase(name, meter.spent().total, draw, words, control=control, most=most)


def _largest(fit: Fit[T], pair: tuple[T, T], draws: int) -> float:
    return ratio_of_run(fit, pair[0], pair[1], Seeded(0), draws)
