"""The walker that looks for private values in what a release leaves behind finds them wherever they hide."""

import functools
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.privacy import Meter, Seeded
from sfumato.privacy.exact import Exact
from support.holding import holds_array, holds_exact

SECRET = np.array([17, 4, 99])


@dataclass(frozen=True, slots=True)
class Slotted:
    kept: object


class Cached:
    def __init__(self, value):
        self._value = value

    @functools.cached_property
    def later(self):
        return self._value

    def method(self):
        return self._value


def remembered(value):
    @functools.cache
    def of(_):
        return value_now()

    def value_now():
        return holder.pop()

    holder = [value]
    of(1)  # from here on only the cache has it
    return of


def started(value):
    def numbers():
        kept = value
        yield 0
        yield kept

    running = numbers()
    next(running)
    return running


def boxed(value):
    array = np.empty(2, dtype=object)
    array[0] = SimpleNamespace(a=value)
    return array


HIDEOUTS = {
    "itself": lambda v: v,
    "attribute": lambda v: SimpleNamespace(a=SimpleNamespace(b=v)),
    "slot": lambda v: Slotted(v),
    "containers": lambda v: {"a": [({1: (v,)},)]},
    "closure": lambda v: lambda: v,
    "default": lambda v: lambda x=v: x,
    "partial": lambda v: functools.partial(print, 1, key=v),
    "bound method": lambda v: Cached(v).method,
    "method of a list": lambda v: [v].append,
    "cache": remembered,
    "generator": started,
    "object array": boxed,
}


@pytest.mark.parametrize("hide", HIDEOUTS.values(), ids=list(HIDEOUTS))
def test_it_finds_an_exact_and_an_exact_array(hide):
    assert holds_exact(hide(Exact(SECRET)))
    assert not holds_exact(hide(SECRET))
    assert holds_array(hide(SECRET.astype(float)), {"counts": SECRET})
    assert not holds_array(hide(SECRET * 2), {"counts": SECRET})


def test_it_looks_behind_views_lists_and_into_pickles():
    assert holds_array(np.append(SECRET, 5)[:3], {"counts": SECRET})
    assert holds_array(SECRET[:0], {"counts": SECRET})
    assert holds_array({"a": [17, 4, 99]}, {"counts": SECRET})

    class Stored:
        def __reduce__(self):
            return bytes, (np.append(SECRET, 5).tobytes(),)

    assert holds_array(Stored(), {"counts": SECRET}) == ["pickle: counts"]
    assert not holds_array(np.zeros(9, dtype=int), {"shares": SECRET / 100})


def test_a_meter_keeps_nothing_of_what_it_answered():
    meter = Meter(source=Seeded(0))
    counts = Exact([SECRET.tolist()]).map(lambda rows: np.array(rows[0]))
    meter.laplace(counts, rate=10**6)
    meter.choose(counts.map(lambda c: c * 2), rate=10**6)
    assert holds_exact((meter, counts)) == ["it[1]"]
    assert not holds_array(meter, {"counts": SECRET})
