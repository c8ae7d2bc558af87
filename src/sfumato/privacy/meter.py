"""The Meter: every noisy call goes through it, is priced first, and is added up.

The loss of a call follows from its weights alone (see `noise`): a record of person group g enters with integer weight
``w_g`` and touches coordinates whose noise has rate ``r_j`` nano-ε per unit, so group g loses ``w_g`` times

- ``max_j r_j`` if one record touches one coordinate (a histogram),
- ``sum_j r_j`` if it may touch all of them,
- ``max_i sum_j a_ij r_j`` if it is one of the rows of a public matrix A (items and their attributes),

times the rows a person may own, times two against replacement (one record leaves, another enters). Calls in sequence
add up; branches over disjoint people take the maximum per group; inside a random sample of the people a loss l becomes
``ln(1 + p (e^l - 1))`` (Balle, Barthe & Gaboardi 2018, exact for absence). A call that would pass the limit is refused
before its value is computed. Private values are `Exact`: only the calls below open one.

The prices are in `pricing` and `losses`, blocks and the guarantee in `composition`, the adding up in `account`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy import noise
from sfumato.privacy.calls import Call
from sfumato.privacy.composition import Composition
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import add_held, as_int64
from sfumato.privacy.loss import Loss
from sfumato.privacy.losses import product_up
from sfumato.privacy.objective import Objective
from sfumato.privacy.optimum import NOISE_IS_REAL, Perturbation, Solve
from sfumato.privacy.partition import least_cost, partition_price
from sfumato.privacy.pricing import Touches, per_attribute, per_unit, price_of
from sfumato.privacy.units import Nano, NanoArray

Values = Exact[Any] | NDArray[np.int64] | Sequence[int] | Callable[[], Any]


class Meter(Composition):
    """Prices, limits, draws and adds up. Blocks nest as the program does: use one Meter from one thread.

    Parameters
    ----------
    limit : Charge, optional
        What the release may cost. Without one the Meter only adds up (experiments, composition by hand).
    budgets : PersonBudgets, optional
        The person groups to keep separate totals for. Their levels are limits too.
    granted : int64 array, optional
        What each person group granted altogether, in nano-ε, where `budgets` is only the share of this release. The
        guarantee shows both.
    attributes : sequence of str
        Attributes to keep separate totals for.
    rows_per_person : int
        Cap on the rows one person owns; every loss is multiplied by it.
    neighbours : "absence", "replacement" or "item"
    roster : "public" or "private"
        Whether who granted which budget is public, or part of each person's record.
    source : Source
        Random bits. Anything but the secure default marks the release as not private.

    Examples
    --------
    >>> from sfumato.privacy import Charge
    >>> meter = Meter(limit=Charge.of(0.5))
    >>> noisy = meter.laplace([10, 20, 30], rate=400_000_000, label="counts")
    >>> meter.guarantee().epsilon
    Decimal('0.4')
    >>> meter.laplace([1], rate=200_000_000)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: asked ε 0.2, 0.1 of 0.5 left for this release; lower the step's share or ...
    """

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
        values : Exact of integers
            Opened only after the price was accepted. Public integers, and a function that returns some, are taken too.
        rate : int or integers
            Nano-ε per unit, one for all coordinates or one each.
        weights : int or integers per person group
            The largest number of units by which one record of the group moves a coordinate.
        touches : "one", "all" or a non-negative integer matrix
            How many coordinates one record moves; a matrix lists the possible records as rows.
        attributes : names per coordinate, optional
            The attribute whose value the coordinate shows. An attribute that is metered loses what the coordinates with
            its name show; where no names are given, every metered attribute is charged the whole loss.
        label : str
            What the step is for, in the words of the certificate.

        Returns
        -------
        int64 array
            Values and results beyond 64 bits are held at the nearest end, which costs no privacy.
        """
        if isinstance(values, Exact):
            values = values.map(as_int64)  # what is wrong with them is not told either
        rates = noise.check_rates(rate)
        charged = self._pay(self._noise_price(rates, weights, touches, attributes), label, "laplace")
        exact = as_int64(self._open_for_noise(values))
        if rates.ndim and rates.shape != exact.shape:
            # How many values there are may be private: only a public vector's length is told.
            there = "another number of" if isinstance(values, Exact) else exact.size
            raise InputError(f"{rates.size} noise rates for {there} values")
        return self._noisy(exact, rates, {"weights": weights, "touches": touches}, label, charged)

    def charge(
        self,
        *,
        rate: ArrayLike,
        weights: ArrayLike = 1,
        touches: Touches | NDArray[np.int64] = "one",
        attributes: Sequence[str] | None = None,
        label: str = "",
    ) -> None:
        """Charge for a vector of Laplace noise without drawing it.

        For noise whose price is stated once and which is drawn in other pieces (`items`).

        Parameters
        ----------
        rate, weights, touches, attributes, label
            As for `laplace`.

        Examples
        --------
        >>> meter = Meter()
        >>> meter.charge(rate=[10**8, 2 * 10**8], touches="all", label="a stream")
        >>> meter.guarantee().epsilon
        Decimal('0.3')
        """
        price = self._noise_price(noise.check_rates(rate), weights, touches, attributes)
        charged = self._pay(price, label, "laplace")
        public = {"rate": rate, "weights": weights, "touches": touches}
        self._answer(Call("charge", public=public, label=label, charged=charged), lambda: None)

    def choose(
        self, scores: Exact[Any] | ArrayLike | Callable[[], ArrayLike], *, rate: int, spread: ArrayLike = 1, label: str = ""
    ) -> int:
        """Choose the index of a high score (see `noise.choose`).

        Parameters
        ----------
        scores : Exact of numbers
            Public ones, or a function that returns some, are taken too.
        rate : int
            Nano-ε per unit of score.
        spread : number or one per person group
            The largest minus the smallest change that one record makes to any score (common shifts cancel). It must hold
            for the scores *as computed*: put them on an integer lattice, or widen the spread by their rounding error.
        label : str

        Returns
        -------
        int
        """
        rate = int(noise.check_rates(rate))
        charged = self._pay(self._price(1, product_up(spread, rate)), label, "choice")
        exact = self._open_for_noise(scores)
        call = Call("choice", exact, {"rate": rate, "spread": spread}, label, charged)
        return self._answer(call, lambda: noise.choose(exact, rate=rate, source=self._source))

    def partition(
        self, starts: ArrayLike, stops: ArrayLike, costs: Values, *, rate: ArrayLike, moves: ArrayLike, label: str = ""
    ) -> NDArray[np.int64]:
        """Choose the intervals [start, stop) that cover a line at least cost (see `partition`).

        Parameters
        ----------
        starts, stops : integers
        costs : Exact of integers
            Public ones, or a function that returns some, are taken too.
        rate : integers
            Nano-ε per unit of cost, for each interval.
        moves : integers
            By how much one record may move the cost of each interval around it.
        label : str

        Returns
        -------
        int64 array
            Indices of the chosen intervals, from left to right.
        """
        rates, first, last = noise.check_rates(rate), as_int64(starts), as_int64(stops)
        charged = self._pay(self._price(partition_price(rates, as_int64(moves)), 1), label, "partition")
        exact = as_int64(self._open_for_noise(costs))
        call = Call("partition", exact, {"starts": first, "stops": last, "rate": rates, "moves": moves}, label, charged)
        return self._answer(call, lambda: least_cost(first, last, exact - noise.geometric(rates, source=self._source)))

    def optimum(
        self,
        objective: Exact[Objective],
        solve: Solve,
        *,
        by: Perturbation,
        weights: ArrayLike = 1.0,
        label: str = "",
    ) -> NDArray[np.float64]:
        """The minimum of a perturbed objective, or a minimum with noise on it (see `optimum`).

        Parameters
        ----------
        objective : Exact of Objective
            Opened only after the price was accepted.
        solve : function of an objective and a noise vector
            Where the minimum of the objective with that noise is, or nearly: the Meter goes on from there until it is
            certain. For noise on the output the vector is 0.
        by : Perturbation
            Loss, penalty and noise: all that the price depends on.
        weights : float or floats per person group
            What a row of the group weighs in the objective.
        label : str

        Returns
        -------
        float array
            On a public lattice.
        """
        loss = by.loss(weights, moves=2 if self.neighbours == "replacement" else 1)
        charged = self._pay(self._price(1, loss, doubled=False), label, f"{by.on} perturbation")
        self.assume(NOISE_IS_REAL)
        public = {"weights": weights, **vars(by)}
        if by.on == "output":
            vector = self._open_for_noise(objective.map(partial(by.minimum, solve=solve, added=np.zeros(by.dimension))))
            call = Call("output", vector, public, label, charged)
            return self._answer(call, lambda: by.rounded(vector + by.draw(self._source)))

        def solved() -> NDArray[np.float64]:
            found = objective.map(partial(by.minimum, solve=solve, added=by.draw(self._source)))
            return by.published(self._open_for_noise(found), self._source)

        return self._answer(Call("objective", self._open_for_noise(objective), public, label, charged), solved)

    # --- pricing ---------------------------------------------------------------------------------------------------

    def _noise_price(
        self,
        rates: NanoArray,
        weights: ArrayLike,
        touches: Touches | NDArray[np.int64],
        attributes: Sequence[str] | None,
    ) -> Loss:
        by_name = None if attributes is None else self._known(per_attribute(rates, touches, attributes))
        return self._price(per_unit(rates, touches), weights, attributes=by_name)

    def _price(
        self, unit: int, weights: ArrayLike, *, attributes: Mapping[str, Nano] | None = None, doubled: bool = True
    ) -> Loss:
        if not doubled and self.neighbours == "replacement":
            self._account.require_no_branch()
        factor = self.rows_per_person * (2 if doubled and self.neighbours == "replacement" else 1)
        return price_of(self._parties, unit, weights, factor=factor, attributes=attributes)

    def _known(self, losses: Mapping[str, Nano]) -> Mapping[str, Nano]:
        for name in losses:
            if name not in self.attributes:
                raise InputError(f"attribute {name!r} is not metered; known: {', '.join(self.attributes) or 'none'}")
        return losses

    def _pay(self, price: Loss, label: str, mechanism: str) -> NanoArray:
        """Charge, or refuse; returns what each person group was charged."""
        self._account.pay(price, label, mechanism)
        return price.nano[: self._parties.groups]

    def _noisy(
        self,
        exact: NDArray[np.int64],
        rates: NanoArray,
        public: Mapping[str, Any],
        label: str,
        charged: NanoArray | None = None,
    ) -> NDArray[np.int64]:
        """Exact values with noise that was paid for: just now (`charged`), or before."""
        call = Call("laplace", exact, {"rate": rates, **public}, label, charged)
        spread_out = np.broadcast_to(rates, exact.shape)
        return self._answer(call, lambda: add_held(exact, noise.laplace(spread_out, source=self._source)))
