"""An audit of everything a mechanism is told, not only of what it publishes in the end.

The strongest observer sees every answer of the Meter and the free random draws in between (which tree a record was sent
to, which candidates were bred). What tells two neighbours apart best is then the log-likelihood ratio of all answers
together, and it can be computed: run the mechanism on one table, *replay* its answers to the mechanism on the other, and
compare, call by call, what was asked (`sfumato.testing`). Three kinds of flaw show:

- a price that is too low: what the questions of one run could tell adds up to more than was claimed;
- noise that is smaller than its price: the answers are unlikely under the rates that were paid for (`evidence`);
- data used outside the Meter: the neighbour is asked other questions (more of them, at other rates), or something else is
  published after the same answers. Such a run gives the table away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

from numpy.typing import NDArray

from sfumato.audit.evidence import Evidence
from sfumato.audit.results import AuditResult
from sfumato.privacy import NANO, Meter, Seeded, Source, as_epsilon
from sfumato.testing import LeakError, Tape, compare
from sfumato.testing.replaying import alike

T = TypeVar("T")
Fit = Callable[[T, Meter], Sequence[NDArray[Any]]]  # runs on a table through a Meter and returns what is published
ENOUGH = 0.15  # the deficit that every case must catch
FEWEST = 50  # replayed runs at least, and runs between two looks at the evidence


@dataclass(frozen=True)
class TranscriptCase:
    """A mechanism on its worst pair of neighbours, seen through all that its Meter answers.

    Parameters
    ----------
    name : str
    claimed : int
        What the differing person is charged, in nano-ε.
    fit : function (table, meter) -> arrays
        Runs the mechanism and returns what is published.
    pair : two tables
        The neighbours.
    neighbours : str
        The pair in words.
    meter : function (source) -> Meter
        The Meter of a run.
    kept : float
        The probability with which the differing person is in the sample, where all calls see one.
    known : bool
        Fix the free draws to those, of many, after which the answers tell the pair apart best.
    control : bool
        A flawed mechanism, here to be caught.
    most : int
        Cap on the runs.
    """

    name: str
    claimed: int
    fit: Fit[Any]
    pair: tuple[Any, Any]
    neighbours: str
    meter: Callable[[Source], Meter] = lambda source: Meter(source=source)
    kept: float = 1.0
    known: bool = False
    control: bool = False
    most: int = 20_000

    @property
    def epsilon(self) -> Decimal:
        """The claim as a decimal."""
        return as_epsilon(self.claimed)

    @cached_property
    def draws(self) -> int | None:
        """The seed of the free draws, where they are fixed."""
        if not self.known:
            return None
        return max(range(300), key=lambda k: self.run(0, Seeded(0), draws=k)[1])

    def run(self, which: int, source: Source, *, draws: int | None = None) -> tuple[float, float, Tape]:
        """One run on table `which` with bits from `source`, replayed to the other; `draws` is the seed of its free draws.

        Returns the log-ratio of its answers in favour of the first table, the largest that answers to these questions could
        have, and the recording.
        """
        tape = Tape(source, draws=draws)
        made = self.fit(self.pair[which], self.meter(tape))
        again = tape.again()
        try:
            other = self.fit(self.pair[1 - which], self.meter(again))
            pairs = compare(tape, again)
        except LeakError:
            return math.inf, math.inf, tape
        if not alike(made, other):
            return math.inf, math.inf, tape
        total = sum(pair.log_ratio for pair in pairs) * (1 - 2 * which)
        return self._seen(total), self._seen(sum(pair.loss for pair in pairs) / NANO), tape

    def _seen(self, ratio: float) -> float:
        """What is seen of a person who is in the sample with probability `kept` only."""
        return math.log1p(self.kept * math.expm1(ratio)) if self.kept < 1 else ratio

    def audit(self, *, trials: int, confidence: float, source: Source) -> AuditResult:
        """Run until a deficit of 15% would have shown, or until the cap.

        Parameters
        ----------
        trials : int
            Cap on the runs, beside the case's own.
        confidence : float
            Of the lower bound.
        source : Source
            Where the random bits come from.

        Returns
        -------
        AuditResult
        """
        evidence, seen, could, runs = Evidence(), 0.0, 0.0, 0
        claim, most = self.claimed / NANO, min(trials, self.most)
        while runs < most:
            if runs < FEWEST or seen < (1 - ENOUGH) * claim:
                ratio, largest, tape = self.run(runs % 2, source, draws=self.draws)
                seen, could = max(seen, abs(ratio)), max(could, largest)
            else:  # what can be seen was seen: from here on only the size of the noise is in question
                tape = Tape(source, draws=self.draws)
                self.fit(self.pair[runs % 2], self.meter(tape))
            runs += 1
            if math.isinf(seen):
                break
            for call in tape.calls:
                evidence.add(call)
            if runs % FEWEST == 0 and (evidence.refutes(confidence) or evidence.smallest_deficit(confidence) <= ENOUGH):
                break
        smaller = evidence.bound(confidence)
        return AuditResult(
            name=self.name,
            neighbours=self.neighbours,
            claimed=self.epsilon,
            lower=seen * smaller if math.isfinite(seen) else seen,
            event="the answers of one run" if math.isfinite(seen) else "data were used outside the Meter",
            trials=runs,
            confidence=confidence,
            control=self.control,
            # Answers that could tell more than is claimed prove the price wrong, whatever the noise.
            refuted=could > claim * (1 + 1e-6) or evidence.refutes(confidence),
            deficit=evidence.smallest_deficit(confidence),
            reached=min(could / claim, 1.0),
        )


def transcript_case(name: str, fit: Fit[T], pair: tuple[T, T], words: str, **more: Any) -> TranscriptCase:
    """A case whose claim is what a run on the first table costs; `more` as for `TranscriptCase`."""
    meter = more.get("meter", TranscriptCase.meter)(Seeded(0))
    fit(pair[0], meter)
    return TranscriptCase(name, meter.spent().total, fit, pair, words, **more)
