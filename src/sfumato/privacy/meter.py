"""The Meter: every noisy call goes through it, is priced first, and is added up.

The loss of a call follows from its weights alone (see `noise`): a record of person group g enters with integer weight
``w_g`` and touches coordinates whose noise has rate ``r_j`` nano-ε per unit, so group g loses ``w_g`` times

- ``max_j r_j`` if one record touches one coordinate (a histogram),
- ``sum_j r_j`` if it may touch all of them,
- ``max_i sum_j a_ij r_j`` if it is one of the rows of a public matrix A (items and their attributes),

times the rows a person may own, times two against replacement (one record leaves, another enters). Calls in sequence
add up; branches over disjoint people take the maximum per group; inside a random sample of the people a loss l becomes
``ln(1 + p (e^l - 1))`` (Balle, Barthe & Gaboardi 2018, exact for absence). A call that would pass the limit is refused
before its value is computed.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.privacy import noise
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.guarantee import NEIGHBOURS, Guarantee, Step
from sfumato.privacy.integers import add_held, as_int64
from sfumato.privacy.losses import objective_loss, output_loss, product_up
from sfumato.privacy.partition import least_cost, partition_price
from sfumato.privacy.pricing import Touches, per_attribute, per_unit
from sfumato.privacy.scopes import Kind, Scope
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import epsilon_text

Values = NDArray[np.int64] | Sequence[int] | Callable[[], Any]
Neighbours = Literal["absence", "replacement", "item"]

ROSTER_IS_PUBLIC = "the roster of who granted which budget is public and does not depend on the data"
_FAR = 1 << 61  # nano-ε: beyond any budget, and the sum of two still fits 64 bits


class Meter:
    """Prices, limits, draws and adds up. Blocks nest as the program does: use one Meter from one thread.

    Parameters
    ----------
    limit : Charge, optional
        What the release may cost. Without one the Meter only adds up (experiments, composition by hand).
    budgets : PersonBudgets, optional
        The person groups to keep separate totals for. Their levels are limits too.
    attributes : sequence of str
        Attributes to keep separate totals for.
    rows_per_person : int
        Cap on the rows one person owns; every loss is multiplied by it.
    neighbours : "absence", "replacement" or "item"
    source : Source
        Random bits. Anything but the secure default marks the release as not private.

    Examples
    --------
    >>> meter = Meter(limit=Charge.of(0.5))
    >>> noisy = meter.laplace([10, 20, 30], rate=400_000_000, label="counts")
    >>> meter.guarantee().epsilon
    Decimal('0.4')
    >>> meter.laplace([1], rate=200_000_000)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: asked ε 0.2, 0.1 of 0.5 left for this release; lower the step's share or ...
    """

    def __init__(
        self,
        *,
        limit: Charge | None = None,
        budgets: PersonBudgets | None = None,
        attributes: Sequence[str] = (),
        rows_per_person: int = 1,
        neighbours: Neighbours = "absence",
        source: Source = SECURE,
    ) -> None:
        if rows_per_person < 1:
            raise InputError(f"rows_per_person must be at least 1, got {rows_per_person}")
        if neighbours not in NEIGHBOURS:
            raise InputError(f"neighbours must be one of {', '.join(NEIGHBOURS)}, got {neighbours!r}")
        self.budgets = budgets
        self.attributes = tuple(attributes)
        self.rows_per_person = operator.index(rows_per_person)
        self.neighbours: Neighbours = neighbours
        self._source = source
        self._groups = budgets.groups if budgets is not None else 1
        self._limits = self._limit_vector(limit)
        self._lock = threading.Lock()
        self._scopes: list[Scope] = [self._scope("sequence")]
        self._steps: list[Step] = []
        self._assumptions: list[str] = [ROSTER_IS_PUBLIC] if budgets is not None else []
        self._not_private: list[str] = [] if source.private else ["noise from a seed"]

    # --- the noisy calls -------------------------------------------------------------------------------------------

    def laplace(
        self,
        values: Values,
        *,
        rate: ArrayLike,
        weights: ArrayLike = 1,
        touches: Touches | NDArray[np.int64] = "one",
        attributes: Sequence[str] | None = None,
        label: str = "",
    ) -> NDArray[np.int64]:
        """Add discrete Laplace noise to an integer vector.

        Parameters
        ----------
        values : integers, or a function that returns them
            The function is called only after the price was accepted.
        rate : int or integers
            Nano-ε per unit, one for all coordinates or one each.
        weights : int or integers per person group
            The largest number of units by which one record of the group moves a coordinate.
        touches : "one", "all" or a non-negative integer matrix
            How many coordinates one record moves; a matrix lists the possible records as rows.
        attributes : names per coordinate, optional
            The attribute whose value the coordinate shows. An attribute that is metered loses what the coordinates with
            its name show; where no names are given, every metered attribute is charged the whole loss.

        Returns
        -------
        int64 array
            Values and results beyond 64 bits are held at the nearest end, which costs no privacy.
        """
        rates = noise.check_rates(rate)
        by_name = None if attributes is None else self._known(per_attribute(rates, touches, attributes))
        self._charge(self._cost(per_unit(rates, touches), weights, attributes=by_name), label, "laplace")
        exact = as_int64(values() if callable(values) else values)
        self._require_samples()
        if rates.ndim and rates.shape != exact.shape:
            raise InputError(f"{rates.size} noise rates for {exact.size} values")
        return add_held(exact, noise.laplace(np.broadcast_to(rates, exact.shape), source=self._source))

    def choose(
        self,
        scores: ArrayLike | Callable[[], ArrayLike],
        *,
        rate: int,
        spread: ArrayLike = 1,
        label: str = "",
    ) -> int:
        """Choose the index of a high score; `spread` bounds, per person group, the largest minus the smallest change
        that one record makes to any score (common shifts cancel). It must hold for the scores *as computed*: put them on
        an integer lattice, or widen the spread by their rounding error."""
        rate = int(noise.check_rates(rate))
        self._charge(self._cost(1, product_up(spread, rate)), label, "choice")
        exact = scores() if callable(scores) else scores
        self._require_samples()
        return noise.choose(exact, rate=rate, source=self._source)

    def partition(
        self, starts: ArrayLike, stops: ArrayLike, costs: Values, *, rate: ArrayLike, moves: ArrayLike, label: str = ""
    ) -> NDArray[np.int64]:
        """Choose the intervals [start, stop) that cover a line at least cost; one record moves the integer cost of an
        interval around it by at most `moves` (see `partition`)."""
        rates = noise.check_rates(rate)
        self._charge(self._cost(partition_price(rates, as_int64(moves)), 1), label, "partition")
        exact = as_int64(costs() if callable(costs) else costs)
        self._require_samples()
        return least_cost(as_int64(starts), as_int64(stops), exact - noise.geometric(rates, source=self._source))

    def objective_noise(
        self,
        dimension: int,
        *,
        beta: float,
        weights: ArrayLike,
        curvature: float,
        penalty: float,
        length: float | None = None,
        label: str = "",
    ) -> NDArray[np.float64]:
        """The noise of objective perturbation (`losses.objective_loss`); Laplace where `length` bounds every row's ‖x‖₁."""
        moves = 2 if self.neighbours == "replacement" else 1
        loss = objective_loss(weights, beta=beta, curvature=curvature, penalty=penalty, moves=moves)
        self._charge(self._cost(1, loss, doubled=False), label, "objective perturbation")
        self.assume("the optimum of the perturbed objective is computed in real arithmetic (float64 stands in for it)")
        draw, rate = (noise.spherical, beta) if length is None else (noise.coordinatewise, beta / length)
        return draw(dimension, rate, source=self._source)

    def output_noise(self, dimension: int, *, beta: float, sensitivity: ArrayLike, label: str = "") -> NDArray[np.float64]:
        """Spherical noise for a vector that one person moves by at most `sensitivity` (per group) in Euclidean norm."""
        self._charge(self._cost(1, output_loss(sensitivity, beta=beta), doubled=False), label, "output perturbation")
        self.assume("the exact vector is computed in real arithmetic (float64 stands in for it)")
        return noise.spherical(dimension, beta, source=self._source)

    # --- composition -----------------------------------------------------------------------------------------------

    @contextmanager
    def parallel(self, why: str) -> Iterator[Callable[[], Any]]:
        """Branches over *disjoint people*: their losses take the maximum, per person group.

        >>> meter = Meter()
        >>> with meter.parallel("each person lives in one region") as branch:
        ...     for region in range(3):
        ...         with branch():
        ...             _ = meter.laplace([5], rate=10**8)
        >>> meter.guarantee().epsilon
        Decimal('0.1')
        """
        self._require_branch()
        block = self._scope("parallel")
        self._scopes.append(block)

        @contextmanager
        def branch() -> Iterator[None]:
            if self._scopes[-1] is not block:
                raise InputError("open the branches of a parallel block one after the other, directly inside it")
            self._scopes.append(self._scope("sequence"))
            try:
                yield
            finally:
                self._close()

        self.assume(f"disjoint groups: {why}")
        try:
            yield branch
        finally:
            self._close()

    @contextmanager
    def sampled(self, thresholds: ArrayLike) -> Iterator[Callable[[ArrayLike], NDArray[np.int64]]]:
        """Calls inside see a random sample: a record of group g is kept with probability ``thresholds[g] / 2**63``.

        Yields the function that samples exact counts per group. A noisy call inside is refused until it was used, so that
        the sample and its price do not drift apart; every value inside must be made from what it returns.
        """
        if self.neighbours != "absence":
            raise PrivacyError("sampling is priced against absence only; ask for neighbours='absence'")
        self._require_branch()
        limits = np.broadcast_to(noise.check_thresholds(thresholds), (self._groups,))
        scope = self._scope("sampled", np.minimum(limits / 2.0**63 * (1 + 2.0**-50), 1.0))
        self._scopes.append(scope)

        def sample(counts: ArrayLike) -> NDArray[np.int64]:
            if scope not in self._scopes:
                raise InputError("the sampled block is closed: draw its sample inside")
            scope.drawn = True
            return noise.binomial(counts, limits, source=self._source)

        try:
            yield sample
        finally:
            self._close()

    # --- what has been promised ------------------------------------------------------------------------------------

    @property
    def private(self) -> bool:
        return not self._not_private

    def assume(self, assumption: str) -> None:
        """Record what the guarantee rests on."""
        if assumption not in self._assumptions:
            self._assumptions.append(assumption)

    def unsound(self, reason: str) -> None:
        """Announce a step that is not as private as it claims: refused for a real release, marked in an experiment."""
        if self._source.private:
            raise PrivacyError(f"refused: {reason}; such a mechanism runs in experiments with seeded noise only")
        if reason not in self._not_private:
            self._not_private.append(reason)

    def post_processing(self) -> np.random.Generator:
        """Randomness for what is done *after* the noise (sampling a table from a synopsis). Free, and never noise."""
        return self._source.generator()

    def deal(self, records: int, parts: int) -> NDArray[np.int64]:
        """A part for every record, independent and secret: who is where decides whom a branch speaks of. Free."""
        return (self._source.words(records) % np.uint64(parts)).astype(np.int64)

    def spent(self) -> Charge:
        """The price so far."""
        total = self._through_scopes(np.zeros(self._groups + len(self.attributes), dtype=np.int64))
        people = total[: self._groups]
        return Charge(
            int(people.max()),
            people if self.budgets is not None else None,
            dict(zip(self.attributes, total[self._groups :].tolist(), strict=True)),
        )

    def guarantee(self) -> Guarantee:
        """What the calls so far promise together."""
        if len(self._scopes) > 1:
            raise InputError("the guarantee is known when every parallel or sampled block is closed")
        spent = self.spent()
        return Guarantee(
            nano=spent.total,
            neighbours=self.neighbours,
            people=spent.people,
            budgets=self.budgets,
            attributes=spent.attributes,
            rows_per_person=self.rows_per_person,
            assumptions=tuple(self._assumptions),
            steps=tuple(self._steps),
            not_private=tuple(self._not_private),
        )

    # --- pricing ---------------------------------------------------------------------------------------------------

    def _limit_vector(self, limit: Charge | None) -> NDArray[np.int64]:
        vector = np.full(self._groups + len(self.attributes), _FAR, dtype=np.int64)
        if self.budgets is not None:
            vector[: self._groups] = self.budgets.levels
        if limit is None:
            return vector
        people = limit.people if limit.people is not None else np.int64(limit.total)
        if limit.people is not None and limit.people.size != self._groups:
            raise InputError(f"the limit speaks of {limit.people.size} person groups, the budgets of {self._groups}")
        vector[: self._groups] = np.minimum(vector[: self._groups], people)
        for j, name in enumerate(self.attributes):
            vector[self._groups + j] = limit.attributes.get(name, _FAR)
        return vector

    def _scope(self, kind: Kind, probability: NDArray[np.float64] | None = None) -> Scope:
        return Scope(kind, groups=self._groups, size=self._groups + len(self.attributes), probability=probability)

    def _known(self, losses: Mapping[str, int]) -> Mapping[str, int]:
        for name in losses:
            if name not in self.attributes:
                raise InputError(f"attribute {name!r} is not metered; known: {', '.join(self.attributes) or 'none'}")
        return losses

    def _require_branch(self) -> None:
        # What stands in the block but in no branch may concern everybody: the maximum over branches would forget it.
        if self._scopes[-1].kind == "parallel":
            raise PrivacyError("inside a parallel block every noisy call belongs into a branch: with branch(): ...")

    def _require_samples(self) -> None:
        if not all(scope.drawn for scope in self._scopes):
            raise PrivacyError("a call inside meter.sampled must use what its sample function returns; it was never called")

    def _cost(
        self, unit: int, weights: ArrayLike, *, attributes: Mapping[str, int] | None = None, doubled: bool = True
    ) -> NDArray[np.int64]:
        """Cost vector: person groups first, then attributes; `unit` is the loss of a record of weight one."""
        groups = np.asarray(weights)
        if groups.dtype.kind not in "iu":
            raise InputError(f"weights are integers (a budget in nano-ε is one), got {groups.dtype}")
        if groups.ndim > 1 or (groups.ndim == 1 and groups.size not in (1, self._groups)):
            raise InputError(f"{groups.size} weights for {self._groups} person groups")
        if groups.size and int(groups.min()) < 0:
            raise InputError("weights must not be negative")
        factor = self.rows_per_person * (2 if doubled and self.neighbours == "replacement" else 1)
        heaviest = int(groups.max(initial=0))
        if heaviest * unit * factor > _FAR:
            raise BudgetError("this call would cost more than any budget; check the unit of its weights or rates")
        cost = np.zeros(self._groups + len(self.attributes), dtype=np.int64)
        if heaviest:
            cost[: self._groups] = groups.astype(np.int64) * (unit * factor)
        for j, name in enumerate(self.attributes):
            part = unit if attributes is None else attributes.get(name, 0)  # never more than the unit
            cost[self._groups + j] = heaviest * part * factor
        return cost

    def _charge(self, cost: NDArray[np.int64], label: str, mechanism: str) -> None:
        self._require_branch()
        with self._lock:  # two threads must not both take what is left
            after = self._through_scopes(cost)
            over = np.flatnonzero(after > self._limits)
            if over.size:
                raise BudgetError(self._refusal(int(over[np.argmax((after - self._limits)[over])]), cost, after))
            self._scopes[-1].spent += cost
            self._steps.append(Step(label, mechanism, int(cost[: self._groups].max())))

    def _refusal(self, party: int, cost: NDArray[np.int64], after: NDArray[np.int64]) -> str:
        asked, limit = int(cost[party]), int(self._limits[party])
        left = max(0, limit - (int(after[party]) - asked))
        if party >= self._groups:
            who = f"attribute {self.attributes[party - self._groups]!r}"
        elif self.budgets is not None and self._groups > 1:
            who = f"people at {self.budgets.name(party)}"
        else:
            who = "this release"
        return (
            f"asked ε {epsilon_text(asked)}, {epsilon_text(left)} of {epsilon_text(limit)} left for {who}; "
            "lower the step's share or raise the release's epsilon"
        )

    def _through_scopes(self, extra: NDArray[np.int64]) -> NDArray[np.int64]:
        """The total as it would stand if `extra` were added now and every open block closed."""
        total = extra
        for scope in reversed(self._scopes):
            total = scope.seen_from_outside(scope.join(total))
        return total

    def _close(self) -> None:
        scope = self._scopes.pop()
        self._scopes[-1].spent = self._scopes[-1].join(scope.seen_from_outside(scope.spent))
