"""The contrast-marginals experiment: what one record can change, the maximum-entropy model, the price."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sfumato.bench import grids_contrast as contrast
from sfumato.bench.grids_contrast_model import Marginal, bucketed, fit, rejoined, tilt
from sfumato.bench.grids_data import encode
from sfumato.grids.search.pool import enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import Meter, Seeded
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import NANO
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from support import grids as helpers

random_records = helpers.random_records

TINY = (Levels.flat("a", ["x", "y"]), Levels.tree("b", {"p": ["1", "2"], "q": ["3"]}))


def model_of(records: Records, grids, deviation=1e-3):
    marginals = [Marginal(g, records.table(g).reshape(len(records.class_labels), -1), deviation) for g in grids]
    return fit(records.taxonomies, records.total, marginals)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_record_moves_every_score_within_the_price_of_the_choice(classes):
    """All records that can join tiny tables, under a published model: score differences stay within 64 spreads."""
    rng = np.random.default_rng(0)
    labels = tuple(map(str, range(classes)))
    pool = enumerate_grids(TINY, most=100, cells=100)
    widest = 0.0
    for trial in range(30):
        n = int(rng.integers(1, 12))
        leaves = np.column_stack([rng.integers(2, size=n), rng.integers(3, size=n)])
        records = Records(TINY, leaves, rng.integers(classes, size=n), labels)
        model = model_of(records, [((0, 1),), ((1, 2),)] if trial % 2 else [((0, 1), (1, 1))], deviation=0.5)
        quality = Quality.of(int(rng.integers(10**5, 10**8)))
        for a, b, c in itertools.product(range(2), range(3), range(classes)):
            more = Records(TINY, np.vstack([leaves, [a, b]]), np.append(records.classes, c), labels)
            before, after = (
                score_pool(contrast.reweighted(r, contrast.coin_toss_weights(model, r)), pool, quality)
                for r in (records, more)
            )
            change = after - before
            assert contrast.UNIT * quality.low <= change.min()
            assert change.max() <= contrast.UNIT * quality.high
            widest = max(widest, float(np.ptp(change)) / contrast.UNIT)
    assert widest > 0.4  # records of full weight did occur: the bound is not kept by weights of nothing


def test_a_row_is_a_coin_toss_to_the_model_once_its_records_are_weighed():
    records = random_records(np.random.default_rng(1), 400)
    model = model_of(records, [((0, 1), (1, 1))])
    weights = contrast.coin_toss_weights(model, records)
    assert weights.min() >= 0
    assert weights.max() == contrast.UNIT
    flipped = contrast.coin_toss_weights(model, replace(records, classes=1 - records.classes))
    posterior = model.posterior(records.leaves)
    own = posterior[np.arange(400), records.classes]
    assert np.allclose(own * weights, (1 - own) * flipped, atol=0.6)  # half a unit of rounding


def test_the_model_keeps_noise_free_marginals_that_overlap():
    records = random_records(np.random.default_rng(2), 3000)
    grids = [((0, 2), (1, 2)), ((1, 1), (3, 2)), ((2, 1),)]
    model = model_of(records, grids)
    assert sorted(p.attributes for p in model.parts) == [(0, 1, 3), (2,)]
    nodes, classes = model.draw(300_000, np.random.default_rng(3))
    level = {0: 2, 1: 2, 3: 2, 2: 1}
    for grid in grids:
        code = classes.copy()
        for j, v in grid:
            t = records.taxonomies[j]
            code = code * t.sizes[v] + t.maps[v][t.starts[level[j]]][nodes[j]]
        table = records.table(grid)
        drawn = np.bincount(code, minlength=table.size) / 100
        assert np.abs(drawn - table.reshape(-1)).max() < 15


def test_joining_undoes_evidence_counted_twice():
    """Two columns that say the same: independent given the class they count double, joined they do not."""
    rng = np.random.default_rng(4)
    taxonomies = (Levels.flat("a", ["x", "y"]), Levels.flat("b", ["x", "y"]))
    a = rng.integers(2, size=20_000)
    records = Records(taxonomies, np.column_stack([a, a]), (rng.random(20_000) < 0.2 + 0.6 * a).astype(int), ("0", "1"))
    model = model_of(records, [((0, 1),), ((1, 1),)])
    row = np.array([[1, 1]])
    assert model.posterior(row)[0, 1] > 0.92
    coarse = bucketed(model, 4)
    counts = np.bincount(records.classes * 4 + coarse.scores(records.leaves), minlength=8)
    assert rejoined(coarse, 20_000, counts, 1e-3).posterior(row)[0, 1] == pytest.approx(0.8, abs=0.02)


def test_tilt_meets_what_was_measured_and_survives_noise_below_zero():
    expected = np.array([1e-3, 5.0, 1e5, 2e5, 100.0])
    measured = np.array([4000.0, -300.0, 3.0, -200.0, 100.0])
    delta = tilt(expected, measured, pull=7.0)
    assert np.allclose(expected * np.exp(delta) + 7.0 * delta, measured, atol=1e-3)
    assert tilt(expected, np.full(5, -1e9), pull=7.0).tolist() == [-60.0] * 5  # as good as nothing
    assert delta[-1] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("classes", "weighted"), [(2, False), (3, True)])
def test_a_release_spends_its_budget_and_no_more(classes, weighted):
    records = random_records(np.random.default_rng(5), 2000, classes=classes, weighted=weighted)

    class Public:
        taxonomies = records.taxonomies

    Public.classes = classes
    nano = NANO // 2
    meter = Meter(limit=Charge(nano), source=Seeded(6))
    model = contrast.contrast_marginals(records, Public(), meter, nano=nano, size=2000)
    assert nano - 4 * contrast.UNIT <= meter.spent().total <= nano  # the choices are priced in whole units
    assert [s.mechanism for s in meter.guarantee().steps] == ["choice", "laplace"] * 3 + ["laplace"]
    posterior = model.posterior(records.leaves)
    assert np.isfinite(posterior).all()
    assert np.allclose(posterior.sum(axis=1), 1)
    table = contrast.learned_from(model, records.leaves, 500, np.random.default_rng(7))
    assert table.weights.sum() == 500
    assert (table.test < np.array(table.sizes)).all()


def test_parts_stay_small_and_the_root_grid_stays_in_the_pool(monkeypatch):
    records = random_records(np.random.default_rng(8), 10)
    pool = enumerate_grids(records.taxonomies, most=500, cells=1000, widest=2)
    monkeypatch.setattr(contrast, "_MOST_CELLS", 60)
    fitting = contrast.small_enough(pool, records.taxonomies, [((0, 3), (1, 2))])
    grids = [tuple(sorted(fitting.grid(i))) for i in range(fitting.size)]
    assert () in grids
    assert ((2, 1), (3, 3)) in grids  # a part of its own
    assert ((1, 1), (3, 3)) not in grids  # tied to the first, 8 x 4 x 5 cells
    assert len(grids) == len(set(grids)) < pool.size


def test_the_comparison_is_on_the_same_splits_and_finds_what_is_there():
    case = encode("small", helpers.frame(4000), helpers.schema(), "ill")
    found = contrast.compare(case, (2.0,), repeats=2)["2.0"]
    assert found["difference"] == pytest.approx(found["contrast"] - found["privpfc"], abs=2e-4)
    majority = np.bincount(case.records.classes).max() / len(case.records.classes)
    assert max(found["contrast"], found["privpfc"]) < 0.75 * (1 - majority)
    assert contrast.run()["figures"] == {}
