"""The released object, its domain, groups and preview."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, PrivacyError, SchemaError
from sfumato.histograms import Axis, Bins, preview_histogram, release_histogram, release_histograms
from sfumato.privacy import NANO, Charge, Exact, Meter, Seeded
from sfumato.registry import mechanisms

NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]

GRID = Bins((Axis.categories("sex", ["f", "m"]), Axis.numbers("age", [0, 18, 65, 120])))
COUNTS = np.array([[10, 200, 30], [20, 100, 40]])


def exact(**more):
    """A release with so much budget that its counts are the true ones."""
    return release_histogram(COUNTS, epsilon=200, bins=GRID, meter=Meter(), mechanism="identity", **more)


def test_answers():
    h = exact()
    assert h.counts.tolist() == COUNTS.tolist()
    assert h.box(age=(18, None)).value == 370
    assert h.box(sex=(0, 1), age=(18, 65)).value == 200
    assert h.box(age=(18, 65)).interval() == (300, 300)
    assert h.distribution().sum() == pytest.approx(1)
    assert h.select(COUNTS > 50).value == 300
    with pytest.raises(InputError, match="inside a bin of 'age'"):
        h.box(age=(20, None))
    with pytest.raises(InputError, match="2 columns"):
        h.range(0, 1)
    with pytest.raises(InputError, match="no column 'weight'"):
        h.box(weight=(0, 1))


def test_consistency_is_free_and_right():
    h = release_histogram([3, 0, 9, 1], epsilon=0.3, bins=4, meter=Meter(source=Seeded(4)), mechanism="identity")
    fixed = h.consistent(total=13)
    assert fixed.counts.min() >= 0
    assert fixed.counts.sum() == pytest.approx(13)
    assert fixed.guarantee is h.guarantee
    assert h.consistent(nonnegative=False, total=13).counts.sum() == pytest.approx(13)
    assert h.consistent().counts.tolist() == np.maximum(h.counts, 0).tolist()
    assert h.consistent(total=0).counts.tolist() == [0, 0, 0, 0]


def test_forms():
    h = exact()
    frame = h.to_frame()
    assert frame["count"].tolist() == COUNTS.reshape(-1).tolist()
    assert frame.columns[:2].tolist() == ["sex", "age"]
    back = json.loads(json.dumps(h.to_dict()))
    assert back["counts"] == COUNTS.tolist()
    assert back["guarantee"]["private"] is True


@pytest.mark.parametrize("bins", [6, 300])
def test_plot_draws_counts_and_the_noise_band(bins):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    h = release_histogram(np.arange(bins), epsilon=1, bins=bins, meter=Meter(source=Seeded(1)), mechanism="identity")
    ax = h.plot()
    assert ax.get_ylabel() == "records"
    assert "noise" in " ".join(t.get_text() for t in ax.get_legend().get_texts())
    assert "NOT PRIVATE" in ax.get_title()
    plt.close(ax.figure)


def test_domains_are_public_and_checked():
    with pytest.raises(SchemaError, match="no bins"):
        Axis.categories("sex", [])
    with pytest.raises(SchemaError, match="must increase"):
        Axis.numbers("age", [0, 0, 1])
    with pytest.raises(SchemaError, match="different names"):
        Bins((Axis.categories("a", ["x"]), Axis.categories("a", ["y"])))
    with pytest.raises(InputError, match="meaningful order"):
        release_histogram([1, 2], epsilon=1, bins=Bins.numbered(2, ordered=False), meter=Meter(), mechanism="dawa")
    with pytest.raises(InputError, match="no mechanism 'magic' for histogram"):
        release_histogram([1, 2], epsilon=1, bins=2, meter=Meter(), mechanism="magic")
    with pytest.raises(InputError, match="3 bin budgets for 2 bins"):
        release_histogram([1, 2], epsilon=1, bins=2, meter=Meter(), bin_budgets=[1, 1, 1])


def test_nothing_is_read_before_the_price_is_accepted():
    def private():
        raise AssertionError("read")

    meter = Meter(limit=Charge.of(0.001))
    for name in NAMES:
        with pytest.raises(BudgetError):
            release_histogram(private, epsilon=1, bins=600, meter=meter, mechanism=name)


@pytest.mark.parametrize("purpose", ["shape", "ranges"])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_every_option_of_the_preview_runs_within_its_charge(purpose, neighbours):
    options = preview_histogram(epsilon=0.7, bins=520, purpose=purpose, rows_per_person=3, neighbours=neighbours)
    assert options[0].mechanism.startswith("auto")
    counts = np.arange(520) % 7
    for option in options:
        meter = Meter(limit=option.charge, rows_per_person=3, neighbours=neighbours, source=Seeded(2))
        made = option.run(Exact(counts), meter)
        least = 0.8 if option.mechanism in ("dpa", "sdpa") else 0.9  # clusters over bins of unequal budgets
        assert least * option.charge.total <= made.guarantee.nano <= option.charge.total <= 0.7 * NANO
        assert made.bin_losses.max() <= option.charge.total
        assert made.counts.shape == (520,)


def test_preview_of_unordered_bins_and_bad_requests():
    names = [o.mechanism for o in preview_histogram(epsilon=1, bins=9, ordered=False)]
    assert names[0] == "geb"
    assert not set(names) & {"dawa", "hierarchical", "covariate", "noisefirst"}
    with pytest.raises(InputError, match="ranges need bins"):
        preview_histogram(epsilon=1, bins=9, ordered=False, purpose="ranges")
    with pytest.raises(InputError, match="'shape' or 'ranges'"):
        preview_histogram(epsilon=1, bins=9, purpose="counts")
    with pytest.raises(InputError, match="greater than 0"):
        preview_histogram(epsilon=0, bins=9)


def test_groups_compose_in_parallel_only_where_they_are_disjoint():
    groups = {name: np.arange(12) for name in "abcd"}
    apart = release_histograms(groups, epsilon=1, bins=12, meter=Meter(), disjoint="each user has one home", mechanism="ahp")
    assert apart["a"].guarantee.nano <= NANO
    assert any("each user has one home" in a for a in apart["a"].guarantee.assumptions)
    together = release_histograms(groups, epsilon=1, bins=12, meter=Meter(), disjoint=None, mechanism="ahp")
    assert together["a"].guarantee.nano <= NANO
    assert together["a"].bin_losses.max() <= NANO  # a record may be in all four
    assert together["a"].measurements[0].rates.max() <= NANO // 4
    with pytest.raises(InputError, match="at least one group"):
        release_histograms({}, epsilon=1, bins=12, meter=Meter(), disjoint=None)


def test_items_are_not_people():
    with pytest.raises(PrivacyError, match="people's records"):
        release_histogram([1], epsilon=1, bins=1, meter=Meter(neighbours="item"))
