"""DPA and SDPA: the slides' formulas, the honest price, and the published form caught by its own output."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.audit.harness import audit
from sfumato.bench.histograms_published import published
from sfumato.errors import InputError, PrivacyError
from sfumato.histograms import release_histogram
from sfumato.histograms.mechanisms.dynamic import dpa_shares, published_cost, sdpa_shares
from sfumato.privacy import NANO, Meter, Seeded


def test_shares_are_those_of_the_slides():
    assert sdpa_shares(5).round(3).tolist() == [0.333, 0.267, 0.2, 0.133, 0.067]
    assert dpa_shares(5, 0.0).round(3).tolist() == [0.2] * 5
    assert dpa_shares(5, 0.5).round(3).tolist() == [0.267, 0.233, 0.2, 0.167, 0.133]
    assert np.allclose(dpa_shares(5, 1.0), sdpa_shares(5))


@pytest.mark.parametrize("n", [4, 5, 40, 41, 1000])
def test_the_published_cost_is_the_largest_bin_budget(n):
    assert published_cost(sdpa_shares(n)) == pytest.approx(2 * n / (n + 1))
    for delta in (0.025, 0.075, 0.5):
        assert published_cost(dpa_shares(n, delta)) == pytest.approx(1 + delta * (n - 1) / (2 * -(-n // 2)))


@pytest.mark.parametrize("name", ["dpa", "sdpa"])
def test_the_largest_bin_budget_is_what_was_asked_and_charged(name):
    h = release_histogram(np.arange(20), epsilon=0.5, bins=20, meter=Meter(), mechanism=name, order=np.arange(20)[::-1])
    assert h.guarantee.nano <= NANO // 2
    assert NANO // 2 * 85 // 100 <= h.bin_losses[19] <= NANO // 2  # a cluster is measured at its smallest budget
    assert h.bin_losses[0] < h.bin_losses[10] < h.bin_losses[19]


def test_an_order_from_the_counts_is_refused_with_the_reason():
    with pytest.raises(PrivacyError, match="noise scale depend on the data"):
        release_histogram(np.arange(20), epsilon=0.5, bins=20, meter=Meter(), mechanism="dpa", order="counts")
    with pytest.raises(InputError, match="each of the 20 bin positions once"):
        release_histogram(np.arange(20), epsilon=0.5, bins=20, meter=Meter(), mechanism="sdpa", order=np.zeros(20, int))


def test_the_published_form_is_refused_for_a_release():
    with pytest.raises(PrivacyError, match="rank of its true count"):
        published(np.arange(5), epsilon=1, shares=sdpa_shares(5), meter=Meter())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dpa", "sdpa"])
def test_the_published_form_is_caught_and_the_sound_one_is_not(name):
    caught = audit(f"control-{name}-published", trials=4000, source=Seeded(2017))
    assert caught.lower > float(caught.claimed)
    sound = audit(f"histogram-{name}", trials=1500, source=Seeded(2017))
    assert sound.lower <= float(sound.claimed)
