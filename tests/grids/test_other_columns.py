"""The target's own shares, and the columns that a grid leaves out: right within their noise, and paid for."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.grids import PrivMarginals, PrivPfC, Synopsis, preview_synthesize
from sfumato.grids.published.marginals import unfolded, widths
from sfumato.grids.publishers.task import Task
from sfumato.privacy import NANO, Meter, PersonBudgets, Seeded
from sfumato.records.coding import Coding
from sfumato.records.levels import Levels
from sfumato.testing import replay

SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 80, bins=16),
        "job": sf.Categorical(list("abcdefgh")),
        "gain": sf.Numeric(0, 3200, bins=32),
        "town": sf.Categorical([f"t{i}" for i in range(12)]),
        "rent": sf.Categorical(["none", "some"]),
    }
)


def table(n, seed=0):
    """One person in fifteen pays none; gains are nearly all 0, towns are few, and both go with the rent."""
    draw = np.random.default_rng(seed)
    age, job = draw.integers(0, 80, n), draw.choice(list("abcdefgh"), n)
    none = draw.random(n) < np.where((age > 60) & (job < "d"), 0.5, 0.012)
    gain = np.where(draw.random(n) < np.where(none, 0.5, 0.05), draw.uniform(1, 3200, n), 0)
    town = np.where(none, 3, draw.choice(12, n, p=[0.6, *[0.4 / 11] * 11]))
    return pd.DataFrame(
        {"age": age, "job": job, "gain": gain, "town": [f"t{i}" for i in town], "rent": np.where(none, "none", "some")}
    )


def released(frame, epsilon, seed, **how):
    return PrivPfC(epsilon=epsilon, target="rent", **how).fit(frame, schema=SCHEMA, source=Seeded(seed)).synopsis


@pytest.mark.parametrize("grids", [1, 2])
def test_the_share_of_a_rare_class_is_not_biased(grids):
    """Twenty releases: the mean is within its standard error, and the noise is what the release says; clipping fails."""
    frame = table(8000)
    truth = float((frame["rent"] == "none").mean())
    records, task = Coding.of(SCHEMA, target="rent").records(frame, frame["rent"]), Task.of(SCHEMA, "rent")
    shares, said, clipped = [], [], []
    for seed in range(20):
        publisher = PrivPfC(epsilon=0.5, target="rent", grids=grids, widest=2, most=60)
        synopsis = publisher.release(records, task, Meter(source=Seeded(seed)))
        counts = synopsis.counts.sum(axis=1)
        shares.append(counts[0] / counts.sum())
        said.append(synopsis.class_shares["none"])
        assert synopsis.class_shares["none"][0] == pytest.approx(shares[-1], abs=0.002)
        drawn = synopsis.sample(8000)
        assert (drawn["rent"] == "none").mean() == pytest.approx(shares[-1], abs=0.002)
        bare = np.maximum(synopsis.noisy, 0).sum(axis=1)
        clipped.append(bare[0] / bare.sum())
    error = np.std(shares, ddof=1) / np.sqrt(20)
    assert abs(np.mean(shares) - truth) < 4 * error
    assert np.mean(clipped) - truth > 4 * error
    assert np.std(shares, ddof=1) == pytest.approx(np.mean([blur for _, blur in said]), rel=0.6)


def test_columns_outside_the_grid_have_their_own_shares():
    frame = table(20_000)
    gaps = {}
    for others in (0.0, 0.1):
        synopsis = released(frame, 1.0, 3, others=others, attributes=["age", "job", "gain", "town"])
        drawn = synopsis.sample(20_000, outside="public")
        for name in ("gain", "town", "age", "job"):
            here, there = (np.bincount(SCHEMA[name].places(f[name]), minlength=SCHEMA[name].size) for f in (frame, drawn))
            gaps.setdefault(name, []).append(np.abs(here - there).sum() / 2 / 20_000)
    for before, after in gaps.values():
        assert after < 0.06
        assert after <= before + 0.02
    assert max(before for before, _ in gaps.values()) > 0.4


def test_what_goes_with_the_class_is_kept():
    frame = table(20_000)
    synopsis = released(frame, 1.0, 4, attributes=["age", "job", "gain", "town"])
    assert "town" in synopsis.not_in_grid() or any(c.name == "town" for c in synopsis.cuts)
    drawn = synopsis.sample(20_000)
    mine = drawn[drawn["rent"] == "none"]
    assert (mine["town"] == "t3").mean() > 0.7
    assert (drawn[drawn["rent"] == "some"]["town"] == "t3").mean() < 0.1


@pytest.mark.parametrize("others", [0, 0.1, 0.5])
@pytest.mark.parametrize("grids", [1, 2, "auto"])
def test_all_of_it_is_paid_for(others, grids):
    frame = table(3000)
    synopsis = released(frame, 0.8, 5, others=others, grids=grids, widest=2, most=30)
    spent = synopsis.guarantee
    assert 0.8 - 1e-6 < float(spent.epsilon) <= 0.8
    counted = [s for s in spent.steps if s.label.startswith("counts of")]
    assert len(counted) == len(synopsis.others)
    assert (len(counted) > 0) == (others > 0)
    part = sum(s.loss for s in spent.steps if s.label.startswith(("counts of", "classes")))
    assert part == pytest.approx(others * 0.8 * NANO, abs=100)
    assert Synopsis.from_dict(synopsis.to_dict()).synthetic.equals(synopsis.synthetic)


@pytest.mark.parametrize("rows", [5, 50_000], ids=["together", "by class"])
@pytest.mark.parametrize("others", [0.1, 0.9])
def test_nobody_loses_more_than_was_charged(others, rows):
    """A record missing from tiny tables, under the same answers: each call within its charge."""
    largest = 0.0
    for seed in range(3):
        frame = table(9, seed)

        def run(private, source):
            how = {"others": others, "grids": 1, "most": 20, "widest": 1, "rows": rows, "cells": 0.001}
            made = PrivPfC(epsilon=3, target="rent", **how).fit(private, schema=SCHEMA, source=source).synopsis
            assert {o.by_class for o in made.others} == ({True} if rows > 5 else {False})
            return made.guarantee.nano

        found = replay(run, frame, frame.drop(index=seed).reset_index(drop=True), source=seed)
        assert found.same_output
        assert all(pair.loss <= pair.charged for pair in found.calls)
        largest = max(largest, found.loss / found.published[0])
    assert largest > 0.9 * others


def test_with_budgets_everybody_pays_their_own_share():
    frame = table(3000).assign(epsilon=np.resize([0.1, 0.5, 2.0], 3000))
    budgets = PersonBudgets.of(frame["epsilon"])
    opened = sf.tables.open(frame, schema=SCHEMA, budgets=sf.Roster.column("epsilon"))
    synopsis = PrivPfC(budgets=budgets, target="rent").fit(opened, source=Seeded(6)).synopsis
    assert (synopsis.guarantee.people <= budgets.levels).all()
    assert (synopsis.guarantee.people >= 0.99 * budgets.levels).all()
    assert synopsis.others


def test_more_than_four_classes_are_counted_together():
    frame = table(3000)
    synopsis = PrivPfC(epsilon=1, target="job").fit(frame, schema=SCHEMA, source=Seeded(7)).synopsis
    assert {len(other.noisy) for other in synopsis.others} == {1}
    assert len(synopsis.sample(100)) == 100


def test_a_share_that_is_none_is_refused():
    for wrong in (-0.1, 0.95):
        with pytest.raises(InputError, match="share of the budget"):
            PrivPfC(epsilon=1, target="rent", others=wrong)
    with pytest.raises(InputError, match="too small"):
        released(table(50), 1e-6, 0)


# --- unfolding ----------------------------------------------------------------------------------------------------------


def test_unfolded_shares_beat_the_counts_where_noise_is_large_and_equal_them_where_it_is_not():
    draw = np.random.default_rng(1)
    levels = Levels.numeric("x", np.arange(33))
    for shape in (np.full(32, 1 / 32), np.r_[0.9, np.full(31, 0.1 / 31)]):
        raw, made = [], []
        for _ in range(60):
            noisy = np.rint(1000 * shape + draw.laplace(0, 40, 32)).astype(np.int64)
            clipped = np.maximum(noisy, 0)
            raw.append(np.abs(clipped / clipped.sum() - shape).sum())
            made.append(np.abs(unfolded(noisy, widths(levels), levels, total=1000, variance=3200) - shape).sum())
        assert np.mean(made) < 0.75 * np.mean(raw)
    exact = unfolded(np.arange(32) * 1000, widths(levels), levels, total=496_000, variance=2)
    assert exact == pytest.approx(np.arange(32) / 496, abs=1e-4)


# --- purpose ------------------------------------------------------------------------------------------------------------


def test_the_purpose_decides_what_is_taken():
    asked = {"schema": SCHEMA, "target": "rent", "epsilon": 1.0}
    assert preview_synthesize(**asked)[0].mechanism == "privpfc"
    assert preview_synthesize(**asked, purpose="general")[0].mechanism == PrivMarginals.mechanism
    with pytest.raises(InputError, match="'classification' or 'general'"):
        preview_synthesize(**asked, purpose="fun")
    opened = sf.open(table(500), schema=SCHEMA, epsilon=4, rows=500, noise=Seeded(1))
    assert opened.synthesize(target="rent", epsilon=1).mechanism == "privpfc"
    assert opened.synthesize(target="rent", epsilon=1, purpose="general").mechanism == "marginals"
    with pytest.raises(InputError, match="one of 'classification', 'general'"):
        opened.synthesize(target="rent", epsilon=1, purpose="shape")
