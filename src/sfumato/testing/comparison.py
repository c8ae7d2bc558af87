"""The exact loss of each call, from what two neighbours had to say under the same answers.

- Noise of rate r on integers: an answer z to a or b is ``r (|z - b| - |z - a|)`` more likely (as a logarithm); at most
  ``Σ r |a - b|``, which far enough answers attain.
- A choice at rate r: candidate i with scores s wins with probability ``p_i ∫₀¹ Π_{j≠i} (1 - p_j t) dt``, where
  ``p_j = exp(r (s_j - max s))`` (the noisy maximum of `noise.choose` is permute-and-flip; i is drawn at time t). At most r
  times the spread of the changes.
- A partition: at most ``r_b (|Δ_b| + max_c |Δ_c|)`` over the intervals b around the record, whose bin must lie in every
  interval that moved (the proof is in `privacy.partition`).
- Noise of rate β on a minimum: β times the distance of the two minima. Noise on an objective: the published point is the
  minimum for the noise ``-∇``, so the distance is that of the two gradients there, and the logarithms of the determinants of
  the two Hessians differ too (`vector_loss`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.calls import Call
from sfumato.privacy.units import NANO
from sfumato.testing.likelihood import log_likelihood
from sfumato.testing.tape import LeakError, Tape


@dataclass(frozen=True, eq=False)
class Compared:
    """One call, as it was asked of two neighbours and answered alike.

    Attributes
    ----------
    here, there : Call
        The call on the first table, and on its neighbour.
    """

    here: Call
    there: Call

    @property
    def charged(self) -> int:
        """What the person group that pays most was charged, in nano-ε (0 where an earlier charge paid)."""
        return 0 if self.here.charged is None else int(self.here.charged.max(initial=0))

    @property
    def loss(self) -> float:
        """The largest loss of any answer, in nano-ε; exact for noise on integers. Inside a sample: of its members.

        For noise on an objective: the largest at the published minimum.
        """
        match self.here.kind:
            case "laplace":
                return _noise_loss(self.here, self.there)
            case "choice":
                here, there = (np.asarray(call.exact, dtype=np.float64) for call in (self.here, self.there))
                return float(np.ptp(here - there)) * float(self.here.public["rate"])
            case "partition":
                return _partition_loss(self.here, self.there)
            case "objective":
                (gradient, stretch), (other, smaller) = (_seen_from(call) for call in (self.here, self.there))
                return vector_loss(self.here, gradient - other, stretch=stretch - smaller)
            case "output":
                return vector_loss(self.here, self.here.exact - self.there.exact)
            case _:
                return 0

    @property
    def log_ratio(self) -> float:
        """How much likelier the answer was here than there: the logarithm of the ratio, in ε."""
        match self.here.kind:
            case "objective":
                (gradient, stretch), (other, smaller) = (_seen_from(call) for call in (self.here, self.there))
                further = vector_loss(self.here, other) - vector_loss(self.here, gradient)
                return further / NANO + stretch - smaller
            case "output":
                further = vector_loss(self.here, self.here.answer - self.there.exact)
                return (further - vector_loss(self.here, self.here.answer - self.here.exact)) / NANO
            case _:
                return log_likelihood(self.here, self.here.exact) - log_likelihood(self.here, self.there.exact)


def compare(first: Tape, second: Tape) -> tuple[Compared, ...]:
    """Call by call, what was asked of two neighbours.

    Parameters
    ----------
    first : Tape
        The recording.
    second : Tape
        Its replay.

    Returns
    -------
    tuple of Compared

    Raises
    ------
    LeakError
        If the neighbour was asked fewer questions.
    """
    if len(first.calls) != len(second.calls):
        raise LeakError(
            f"the neighbour is asked other questions: {len(second.calls)} of the {len(first.calls)} that were recorded"
        )
    return tuple(Compared(a, b) for a, b in zip(first.calls, second.calls, strict=True))


def vector_loss(call: Call, moved: ArrayLike, *, stretch: float = 0.0) -> float:
    """The loss of noise on a vector, in nano-ε, if the neighbour's exact vector is `moved` away.

    Parameters
    ----------
    call : Call
        Of kind "output" or "objective".
    moved : vector
        The difference of the exact vectors; for an objective, of the gradients at the published minimum.
    stretch : float
        For an objective, the difference of the log-determinants of the two Hessians there.

    Returns
    -------
    float

    Examples
    --------
    >>> vector_loss(Call("output", public={"beta": 0.5}), [3.0, 4.0])
    2500000000.0
    """
    if call.kind not in ("output", "objective"):
        raise InputError(f"only noise on coefficients or on an objective moves a vector, not {call.kind}")
    length = call.public.get("length")
    distance = np.linalg.norm(moved) if length is None else np.abs(moved).sum() / length
    return float(call.public["beta"] * distance + abs(stretch)) * NANO


def _seen_from(call: Call) -> tuple[NDArray[np.float64], float]:
    """The gradient at the answer, which is minus the noise that leads there, and the log-determinant of the Hessian."""
    gradient, _ = call.exact.gradient(call.answer, np.zeros(len(call.answer)))
    return gradient, float(np.linalg.slogdet(call.exact.hessian(call.answer))[1])


def _noise_loss(here: Call, there: Call) -> int:
    """``Σ r |a - b|`` in Python integers: exact however large the values are."""
    rates = np.broadcast_to(here.public["rate"], here.exact.shape)
    moved = np.nonzero(here.exact != there.exact)
    pairs = zip(here.exact[moved].tolist(), there.exact[moved].tolist(), rates[moved].tolist(), strict=True)
    return sum(abs(a - b) * r for a, b, r in pairs)


def _partition_loss(here: Call, there: Call) -> float:
    starts, stops, rates = (here.public[name] for name in ("starts", "stops", "rate"))
    change = np.abs(here.exact - there.exact)
    moved = change > 0
    if not moved.any():
        return 0
    # The record's bin is one that all moved intervals share; whichever it is, the bound for that bin holds.
    first, last = int(starts[moved].max()), int(stops[moved].min())
    losses = []
    for place in range(first, last):
        around = (starts <= place) & (place < stops)
        losses.append(int((rates[around] * (change[around] + int(change.max()))).max()))
    return min(losses, default=math.inf)  # no bin in common: one record cannot have done this
