"""A source of noise that writes down every call of a Meter, and plays the answers back to a neighbour.

Playing back, it checks that the neighbour is asked the same: the same kinds of calls in the same order, with the same
rates, weights, touches and labels. These are public, or follow from earlier answers; if they differ for two neighbours, they
depend on the data. The exact values may differ: how far is what `compare` looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy.calls import Call
from sfumato.privacy.source import Generator, Seeded, Source


class LeakError(PrivacyError):
    """A neighbour can be told apart without looking at any noisy number: what it was asked depends on the data."""


class Tape:
    """A `Source` that records; with the tape of an earlier run it gives the same answers again.

    Parameters
    ----------
    source : Source or int
        Where the noise of a recording comes from; a number is a seed.
    replay : Tape, optional
        The recording whose answers to give.
    draws : int, optional
        Seed of all free randomness (`post_processing`, `deal`), where the worst of it is to be looked at by itself.
    lacks : integers
        The places of the records that the replayed table lacks, so that a `deal` gives the others the parts they had.

    Attributes
    ----------
    calls : list of Call
        What the Meter was asked and answered so far.

    Notes
    -----
    A `sample` is replayed record by record: records that both neighbours have are in both samples or in neither, and a
    record that only the second has is taken to be in its sample. A `deal` gives records their parts in order; say which of
    them the neighbour lacks (`again`), or let the record that differs be the last one.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> tape = Tape(1)
    >>> noisy = Meter(source=tape).laplace([5, 7], rate=10**9, label="counts")
    >>> tape.calls[0].kind, tape.calls[0].exact.tolist(), tape.calls[0].charged.tolist()
    ('laplace', [5, 7], [1000000000])
    >>> again = tape.again()
    >>> (Meter(source=again).laplace([4, 7], rate=10**9, label="counts") == noisy).all()
    np.True_
    >>> Meter(source=tape.again()).laplace([4, 7], rate=10**8, label="counts")
    Traceback (most recent call last):
    ...
    sfumato.testing.tape.LeakError: call 1 ('counts'): its rate differs for the neighbour, so the noise depends on the data
    """

    private = False

    def __init__(
        self,
        source: Source | int = 0,
        *,
        replay: Tape | None = None,
        draws: int | None = None,
        lacks: Sequence[int] = (),
    ) -> None:
        self.source: Source = Seeded(source) if isinstance(source, int) else source
        self.calls: list[Call] = []
        self._replay = None if replay is None else tuple(replay.calls)
        self._draws = draws
        self._lacks = list(lacks)

    def again(self, lacks: Sequence[int] = ()) -> Tape:
        """A tape that gives the answers of this one, for the neighbour that `lacks` the records at these places."""
        return Tape(self.source, replay=self, draws=self._draws, lacks=lacks)

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` random words, from the source underneath."""
        return self.source.words(n)

    def generator(self) -> Generator:
        """Draws that do not look at the data; the replay makes the same ones."""
        kept = self._kept(Call("draws"))
        if kept is not None:
            seed = int(kept.answer)
        else:
            seed = int(self.source.words(1)[0] >> np.uint64(1)) if self._draws is None else self._draws
        self.calls.append(Call("draws", answer=seed))
        return Seeded(seed).generator()

    def answer(self, call: Call, draw: Callable[[], Any]) -> Any:
        """Called by the Meter instead of `draw`: record the `call` and its answer, or give the recorded one."""
        call = replace(call, exact=_copy(call.exact), public={k: _copy(v) for k, v in call.public.items()})
        kept = self._kept(call)
        if call.kind == "deal":
            made = self._dealt(call, kept, draw)
        elif kept is None:
            made = self._drawn(call, draw)
        elif call.kind == "sample":
            made = _same_sample(kept, np.asarray(call.exact))
        else:
            made = _copy(kept.answer)
        self.calls.append(replace(call, answer=_copy(made)))
        return made

    def _drawn(self, call: Call, draw: Callable[[], Any]) -> Any:
        """The answer, from a source that answers by itself if there is one underneath."""
        answers = getattr(self.source, "answer", None)
        return draw() if answers is None else answers(call, draw)

    def _dealt(self, call: Call, kept: Call | None, draw: Callable[[], Any]) -> NDArray[np.int64]:
        """A part for each record; records keep theirs in the replay, and one more gets another."""
        if kept is not None and self._lacks and call.exact == kept.answer.size - len(self._lacks):
            if max(self._lacks) >= kept.answer.size:
                raise InputError("not every row is a record, so nobody knows whose part is whose: replay a plainer table")
            return np.delete(kept.answer, self._lacks)
        if self._draws is not None:
            return np.asarray(Seeded(self._draws).generator().integers(call.public["parts"], size=call.exact))
        if kept is None:
            return np.asarray(draw())
        more = draw()[kept.answer.size :] if call.exact > kept.answer.size else []
        return np.concatenate([kept.answer, np.array(more, dtype=np.int64)])[: call.exact]

    def _kept(self, call: Call) -> Call | None:
        """The recorded call that this one repeats; an error if it does not."""
        if self._replay is None:
            return None
        number = len(self.calls)
        place = f"call {number + 1} ({(call.label or call.kind)!r})"
        if number >= len(self._replay):
            raise LeakError(f"{place}: the neighbour is asked other questions, one more than the {number} recorded")
        kept = self._replay[number]
        if kept.kind != call.kind:
            raise LeakError(f"{place}: the neighbour is asked other questions, here for {call.kind}, there for {kept.kind}")
        if kept.label != call.label:
            raise LeakError(f"{place}: its label differs for the neighbour, and labels are published")
        for name in call.public.keys() | kept.public.keys():
            if not _equal(call.public.get(name), kept.public.get(name)):
                raise LeakError(f"{place}: its {name} differs for the neighbour, so the noise depends on the data")
        if call.noisy and np.shape(call.exact) != np.shape(kept.exact):
            raise LeakError(f"{place}: the neighbour has another number of values, so the noise depends on the data")
        return kept


def _copy(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray | list) else value


def _equal(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and bool(np.array_equal(a, b))


def _same_sample(kept: Call, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The recorded sample, without the records that the neighbour lacks and with those that it has on top."""
    drawn, there = kept.answer, np.broadcast_arrays(counts, kept.public["thresholds"])[0]
    here = np.broadcast_to(kept.exact, drawn.shape)
    shape = np.maximum(here.shape, there.shape)
    before, after, sample = (_padded(np.asarray(a, dtype=np.int64), shape) for a in (here, there, drawn))
    coupled = np.clip(sample + after - before, 0, after)
    return np.asarray(coupled[tuple(map(slice, there.shape))])


def _padded(values: NDArray[np.int64], shape: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.pad(values, [(0, int(n) - m) for n, m in zip(shape, values.shape, strict=True)])
