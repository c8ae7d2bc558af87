"""A price composes as the Meter says: in sequence, in parallel, in a sample, against limits, and under names."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import NANO, Charge, Loss, PersonBudgets
from sfumato.privacy.loss import FAR, Parties
from sfumato.privacy.units import epsilon_text, nano_of

vectors = st.lists(st.integers(0, 10**12), min_size=3, max_size=3).map(lambda v: Loss(np.array(v)))


@given(vectors, vectors, vectors)
def test_losses_compose(a, b, c):
    assert (a.then(b).nano == b.then(a).nano).all()
    assert (a.beside(b).nano <= a.then(b).nano).all()
    assert (a.beside(b).then(c).nano == a.then(c).beside(b.then(c)).nano).all()
    assert (a.then(Loss.nothing(3)).nano == a.nano).all()


@given(vectors, st.floats(0, 1))
def test_a_sample_never_costs_more_and_the_whole_table_exactly_as_much(a, p):
    assert (a.in_sample(np.full(3, p)).nano <= a.nano).all()
    assert (a.in_sample(np.ones(3)).nano == a.nano).all()


@given(vectors, vectors)
def test_the_party_that_passes_its_limit_by_most_is_named(a, limit):
    party = a.over(limit)
    if party is None:
        assert (a.nano <= limit.nano).all()
    else:
        assert a.nano[party] - limit.nano[party] == (a.nano - limit.nano).max() > 0


def test_a_charge_is_a_loss_by_name():
    parties = Parties(PersonBudgets.from_tiers({"strict": (0.1, 5), "open": (1, 5)}), ("age", "job"))
    loss = Loss(np.array([10**8, 5 * 10**8, 3, 4]))
    charge = Charge.of_loss(loss, parties)
    assert (charge.total, charge.people.tolist(), dict(charge.attributes)) == (
        5 * 10**8,
        [10**8, 5 * 10**8],
        {"age": 3, "job": 4},
    )
    assert charge.limits(parties).nano.tolist() == loss.nano.tolist()
    assert Charge.of(0.5).limits(parties).nano.tolist() == [NANO // 2, NANO // 2, FAR, FAR]
    assert [parties.name(i) for i in range(4)] == [
        "people at strict",
        "people at open",
        "attribute 'age'",
        "attribute 'job'",
    ]
    assert loss.words(1) == "ε 0.5"
    with pytest.raises(InputError, match="2 person groups, the budgets of 1"):
        charge.limits(Parties())


def test_the_total_of_a_charge_over_people_is_the_largest():
    assert Charge.of_people([3, 9, 4]).total == 9
    assert Charge.of_people(np.array([3, 9, 4])).within(Charge.of_people([3, 9, 5]))
    assert not Charge.of_people([3, 9, 6]).within(Charge.of_people([3, 9, 5]))


@given(st.integers(0, 2**62))
def test_what_is_written_is_read_exactly(nano):
    assert nano_of(epsilon_text(nano)) == nano


@pytest.mark.parametrize("text", ["-0.1", "NaN", "inf", "1e-10", "1e999999", "", "0,1", None])
def test_what_was_not_written_by_us_is_refused(text):
    with pytest.raises(InputError):
        nano_of(text)


def test_the_privacy_package_loads_numpy_and_nothing_heavier():
    script = """
import json, sys
import sfumato.privacy, sfumato.privacy.items
from sfumato.privacy import Meter, PersonBudgets
Meter(budgets=PersonBudgets.of([0.1])).laplace([1] * 1000, rate=1)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 0, done.stderr
    heavy = {
        "scipy",
        "sklearn",
        "pandas",
        "ibis",
        "duckdb",
        "pyarrow",
        "sqlalchemy",
        "matplotlib",
        "polars",
        "typer",
        "rich",
    }
    assert heavy & set(json.loads(done.stdout)) == set()
