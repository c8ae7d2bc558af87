"""The books of one Meter: what was spent in nested blocks, against limits, step by step.

A block joins what happens inside it by its own rule (a sum, or the maximum over branches of disjoint people) and tells the
outside what that means for the data it was drawn from (amplification by sampling). A price is accepted only if every limit
holds with all open blocks closed at once.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, PrivacyError
from sfumato.privacy.guarantee import Step
from sfumato.privacy.loss import Loss, Parties
from sfumato.privacy.units import epsilon_text

Kind = Literal["sequence", "parallel", "sampled"]


_NUMBERS = itertools.count()  # of blocks: what was drawn in one is never taken for what was drawn in another


class Block:
    """One open block: its rule and what was spent in it so far."""

    def __init__(self, kind: Kind, parties: int, probability: NDArray[np.float64] | None = None) -> None:
        self.number = next(_NUMBERS)
        self.kind = kind
        self.spent = Loss.nothing(parties)
        self.probability = probability
        self.drawn = kind != "sampled"  # whether the sample that the price speaks of was really drawn

    def join(self, inner: Loss) -> Loss:
        """Losses inside this block after a call or an inner block that costs `inner`."""
        return self.spent.beside(inner) if self.kind == "parallel" else self.spent.then(inner)

    def seen_from_outside(self, loss: Loss) -> Loss:
        """What a loss inside the block means for the data it was drawn from."""
        return loss if self.probability is None else loss.in_sample(self.probability)


class Account:
    """What the parties spent, and may spend.

    Examples
    --------
    >>> account = Account(Parties(), Loss(np.array([10])))
    >>> account.pay(Loss(np.array([7])), "count", "laplace")
    >>> account.total().nano.tolist()
    [7]
    """

    def __init__(self, parties: Parties, limits: Loss) -> None:
        self.parties = parties
        self.limits = limits
        self.steps: list[Step] = []
        self._blocks = [Block("sequence", parties.size)]
        self._lock = threading.Lock()
        self._process = os.getpid()

    # --- blocks ------------------------------------------------------------------------------------------------------

    @property
    def nested(self) -> bool:
        """Whether a block is open."""
        return len(self._blocks) > 1

    def innermost(self, block: Block) -> bool:
        """Whether this block is the one that calls fall into now."""
        return self._blocks[-1] is block

    def inside(self, block: Block) -> bool:
        """Whether this block is still open."""
        return block in self._blocks

    def open(self, kind: Kind, probability: NDArray[np.float64] | None = None) -> Block:
        """Open a block; `probability` is that of each person group to be in the sample."""
        if probability is not None:  # attributes keep their full loss: an upper bound
            probability = np.concatenate([probability, np.ones(len(self.parties.attributes))])
        self._blocks.append(Block(kind, self.parties.size, probability))
        return self._blocks[-1]

    def close(self) -> None:
        """Close the innermost block and add its loss to the one around it."""
        inner = self._blocks.pop()
        self._blocks[-1].spent = self._blocks[-1].join(inner.seen_from_outside(inner.spent))

    def require_branch(self) -> None:
        """Refuse what stands in a parallel block but in no branch."""
        # It may concern everybody: the maximum over branches would forget it.
        if self._blocks[-1].kind == "parallel":
            raise PrivacyError("inside a parallel block every noisy call belongs into a branch: with branch(): ...")

    def require_no_branch(self) -> None:
        """Refuse, in a branch, a price against replacement that is less than twice the price against absence."""
        # Who is replaced by a person of another branch is absent from one branch and present in the other.
        if any(block.kind == "parallel" for block in self._blocks):
            raise PrivacyError(
                "objective and output perturbation have no price in a parallel block against replacement: a person may move "
                "from one branch to another, which costs them both. Ask for neighbours='absence'"
            )

    def require_samples(self) -> None:
        """Refuse a noisy call inside a sample that nobody drew."""
        if not all(block.drawn for block in self._blocks):
            raise PrivacyError("a call inside meter.sampled must use what its sample function returns; it was never called")

    def require_made_of_samples(self, samples: frozenset[int]) -> None:
        """Refuse a private value inside a sample that it was not made of: it would get the price of sampled data."""
        if any(block.kind == "sampled" and block.number not in samples for block in self._blocks):
            raise PrivacyError("a private value inside meter.sampled must be made of what its sample function returns")

    # --- spending ----------------------------------------------------------------------------------------------------

    def require_here(self) -> None:
        """Refuse to spend from the books of another process: after a fork there would be two of them for one limit."""
        if os.getpid() != self._process:
            raise PrivacyError(
                "this Meter belongs to the process that made it: a forked copy would spend the same limit again. Make a "
                "Meter in each process and divide the budget between them"
            )

    def total(self, extra: Loss | None = None) -> Loss:
        """The total as it would stand if `extra` were added now and every open block closed."""
        found = Loss.nothing(self.parties.size) if extra is None else extra
        for block in reversed(self._blocks):
            found = block.seen_from_outside(block.join(found))
        return found

    def pay(self, price: Loss, label: str, mechanism: str) -> None:
        """Add the price of a call, or refuse it and add nothing."""
        self.require_branch()
        self.require_here()
        with self._lock:  # two threads must not both take what is left
            after = self.total(price)
            party = after.over(self.limits)
            if party is not None:
                raise BudgetError(self._refusal(party, price, after))
            block = self._blocks[-1]
            block.spent = block.spent.then(price)
            people = Loss(price.nano[: self.parties.groups])
            self.steps.append(Step(label, mechanism, people.largest))

    def _refusal(self, party: int, price: Loss, after: Loss) -> str:
        limit, without = self.limits.nano[party], after.nano[party] - price.nano[party]
        left = epsilon_text(max(0, int(limit - without)))
        return (
            f"asked {price.words(party)}, {left} of {epsilon_text(int(limit))} left for {self.parties.name(party)}; "
            "lower the step's share or raise the release's epsilon"
        )
