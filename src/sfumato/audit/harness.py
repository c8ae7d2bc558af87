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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.events import Event, Outputs, candidates
from sfumato.audit.registry import case, names
from sfumato.errors import InputError
from sfumato.privacy import SECURE, Source, as_epsilon

CHOSEN = 4  # events that are carried from the first half of the draws to the second
LEAST_TRIALS = 1000


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


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    name, neighbours : str
        The case, and its pair in words.
    claimed : Decimal
        The loss that the mechanism claims, in ε.
    lower : float
        Lower confidence bound on the loss, in ε.
    event : str
        The event that gives it, in words.
    trials : int
        Outputs drawn under each neighbour.
    confidence : float
        Of the bound.
    control : bool
        Whether the case is flawed on purpose and must be caught.
    """

    name: str
    neighbours: str
    claimed: Decimal
    lower: float
    event: str
    trials: int
    confidence: float
    control: bool

    @property
    def caught(self) -> bool:
        """Whether the bound refutes the claim."""
        return self.lower > float(self.claimed)

    @property
    def passed(self) -> bool:
        """A mechanism passes if it was not caught, a control if it was."""
        return self.caught == self.control

    @property
    def summary(self) -> str:
        """One line for people."""
        verdict = {
            (False, False): "consistent with the claim",
            (True, False): "REFUTED: it gives away more than it claims",
            (True, True): "caught, as a control must be",
            (False, True): "NOT CAUGHT: the audit is too weak, raise the number of trials",
        }[self.caught, self.control]
        return (
            f"{self.name}: claims ε {self.claimed}, loses at least {self.lower:.3f} "
            f"({self.confidence:.1%} confidence, {self.trials:,} draws each): {verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as `sfumato audit --json` prints them."""
        return {
            "name": self.name,
            "neighbours": self.neighbours,
            "claimed": str(self.claimed),
            "lower_bound": round(self.lower, 6),
            "event": self.event,
            "trials": self.trials,
            "confidence": self.confidence,
            "control": self.control,
            "caught": self.caught,
            "passed": self.passed,
        }


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
    name: str | AuditCase, *, trials: int = 200_000, confidence: float = 0.999, source: Source = SECURE
) -> AuditResult:
    """Attack one case.

    Parameters
    ----------
    name : str or AuditCase
        A registered case, or one of your own.
    trials : int
        Outputs to draw under each neighbour; a case may set a cap.
    confidence : float
        Of the lower bound on the loss.
    source : Source
        Where the random bits come from.

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
    subject = name if isinstance(name, AuditCase) else case(name)
    trials = min(trials, subject.most)
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
    return AuditResult(subject.name, subject.neighbours, subject.epsilon, best, event, trials, confidence, subject.control)


def run(
    wanted: Iterable[str] = (),
    *,
    trials: int = 200_000,
    confidence: float = 0.999,
    source: Source = SECURE,
    progress: Callable[[str], None] = lambda _: None,
) -> list[AuditResult]:
    """Attack some cases, or all of them.

    Parameters
    ----------
    wanted : names
        All cases, controls last, if left out.
    trials, confidence, source
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
        results.append(audit(subject, trials=trials, confidence=confidence, source=source))
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
