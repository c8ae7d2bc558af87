"""What is private has a type of its own: nobody looks into it but the Meter."""

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy import Charge, Exact, Meter, PersonBudgets, Seeded
from sfumato.privacy.exact import COULD_NOT_COMPUTE
from sfumato.testing import reveal

LOOKS = {
    "bool": bool,
    "int": int,
    "float": float,
    "index": lambda e: [1, 2][e],
    "round": round,
    "len": len,
    "list": list,
    "in": lambda e: 3 in e,
    "unpack": lambda e: [*e],
    "equal": lambda e: e == 3,
    "not equal": lambda e: e != 3,
    "less": lambda e: e < 3,
    "max": lambda e: max(e, 3),
    "sorted": sorted,
    "add": lambda e: e + 1,
    "add to": lambda e: 1 + e,
    "negate": lambda e: -e,
    "asarray": np.asarray,
    "array in a list": lambda e: np.array([e], dtype=np.int64),
    "ufunc": lambda e: np.add(e, 1),
    "array plus": lambda e: np.arange(3) + e,
    "array function": lambda e: np.sum(e),
    "where": lambda e: np.where(e, 1, 0),
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "bytes": bytes,
}

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("value", [7, np.arange(3), [1.5, 2.0], "ward 7"], ids=["int", "array", "list", "text"])
def test_nobody_looks_at_a_private_value(look, value):
    with pytest.raises(PrivacyError, match="of a private value: ask for it with noise"):
        look(Exact(value))


@pytest.mark.parametrize("value", [7, np.arange(3)])
def test_its_attributes_and_its_hash_are_not_there(value):
    exact = Exact(value)
    with pytest.raises(AttributeError, match=r"inside exact\.map"):
        _ = exact.sum
    with pytest.raises(TypeError, match="unhashable"):
        hash(exact)


@pytest.mark.parametrize("words", [str, repr, "{}".format, "{:>30}".format, "%s".__mod__])
def test_its_words_do_not_quote_it(words):
    assert "4711" not in words(Exact(4711))
    assert "private" in words(Exact(4711))


def test_it_is_computed_once_when_the_meter_opens_it_and_after_the_price():
    read = []
    exact = Exact.reading(lambda: read.append(1) or [5])
    twice = exact.map(lambda v: [2 * v[0]])
    meter = Meter(limit=Charge.of(1))
    from sfumato.errors import BudgetError

    with pytest.raises(BudgetError):
        meter.laplace(twice, rate=2 * 10**9)
    assert not read
    assert meter.laplace(twice, rate=10**9).shape == (1,)
    assert read == [1]
    Meter().laplace(exact, rate=10**9)
    assert read == [1]


def test_map_zip_and_public_indices_compute():
    a, b = Exact(np.arange(4)), Exact(10)
    assert reveal(a.zip(b).map(lambda both: int(both[0].sum()) + both[1])) == 16
    assert reveal(a.zip(b, Exact("x"), Exact("y")))[1:] == (10, "x", "y")
    assert reveal(a[1:3]).tolist() == [1, 2]
    assert reveal(a[[0, 3]]).tolist() == [0, 3]


def test_what_is_joined_or_used_as_an_index_is_of_the_right_kind():
    a = Exact(np.arange(4))
    with pytest.raises(PrivacyError, match="must be public"):
        _ = a[Exact(1)]
    with pytest.raises(PrivacyError, match="must be public"):
        _ = a[0, Exact(1)]
    with pytest.raises(PrivacyError, match="is public: use it inside map"):
        a.zip(3)
    with pytest.raises(PrivacyError, match="zip the two values first"):
        reveal(a.map(lambda _: Exact(1)))


class StrayError(Exception):
    def __str__(self):
        return "Alice has a rare illness"


def failing(error):
    def function(_):
        raise error

    return function


@pytest.mark.parametrize(
    "error", [ValueError("Alice"), StrayError(), InputError("Alice"), MemoryError(), KeyError("Alice"), StopIteration(3)]
)
def test_a_failure_is_one_sentence_whatever_it_was(error):
    with pytest.raises(PrivacyError) as caught:
        Meter().laplace(Exact([1]).map(failing(error)), rate=1)
    found = caught.value
    assert type(found) is PrivacyError
    assert str(found) == COULD_NOT_COMPUTE
    assert found.__cause__ is None
    assert found.__context__ is None
    frames = []
    trace = found.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    assert not any("Alice" in repr(value) for frame in frames[1:] for value in frame.f_locals.values())


