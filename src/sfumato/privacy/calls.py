"""One call as it reaches the noise: what a test of a mechanism must see, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.privacy.units import NanoArray

CallKind = Literal["laplace", "choice", "partition", "objective", "output", "charge", "sample", "deal", "draws"]


@dataclass(frozen=True, eq=False)
class Call:
    """What a Meter was about to answer.

    The Meter makes one for a source that says it is not private and asks to answer (`sfumato.testing.Tape`). Secure noise
    never meets one.

    Attributes
    ----------
    kind : str
        "laplace", "choice", "partition", "objective" and "output" add noise; "charge" pays for noise that follows under the
        same label; "sample", "deal" and "draws" are free randomness (a sample, parts of records, post-processing).
    exact : array, Objective or None
        The exact value: numbers, a minimum ("output"), an `Objective` ("objective"); None if nothing private is handed in.
    public : mapping
        Everything else that was said: rate, weights, touches, spread, moves, ... It must not depend on the data.
    label : str
    charged : int64 array or None
        What each person group was charged for this call, in nano-ε, before amplification by sampling; None where it was
        paid for by an earlier charge or is free.
    answer : object
        What the mechanism got.
    """

    kind: CallKind
    exact: Any = None
    public: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    charged: NanoArray | None = None
    answer: Any = None

    @property
    def noisy(self) -> bool:
        """Whether the answer is made of an exact value and noise."""
        return self.kind in ("laplace", "choice", "partition", "objective", "output")
