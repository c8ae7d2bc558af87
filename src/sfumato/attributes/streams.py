"""A stream of items under the same policy: both guarantees hold at every moment for the whole stream.

Time runs in steps; an item is in one step. Steps are grouped into a tree of fanout b: node k of level l covers b^l steps.
The total at time T is the sum of the complete nodes of T's base-b digits, level by level. At each level the complete nodes
not yet answered for are answered *together* with one noise vector, when somebody asks.

*Guarantee.* The neighbour is the same stream with one item absent (its step empty): the number of steps is public. An item
is in exactly one node per level and that node is answered for at most once before its parent takes over, so the item
enters at most L noisy sums, L being the number of levels. Each has rate ``floor(r_j / L)``, so over the whole stream the
item costs at most ``L Σ_j a_ij floor(r_j / L) <= Σ_j a_ij r_j <= ε``, and attribute j at most ``a_ij r_j <= t_j``: the price
of a single release under the policy. Which sums are drawn depends on the clock and the questions alone, and every sum is
drawn after its items arrived, so items may be chosen by someone who reads the answers.

*No end in sight.* Epoch e (e = 1, 2, ...) lasts b^e steps and has e levels. An item is in one epoch only, so epochs cost
nothing extra and the stream may last for ever; the noise grows with the third power of log_b T (variance), which a large
fanout keeps small: b = 16 has about a quarter of the variance of the binary tree.

*Memory.* Three vectors per level: the exact content of its complete nodes, the part not yet answered for, the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.attributes.release import WHOLE_COUNTS, AttributeRelease
from sfumato.errors import InputError
from sfumato.privacy.items import laplace_shares
from sfumato.privacy.meter import Meter

ONE_NODE_PER_LEVEL = "each item is in one node per level of the stream's tree, and each node is answered for once"


class AttributeStream:
    """Running totals of attributes over a stream of items.

    Parameters
    ----------
    policy : Policy
        The same file as for a single release; its price is paid once, when the stream opens.
    meter : Meter
        Pays and draws.
    catalogue : Catalogue, optional
        For `add`; without it items are given by their attributes.
    fanout : int
        Children per node.

    Examples
    --------
    >>> from sfumato.attributes.allocation import allocate
    >>> shop = Catalogue.of({"novel": ["paper", "fiction"], "map": ["paper"]})
    >>> policy = allocate(shop, budgets={"paper": 1, "fiction": 1}, epsilon=1)
    >>> stream = AttributeStream(policy, Meter(attributes=policy.attributes, neighbours="item"), catalogue=shop)
    >>> for item in ["map", "novel", "map"]:
    ...     stream.add([item])
    >>> stream.skip(1000)
    >>> stream.time, stream.release().guarantee.epsilon <= 1
    (1003, True)
    """

    def __init__(self, policy: Policy, meter: Meter, *, catalogue: Catalogue | None = None, fanout: int = 16) -> None:
        if fanout < 2:
            raise InputError(f"a tree needs a fanout of at least 2, got {fanout}")
        self.policy = policy
        self.catalogue = catalogue
        self.fanout = int(fanout)
        self.meter = meter
        self._draw = laplace_shares(
            meter,
            rate=policy.rates,
            touches=policy.touches,
            attributes=policy.attributes,
            why=ONE_NODE_PER_LEVEL,
            label="attribute stream",
        )
        m = len(policy.attributes)
        self._finished = np.zeros(m, dtype=np.int64)  # noisy totals of past epochs
        self._before = 0  # steps in past epochs
        self._past: list[tuple[int, int]] = []  # levels and noise vectors of each past epoch
        self._open_epoch(1)

    @property
    def time(self) -> int:
        """Steps so far: public."""
        return self._before + self._clock

    @property
    def levels(self) -> int:
        """Levels of the current epoch: how many noisy sums an item may enter."""
        return self._levels

    @property
    def size(self) -> int:
        """Numbers kept: grows with the number of levels only."""
        return int(self._exact.size + self._pending.size + self._noisy.size + self._finished.size)

    # --- time moves on -----------------------------------------------------------------------------------------------

    def add(self, items: Iterable[Any] = ()) -> None:
        """One step of time with these `items` (usually one; none for an empty step)."""
        if self.catalogue is not None:
            row = self.catalogue.histogram(items, once=False)
        else:
            row = sum((self.policy.fit(item) for item in items), np.zeros(len(self.policy.attributes), dtype=np.int64))
        self.extend(row[None, :])

    def skip(self, steps: int) -> None:
        """Let `steps` steps without items pass, in the time of one."""
        if steps < 0:
            raise InputError(f"time does not run backwards: steps must not be negative, got {steps}")
        while steps:
            now = min(steps, self._length - self._clock)
            self._advance(now, None)
            steps -= now

    def extend(self, rows: NDArray[np.int64]) -> None:
        """Many steps at once: `rows` has one row of attribute sums (lattice units) for each."""
        block = np.asarray(rows)
        if block.ndim != 2 or block.shape[1] != len(self.policy.attributes) or block.dtype.kind not in "iu":
            raise InputError(f"steps are integer rows of {len(self.policy.attributes)} attribute sums")
        while block.shape[0]:
            now = min(block.shape[0], self._length - self._clock)
            self._advance(now, block[:now].astype(np.int64))
            block = block[now:]

    def _open_epoch(self, levels: int) -> None:
        self._levels = levels
        self._length = self.fanout**levels
        self._clock = 0
        shape = (levels, len(self.policy.attributes))
        self._exact = np.zeros(shape, dtype=np.int64)
        self._pending = np.zeros(shape, dtype=np.int64)
        self._noisy = np.zeros(shape, dtype=np.int64)
        self._fresh = [False] * levels  # whether nodes completed since the last answer: a matter of time alone
        self._draws = [0] * levels  # noise vectors in the level's answers

    def _advance(self, steps: int, block: NDArray[np.int64] | None) -> None:
        """Move the clock by `steps` (not past the epoch) and hand the content of completed nodes up the levels."""
        old, new = self._clock, self._clock + steps
        sums = None if block is None else np.concatenate([np.zeros((1, block.shape[1]), np.int64), np.cumsum(block, axis=0)])
        below = np.zeros(self._exact.shape[1], dtype=np.int64)  # exact content of the levels below, before the move
        for level in range(self._levels):
            width = self.fanout**level
            parent = width * self.fanout
            top = level == self._levels - 1
            old_end, new_end = old // width * width, new // width * width
            if new_end == old_end:
                break  # no node completed here, so none did above
            began = 0 if top else new // parent * parent
            content = self._exact[level].copy()
            if not top and old // parent != new // parent:
                # The parent of the old nodes completed and answers for them from now on.
                self._exact[level] = self._pending[level] = self._noisy[level] = 0
                self._fresh[level], self._draws[level] = False, 0
            start = max(old_end, began)
            if new_end > start:
                arrived = _between(sums, start - old, new_end - old) + (below if start < old else 0)
                self._exact[level] += arrived
                self._pending[level] += arrived
                self._fresh[level] = True
            below = below + content
        self._clock = new
        if new == self._length:
            self._finished = self._answer()
            self._past.append((self._levels, self._draws[-1]))
            self._before += self._length
            self._open_epoch(self._levels + 1)

    # --- questions ---------------------------------------------------------------------------------------------------

    def _answer(self) -> NDArray[np.int64]:
        """Noisy totals up to now, drawing noise for what completed since the last question."""
        for level in range(self._levels):
            if self._fresh[level]:
                self._noisy[level] += self._draw(self._pending[level], self._levels)
                self._pending[level] = 0
                self._fresh[level] = False
                self._draws[level] += 1
        return np.asarray(self._finished + self._noisy.sum(axis=0))

    def release(self, *, recipient: str = "") -> AttributeRelease:
        """Noisy totals of the whole stream so far, for `recipient`; as often as one likes."""
        promise = self.meter.guarantee()
        counts = self._answer()
        shares = (*self._past, (self._levels, sum(self._draws)))
        warnings = (WHOLE_COUNTS.format(epsilon=promise.epsilon),)
        return AttributeRelease(counts, self.policy, promise, recipient=recipient, warnings=warnings, shares=shares)


def _between(sums: NDArray[np.int64] | None, start: int, end: int) -> NDArray[np.int64] | int:
    """Content of the new steps from `start` (steps before the move count as none) to `end`."""
    return 0 if sums is None else np.asarray(sums[max(end, 0)] - sums[max(start, 0)])