@pytest.mark.parametrize("value", [["Alice"], [1.5], [float("nan")], [[1], [2, 3]], None])
def test_what_is_no_vector_of_integers_is_one_sentence_too(value):
    with pytest.raises(PrivacyError, match="could not be computed") as caught:
        Meter().laplace(Exact(value), rate=1)
    assert caught.value.__context__ is None


def test_how_many_values_there_are_is_not_told():
    with pytest.raises(InputError, match="2 noise rates for another number of values"):
        Meter().laplace(Exact([1] * 4711), rate=[1, 1])


def test_an_experiment_is_told_why():
    with pytest.raises(ValueError, match="of demo data"):
        Meter(source=Seeded(1)).laplace(Exact([1]).map(failing(ValueError("of demo data"))), rate=1)


def test_rows_per_person_travel_with_the_value_and_must_be_priced():
    exact = Exact([5], rows_per_person=3)
    assert exact.map(list).rows_per_person == 3
    assert Exact(1).zip(exact).rows_per_person == 3
    for call in (
        lambda m: m.laplace(exact, rate=1),
        lambda m: m.choose(exact.map(lambda v: [*v, 1]), rate=1),
        lambda m: m.partition([0], [1], exact, rate=[1], moves=[1]),
    ):
        with pytest.raises(PrivacyError, match="may own 3 rows of this table, but the Meter prices 2"):
            call(Meter(rows_per_person=2))
        call(Meter(rows_per_person=3))
        call(Meter(rows_per_person=4))


def test_what_travels_with_a_value_cannot_be_changed():
    exact = Exact([5], rows_per_person=3)
    for name, value in {"rows_per_person": 1, "samples": frozenset({1}), "anything": 0}.items():
        with pytest.raises(AttributeError):
            setattr(exact, name, value)
    assert exact.rows_per_person == 3


def test_inside_a_sample_a_private_value_must_be_made_of_it():
    counts = Exact(np.array([5, 7]))
    budgets = PersonBudgets.from_nano([10**9] * 5 + [2 * 10**9] * 7)
    meter = Meter(budgets=budgets)
    with meter.sampled([2**62, 2**62]) as sample:
        kept = sample(counts)
        assert isinstance(kept, Exact)
        assert meter.laplace(kept.map(lambda k: k.sum(keepdims=True)), rate=1).shape == (1,)
        meter.laplace(kept.zip(counts).map(lambda both: both[0]), rate=1)
        with pytest.raises(PrivacyError, match="must be made of what its sample function returns"):
            meter.laplace(counts, rate=1)
    meter.laplace(kept, rate=1)  # outside it has the full price
    with meter.sampled([2**61, 2**61]) as other:
        other(counts)
        with pytest.raises(PrivacyError, match="must be made of"):
            meter.laplace(kept, rate=1)


def test_a_sample_and_a_deal_of_something_private_are_private():
    meter = Meter()
    dealt = meter.deal(Exact(6), 3)
    assert isinstance(dealt, Exact)
    assert reveal(dealt).shape == (6,)
    assert set(reveal(dealt).tolist()) <= {0, 1, 2}
    assert meter.deal(6, 3).shape == (6,)


def test_an_opened_value_does_not_keep_what_it_was_made_of():
    class Big:
        pass

    big = Big()
    import weakref

    gone = weakref.ref(big)
    exact = Exact(big).map(lambda _: [1])
    del big
    Meter().laplace(exact, rate=1)
    gc.collect()
    assert gone() is None


LEAKS = """
import numpy as np
from numpy.typing import NDArray
from sfumato.privacy import Exact
e: Exact[NDArray[np.int64]] = Exact(np.arange(3))
n: Exact[int] = e.map(lambda a: int(a.sum()))
len(e)
int(n)
n + 1
n < 3
n == 3
for x in e: pass
np.asarray(n) + 1
e.sum()
x3: int = n
[1, 2][n]
e.map(lambda a: a.no_such_thing)
"""


@pytest.mark.slow
def test_mypy_knows_a_leak(tmp_path):
    path = tmp_path / "leaks.py"
    path.write_text(textwrap.dedent(LEAKS))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", ROOT / "pyproject.toml", path],
        capture_output=True,
        text=True,
        cwd=ROOT,  # where the types of the package are known from the last time
        check=False,
    )
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if "leaks.py" in line and "error" in line}
    assert {7, 8, 9, 10, 11, 12, 14, 15, 16, 17} <= lines, done.stdout
