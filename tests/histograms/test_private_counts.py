"""Counts stay private: what is published follows from the noisy answers, and the ends of 64 bits tell nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.histograms import release_histogram
from sfumato.histograms.budgets import addable
from sfumato.offers import Facts, Request
from sfumato.privacy import NANO, Exact, Meter
from sfumato.registry import mechanisms
from sfumato.tables import Numeric, PrivacyUnit, Schema, open
from sfumato.testing import replay

NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]
MOST = 2**63 - 1


def released(name, *, rows=1):
    def run(counts, source):
        meter = Meter(source=source, rows_per_person=rows)
        made = release_histogram(counts, epsilon=1, bins=len(counts), meter=meter, mechanism=name)
        return {**made.to_dict(), "ends": made.interval(0.9), "half": made.range(0, len(counts) // 2).interval(0.9)}

    return run


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_published_follows_from_the_noisy_answers(name):
    """Counts, intervals, measurements, parameters, warnings: the same for a neighbour that got the same answers."""
    rng = np.random.default_rng(7)
    for size, rows in ((70, 1), (520, 3)):
        here = np.where(rng.random(size) < 0.6, 0, rng.geometric(0.03, size))
        there = here.copy()
        there[rng.integers(size)] += 1
        found = replay(released(name, rows=rows), here, there)
        assert found.same_output
        assert all(call.loss <= call.charged for call in found.calls)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("here", "there"),
    [
        (np.array([2**63 + 5] * 6, dtype=np.uint64), np.array([2**63 + 4] + [2**63 + 5] * 5, dtype=np.uint64)),
        (np.array([2**63, 0, 0, 0, 0, 0], dtype=np.uint64), np.array([2**63 - 1, 0, 0, 0, 0, 0], dtype=np.uint64)),
        (np.full(6, MOST), np.full(6, MOST) - (np.arange(6) == 2)),
        (np.array([2**62, 2**62, 0, 0, 0, 0]), np.array([2**62, 2**62 - 1, 0, 0, 0, 0])),
        (np.full(6, -(2**63)), np.full(6, -(2**63)) + (np.arange(6) == 2)),
    ],
)
def test_counts_at_the_ends_of_64_bits_move_no_sum_further_than_was_paid(name, here, there):
    found = replay(released(name), here, there)
    for call in found.calls:
        moved = [abs(int(a) - int(b)) for a, b in zip(call.here.exact.flat, call.there.exact.flat, strict=True)]
        assert sum(moved) <= 64  # lattice units of one record: a sum that wrapped around would move by 2**64
    assert found.same_output


def test_an_unsigned_count_beyond_the_range_is_held_at_its_end():
    meter = Meter()
    made = release_histogram(
        np.array([2**63 + 5, 7], dtype=np.uint64), epsilon=40, bins=2, meter=meter, mechanism="identity"
    )
    assert made.counts.tolist() == [float(MOST), 7.0]
    both = release_histogram([2**63, -(2**63)], epsilon=40, bins=2, meter=meter, mechanism="identity")
    assert both.counts.tolist() == [float(MOST), float(-(2**63))]


def test_sums_of_held_counts_never_wrap():
    for n in (1, 2, 3, 1000):
        for value in (MOST, -MOST - 1, 2**62, -1, 5):
            held = addable(np.full(n, value))
            assert int(held.sum()) == n * int(held[0])
            assert abs(int(held[0])) <= abs(value)


def test_form_is_refused_before_anything_is_charged():
    meter = Meter()
    for wrong, match in (([1, 2], "2 counts for 3"), ([1.0, 2.0, 3.0], "integers"), ([1, 2, None], "integers")):
        with pytest.raises(InputError, match=match):
            release_histogram(wrong, epsilon=1, bins=3, meter=meter)
    assert meter.spent().total == 0


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_what_a_bin_loses_counts_every_row_of_a_person(rows, neighbours):
    meter = Meter(rows_per_person=rows, neighbours=neighbours)
    counts = Exact(np.array([4, 0, 9]), rows_per_person=rows)
    each = [1, 0.5, 0.25] if neighbours == "absence" else None
    made = release_histogram(counts, epsilon=1, bins=3, meter=meter, mechanism="identity", bin_budgets=each)
    factor = rows * (2 if neighbours == "replacement" else 1)
    assert int(made.bin_losses.max()) == made.guarantee.nano == NANO // factor * factor
    assert int(made.bin_losses[0]) == int(made.measurements[0].rates[0]) * factor


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("asked", [{}, {"nonnegative": True}, {"total": 40}, {"nonnegative": False, "total": 40}])
def test_a_table_s_histogram_is_previewed_and_charged_for_all_rows_of_a_person(rows, asked):
    schema = Schema({"age": Numeric(0, 99, bins=5, integer=True)}, unit=PrivacyUnit("who", rows))
    request = Request("h", "histogram", epsilon=0.6, parameters={"columns": ["age"], **asked})
    facts = Facts(schema, rows=40)
    frame = pd.DataFrame({"who": np.arange(40) // rows, "age": np.arange(40) * 7 % 100})

    def run(table, source, offer):
        meter = Meter.under(schema.terms, source=source)
        made = offer.run(open(table, schema=schema), meter)
        assert int(made.bin_losses.max()) <= made.guarantee.nano <= offer.charge.total
        return made.to_dict()

    from sfumato.histograms.offers import offers

    found = {o.mechanism: o for o in offers(request, facts)}
    for name in ("identity", "uniform", "geb"):
        offer = found[name]
        without = frame[frame["who"] != 0]
        there = replay(lambda table, source, offer=offer: run(table, source, offer), frame, without)
        assert there.same_output
        assert sum(call.loss for call in there.calls) <= sum(call.charged for call in there.calls) <= offer.charge.total
        if offer.expected_rmse is not None and name == "identity":
            assert offer.expected_rmse == pytest.approx(there.published[0]["expected_rmse"], rel=1e-9)
