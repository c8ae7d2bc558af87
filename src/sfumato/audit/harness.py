"""The audit: draw many outputs under two neighbours, and bound from below what they give away.

*Why the bound holds.* Half of the draws choose a few events and a direction; the other half is independent of that choice.
For each chosen event Clopper-Pearson gives, with error α/(2m) each, a lower bound p on its probability under one neighbour
and an upper bound q under the other (m events). With confidence 1 - α all of them hold at once, and then so does
``loss >= ln(p / q)`` for the best of them: a claimed ε below it is refuted. An ε that is not refuted is not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.events import Event, Outputs, candidates
from sfumato.audit.registry import case, names
from sfumato.audit.results import AuditResult
from sfumato.audit.transcripts import TranscriptCase
from sfumato.audit.weaker import Weaker
from sfumato.errors import InputError
from sfumato.privacy import NANO, SECURE, Source, as_epsilon

CHOSEN = 4  # events that are carried from the first half of the draws to the second
LEAST_TRIALS = 1000
TRIED_DEFICITS = (0.3, 0.15, 0.1)


@dataclass(frozen=True)
class AuditCase:
    """A mechanism on its worst pair of neighbours.

    Parameters
    ----------
    name : str
    claimed : int
        The loss in nano-ε that the mechanism claims for this pair, taken from its own Guarantee where there is one.
    draw : function (which, n, source) -> n outputs
        Outputs under neighbour `which` (0 or 1), one number each: integers, floats or the index of a choice. A vector is
        reduced to the number that tells the neighbours apart best.
    neighbours : str
        The pair in words.
    events : sequence of Event
        Events to try beside those that the harness finds by itself.
    control : bool
        A flawed mechanism, here to be caught.
    most : int
        Cap on the draws under each neighbour, for mechanisms that cannot draw many at once.
    """

    name: str
    claimed: int
    draw: Callable[[int, int, Source], Outputs]
    neighbours: str
    events: Sequence[Event] = ()
    control: bool = False
    most: int = 10**7

    @property
    def epsilon(self) -> Decimal:
        """The claim as a decimal."""
        return as_epsilon(self.claimed)


Case: TypeAlias = AuditCase | TranscriptCase


def log_ratio_bound(hits: int, others: int, n: int, error: float) -> float:
    """Lower bound on ln(P(event) / P'(event)) from `hits` and `others` out of n, wrong with probability `error` at most.

    >>> round(log_ratio_bound(500, 100, 1000, 0.01), 2)
    1.29
    >>> log_ratio_bound(0, 0, 1000, 0.01)
    -inf
    """
    from scipy.special import betaincinv

    if hits == 0:
        return -math.inf
    low = float(betaincinv(hits, n - hits + 1, error / 2))
    high = 1.0 if others == n else float(betaincinv(others + 1, n - others, 1 - error / 2))
    return math.log(low / high) if low > 0 else -math.inf


def audit(
    name: str | Case,
    *,
    trials: int = 200_000,
    confidence: float = 0.999,
    source: Source = SECURE,
    power: bool = False,
) -> AuditResult:
    """Attack one case.

    Parameters
    ----------
    name : str or case
        A registered case, or one of your own.
    trials : int
        Outputs to draw under each neighbour; a case may set a cap, and one that is seen through its answers stops as soon
        as they are enough.
    confidence : float
        Of the lower bound on the loss.
    source : Source
        Where the random bits come from.
    power : bool
        Also find the smallest deficit of noise that would be caught, by attacking the case with too little noise.

    Returns
    -------
    AuditResult

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> audit("control-small-noise", trials=50_000, source=Seeded(0)).caught
    True
    """
    if trials < LEAST_TRIALS:
        raise InputError(f"an audit needs at least {LEAST_TRIALS} trials, got {trials}")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence lies between 0.5 and 1 (for example 0.999), got {confidence!r}")
    subject = case(name) if isinstance(name, str) else name
    if isinstance(subject, TranscriptCase):
        return subject.audit(trials=trials, confidence=confidence, source=source)
    trials = min(trials, subject.most)
    best, event = _attacked(subject, trials, confidence, source)
    deficit = None
    if power and not subject.control:
        deficit = 1.0
        for share in TRIED_DEFICITS:  # from large to small: luck with a small one does not count
            if _attacked(subject, trials, confidence, Weaker(share, source))[0] <= subject.claimed / NANO:
                break
            deficit = share
    return AuditResult(
        name=subject.name,
        neighbours=subject.neighbours,
        claimed=subject.epsilon,
        lower=best,
        event=event,
        trials=trials,
        confidence=confidence,
        control=subject.control,
        deficit=deficit,
    )


def _attacked(subject: AuditCase, trials: int, confidence: float, source: Source) -> tuple[float, str]:
    """The lower bound on the loss, and the event that gives it."""
    first, second = (_drawn(subject, which, trials, source) for which in (0, 1))
    half = trials // 2
    error = (1 - confidence) / CHOSEN
    chosen = _choose(subject, (first[:half], second[:half]), error)
    best, event = 0.0, "none"  # a loss is never negative
    for found, ways in chosen:
        hits = [int(found.holds(x[half:]).sum()) for x in (first, second)]
        bound = log_ratio_bound(hits[ways], hits[1 - ways], trials - half, error)
        if bound > best:
            best, event = bound, found.name
    return best, event


def run(
    wanted: Iterable[str] = (),
    *,
    trials: int = 200_000,
    confidence: float = 0.999,
    source: Source = SECURE,
    power: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> list[AuditResult]:
    """Attack some cases, or all of them.

    Parameters
    ----------
    wanted : names
        All cases, controls last, if left out.
    trials, confidence, source, power
        See `audit`.
    progress : callable
        Hears each result, in words, as it comes.

    Returns
    -------
    list of AuditResult
    """
    subjects = [case(name) for name in wanted] or [case(name) for name in names()]
    results = []
    for subject in subjects:
        results.append(audit(subject, trials=trials, confidence=confidence, source=source, power=power))
        progress(results[-1].summary)
    return results


def _drawn(subject: AuditCase, which: int, trials: int, source: Source) -> Outputs:
    outputs: NDArray[Any] = np.asarray(subject.draw(which, trials, source))
    if outputs.shape != (trials,) or outputs.dtype.kind not in "iuf":
        raise InputError(f"audit case {subject.name!r} must draw {trials} numbers, got {outputs.dtype} {outputs.shape}")
    return outputs


def _choose(subject: AuditCase, halves: tuple[Outputs, Outputs], error: float) -> list[tuple[Event, int]]:
    """The events, with direction, whose bound is best on these draws."""
    n = halves[0].size
    scored: list[tuple[float, int, Event, int]] = []
    for event in [*subject.events, *candidates(*halves)]:
        hits = [int(event.holds(x).sum()) for x in halves]
        for ways in (0, 1):
            scored.append((log_ratio_bound(hits[ways], hits[1 - ways], n, error), len(scored), event, ways))
    scored.sort(key=lambda s: (-s[0], s[1]))
    return [(event, ways) for _, _, event, ways in scored[:CHOSEN]]
