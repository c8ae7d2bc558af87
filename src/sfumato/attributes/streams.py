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

*Memory.* Three vectors per level: the exact content of its complete nodes, the part not yet answered for, the answers. The
first two are private (`Exact`): what the stream itself does follows from the clock and the questions.

*One recipient.* Whom the stream was paid for is fixed when it opens, and a stream cannot be copied: answers drawn twice
would be two releases. `save` puts it into a file from which it goes on after a restart (`stream_file`), still one stream.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.attributes.release import WHOLE_COUNTS, AttributeRelease
from sfumato.attributes.sums import EACH_TIME, ItemSums
from sfumato.errors import InputError, LedgerError, PrivacyError
from sfumato.privacy.exact import Exact
from sfumato.privacy.items import laplace_shares
from sfumato.privacy.meter import Meter

if TYPE_CHECKING:
    from sfumato.attributes.device_ledger import DeviceLedger
    from sfumato.attributes.stream_file import StreamFile

ONE_NODE_PER_LEVEL = "each item is in one node per level of the stream's tree, and each node is answered for once"


class AttributeStream:
    """Running totals of attributes over a stream of items, for one recipient.

    Parameters
    ----------
    policy : Policy
        The same file as for a single release; its price is paid once, when the stream opens.
    meter : Meter
        Pays and draws.
    catalogue : Catalogue, optional
        For `add`; without it items are given by their attributes. It must be one that the policy was priced for.
    recipient : str
        Whom the stream was paid for: all its releases are theirs.
    fanout : int
        Children per node.
    ledger : DeviceLedger, optional
        What the stream was charged to; `save` needs it.

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

    def __init__(
        self,
        policy: Policy,
        meter: Meter,
        *,
        catalogue: Catalogue | None = None,
        recipient: str = "",
        fanout: int = 16,
        ledger: DeviceLedger | None = None,
    ) -> None:
        if fanout < 2:
            raise InputError(f"a tree needs a fanout of at least 2, got {fanout}")
        if catalogue is not None:
            policy.admit(catalogue.attributes, catalogue.unit, catalogue.maximal)
        self.policy = policy
        self.catalogue = catalogue
        self.fanout = int(fanout)
        self.meter = meter
        self._recipient = recipient
        self._draw = laplace_shares(
            meter,
            rate=policy.rates,
            touches=policy.touches,
            attributes=policy.attributes,
            why=ONE_NODE_PER_LEVEL,
            label="attribute stream",
        )
        meter.assume(EACH_TIME)
        self._ledger = ledger
        self._file: StreamFile | None = None
        self._unwritten = False  # whether the stream is ahead of its file: if a write failed, the next one makes it good
        self._notes: list[str] = []  # what later items rest on
        m = len(policy.attributes)
        self._finished = np.zeros(m, dtype=np.int64)  # noisy totals of past epochs
        self._before = 0  # steps in past epochs
        self._past: list[tuple[int, int]] = []  # levels and noise vectors of each past epoch
        self._open_epoch(1)

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise PrivacyError("a stream cannot be copied or stored: each copy would answer for items that were paid for once")

    @property
    def recipient(self) -> str:
        """Whom the stream was paid for."""
        return self._recipient

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
        return (3 * self._levels + 1) * len(self.policy.attributes)

    # --- time moves on -----------------------------------------------------------------------------------------------

    def add(self, items: Iterable[Any] = ()) -> None:
        """One step of time with these `items` (usually one; none for an empty step)."""
        made = self.policy.sums(items) if self.catalogue is None else self.catalogue.histogram(items, once=False)
        self._steps(1, made.exact.map(lambda row: row[None, :]))
        self._written()

    def skip(self, steps: int) -> None:
        """Let `steps` steps without items pass, in the time of one."""
        if steps < 0:
            raise InputError(f"time does not run backwards: steps must not be negative, got {steps}")
        self._steps(steps, None)
        self._written()

    def extend(self, sums: ItemSums) -> None:
        """Many steps at once: `sums` has one row for each."""
        if not isinstance(sums, ItemSums) or sums.length is None:
            raise InputError("steps are rows of sums, as catalogue.histograms or ItemSums.as_stated makes them")
        self.policy.admit(sums.attributes, sums.unit, sums.rows)
        self._note(sums.notes)
        self._steps(sums.length, sums.exact)
        self._written()

    def _note(self, notes: tuple[str, ...]) -> None:
        for note in notes:
            self.meter.assume(note)
            self._notes += [] if note in self._notes else [note]

    def _steps(self, steps: int, block: Exact[NDArray[np.int64]] | None) -> None:
        done = 0
        self._unwritten |= steps > 0
        while done < steps:
            now = min(steps - done, self._length - self._clock)
            self._advance(now, None if block is None else block[done : done + now])
            done += now

    def _open_epoch(self, levels: int) -> None:
        self._levels = levels
        self._length = self.fanout**levels
        self._clock = 0
        shape = (levels, len(self.policy.attributes))
        # Content of the complete nodes of each level, and the part of it not yet answered for: the private state.
        self._state: Exact[NDArray[np.int64]] = Exact(np.zeros((2, *shape), dtype=np.int64))
        self._noisy = np.zeros(shape, dtype=np.int64)
        self._fresh = [False] * levels  # whether nodes completed since the last answer: a matter of time alone
        self._draws = [0] * levels  # noise vectors in the level's answers

    def _advance(self, steps: int, block: Exact[NDArray[np.int64]] | None) -> None:
        """Move the clock by `steps` (not past the epoch) and hand the content of completed nodes up the levels."""
        completed = self._completed(self._clock, self._clock + steps)
        for level, nodes in enumerate(completed):
            if nodes.handed_up:
                self._noisy[level] = 0
                self._fresh[level], self._draws[level] = False, 0
            if nodes.stop > nodes.start:
                self._fresh[level] = True
        if block is None:
            self._hold(self._state.map(lambda state: _moved(state, None, completed)))
        else:
            self._hold(self._state.zip(block).map(lambda pair: _moved(pair[0], pair[1], completed)))
        self._clock += steps
        if self._clock == self._length:
            self._finished = self._answer()
            self._past.append((self._levels, self._draws[-1]))
            self._before += self._length
            self._open_epoch(self._levels + 1)

    def _completed(self, old: int, new: int) -> list[_Nodes]:
        """What a move of the clock completes on each level, as far up as anything is: public."""
        found = []
        for level in range(self._levels):
            width = self.fanout**level
            parent = width * self.fanout
            top = level == self._levels - 1
            old_end, new_end = old // width * width, new // width * width
            if new_end == old_end:
                break  # no node completed here, so none did above
            # The parent of the old nodes completed and answers for them from now on.
            handed_up = not top and old // parent != new // parent
            start = max(old_end, 0 if top else new // parent * parent)
            found.append(_Nodes(handed_up, start - old, new_end - old))
        return found

    def _hold(self, state: Exact[NDArray[np.int64]]) -> None:
        self._state = self._draw.hold(state)

    # --- questions ---------------------------------------------------------------------------------------------------

    def _answer(self) -> NDArray[np.int64]:
        """Noisy totals up to now, drawing noise for what completed since the last question."""
        asked = [level for level, fresh in enumerate(self._fresh) if fresh]
        for level in asked:
            self._noisy[level] += self._draw(self._state[1, level], self._levels)
            self._fresh[level] = False
            self._draws[level] += 1
        if asked:
            self._hold(self._state.map(lambda state: _answered(state, asked)))
        return np.asarray(self._finished + self._noisy.sum(axis=0))

    def release(self) -> AttributeRelease:
        """Noisy totals of the whole stream so far, for its recipient; as often as one likes."""
        promise = self.meter.guarantee()
        self._unwritten |= any(self._fresh)
        counts = self._answer()
        self._written()  # before anybody sees it
        shares = (*self._past, (self._levels, sum(self._draws)))
        warnings = (WHOLE_COUNTS.format(epsilon=promise.epsilon),)
        return AttributeRelease(counts, self.policy, promise, recipient=self.recipient, warnings=warnings, shares=shares)

    # --- a file ------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the stream in the file `path` from now on: written now, and after every step and before every new answer.

        The file holds private sums: only its owner can read it. `Profile.resume_stream` goes on from it.
        """
        from sfumato.attributes.stream_file import StreamFile

        if self._ledger is None:
            raise LedgerError("this stream was charged to no ledger: Profile(..., ledger=DeviceLedger('me.json')).stream()")
        if self._file is not None:
            raise LedgerError(f"this stream is kept in {self._file.path} already; in two files there would be two of it")
        if os.path.exists(path):
            raise LedgerError(f"{os.fspath(path)} exists; go on from it with resume_stream, or choose another name")
        file = StreamFile(path, self._ledger)
        file.write(self)
        self.kept_in(file)

    def kept_in(self, file: StreamFile) -> None:
        """From now on the stream is kept in this `file`, which stands where it does."""
        self._file = file

    def keep(self, path: str, body: dict[str, Any]) -> None:
        """Write where the stream stands to `path`, with `body` beside it; `save` does so when it must."""
        from sfumato.attributes.stream_file import public_state

        self._draw.keep(path, self._state, {**body, **public_state(self)})

    def _written(self) -> None:
        if self._file is not None and self._unwritten:
            self._file.write(self)
            self._unwritten = False


