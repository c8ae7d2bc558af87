"""A source whose noise is smaller than the Meter was told: what every audit must catch.

It answers the Meter's calls itself, with rates divided by ``1 - deficit``: the scale of the noise is that much too small,
and prices, labels and questions stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import SECURE, Source, noise
from sfumato.privacy.calls import Call
from sfumato.privacy.integers import add_held
from sfumato.privacy.optimum import Perturbation
from sfumato.privacy.partition import least_cost
from sfumato.privacy.source import Generator

_FINE = 1_000_000  # rates from here on are multiplied; below them whole numbers are too coarse, and the noise is shrunk


class Weaker:
    """Noise that is too small by a stated share of its scale.

    Parameters
    ----------
    deficit : float
        0.15 gives noise of 85% of the scale that is paid for.
    source : Source
        Where its bits come from.

    Examples
    --------
    >>> from sfumato.privacy import NANO, Meter, Seeded
    >>> noisy = Meter(source=Weaker(0.5, Seeded(1))).laplace(np.zeros(20_000, dtype=int), rate=NANO // 100)
    >>> bool(45 < np.abs(noisy).mean() < 55)  # instead of 100
    True
    """

    private = False

    def __init__(self, deficit: float, source: Source = SECURE) -> None:
        if not 0 <= deficit < 1:
            raise InputError(f"a deficit of noise is a share from 0 to 1, got {deficit!r}")
        self.deficit = deficit
        self.source = source

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` random words."""
        return self.source.words(n)

    def generator(self) -> Generator:
        """Draws for post-processing."""
        return self.source.generator()

    def answer(self, call: Call, draw: Callable[[], Any]) -> Any:
        """The answer to a `call` with too little noise; what is not noise is drawn by `draw`, as ever."""
        match call.kind:
            case "laplace":
                return add_held(call.exact, self._laplace(np.broadcast_to(call.public["rate"], call.exact.shape)))
            case "choice":
                # Larger scores are a larger rate, whatever whole number the rate is.
                scores = np.asarray(call.exact, dtype=np.float64) / (1 - self.deficit)
                return noise.choose(scores, rate=int(call.public["rate"]), source=self.source)
            case "partition":
                lowered = call.exact - noise.geometric(self._raised(call.public["rate"]), source=self.source)
                return least_cost(call.public["starts"], call.public["stops"], lowered)
            case "objective" | "output":
                return self._optimum(call)
            case _:
                return draw()

    def _optimum(self, call: Call) -> NDArray[np.float64]:
        by = Perturbation(**{field.name: call.public[field.name] for field in fields(Perturbation)})
        added = replace(by, beta=by.beta / (1 - self.deficit)).draw(self.source)
        if by.on == "output":
            return by.rounded(call.exact + added)
        return by.published(by.minimum(call.exact, lambda _, start: 0 * start, added), self.source)

    def _raised(self, rates: Any) -> NDArray[np.int64]:
        return np.asarray(np.rint(np.asarray(rates) / (1 - self.deficit)), dtype=np.int64)

    def _laplace(self, rates: NDArray[np.int64]) -> NDArray[np.int64]:
        if rates.size and int(rates.min()) < _FINE:
            shrunk = noise.laplace(rates, source=self.source) * (1 - self.deficit)
            return np.asarray(np.rint(shrunk), dtype=np.int64)
        return noise.laplace(self._raised(rates), source=self.source)