class _Nodes(NamedTuple):
    """Nodes of one level that a move of the clock completes; steps count from the old time, so earlier ones are negative."""

    handed_up: bool  # whether the parent of the nodes so far completed as well
    start: int
    stop: int


def _moved(state: NDArray[np.int64], block: NDArray[np.int64] | None, completed: list[_Nodes]) -> NDArray[np.int64]:
    """The private state after a move of the clock with these steps (none: empty ones)."""
    new = state.copy()
    below = np.zeros(state.shape[2], dtype=np.int64)  # content of the levels below, before the move
    sums = None if block is None else np.concatenate([below[None, :], np.cumsum(block, axis=0)])
    for level, nodes in enumerate(completed):
        if nodes.handed_up:
            new[:, level] = 0
        if nodes.stop > nodes.start:
            new[:, level] += _between(sums, nodes.start, nodes.stop) + (below if nodes.start < 0 else 0)
        below = below + state[0, level]
    return new


def _answered(state: NDArray[np.int64], levels: list[int]) -> NDArray[np.int64]:
    new = state.copy()
    new[1, levels] = 0
    return new


def _between(sums: NDArray[np.int64] | None, start: int, end: int) -> NDArray[np.int64] | int:
    """Content of the new steps from `start` (steps before the move count as none) to `end`."""
    return 0 if sums is None else np.asarray(sums[max(end, 0)] - sums[max(start, 0)])
