"""Where budgets are very many, mechanisms are compared on a rounded roster, and the one that is taken is planned exactly."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.offers import Facts, Request
from sfumato.people import rough_roster
from sfumato.people.offers import offers
from sfumato.privacy import PersonBudgets
from sfumato.tables import Numeric, Schema

SCHEMA = Schema({"age": Numeric(0, 99, bins=5, integer=True)})
ASKED = [
    Request("over 65", "count", where="age >= 65"),
    Request("over 65", "count", where="age >= 65", independent=True),
    Request("over 65", "count", mechanism="partition"),
    Request("ages", "sum", parameters={"column": "age"}),
    Request("ages", "mean", parameters={"column": "age"}),
    Request("ages", "histogram", parameters={"columns": ["age"]}),
]


@pytest.fixture(scope="module")
def facts():
    drawn = np.unique((np.random.default_rng(7).lognormal(-2, 1, 6_000) * 1e9).astype(np.int64))
    return Facts(SCHEMA, budgets=PersonBudgets(drawn, 1 + np.arange(drawn.size) % 3))


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.kind}-{r.mechanism}-{r.independent}")
def test_the_offer_that_is_taken_is_that_of_all_budgets(monkeypatch, facts, request_):
    exact = offers(request_, facts)
    monkeypatch.setattr(rough_roster, "MANY", 3_000)
    rough = offers(request_, facts)
    assert rough_roster.roughly(facts).budgets.groups <= rough_roster.CELLS
    assert rough[0].mechanism == exact[0].mechanism
    assert rough[0].charge.total == exact[0].charge.total
    np.testing.assert_array_equal(np.asarray(rough[0].charge.people), np.asarray(exact[0].charge.people))
    assert {o.mechanism for o in rough} == {o.mechanism for o in exact}


@pytest.mark.parametrize("request_", ASKED[:2], ids=["any", "independent"])
def test_errors_move_by_little(monkeypatch, facts, request_):
    exact = {o.mechanism: o.expected_rmse for o in offers(request_, facts)}
    monkeypatch.setattr(rough_roster, "MANY", 3_000)
    for offer in offers(request_, facts):
        assert offer.expected_rmse == pytest.approx(exact[offer.mechanism], rel=0.02), offer.mechanism


def test_few_budgets_tiers_and_noisy_counts_are_left_alone(facts):
    assert rough_roster.roughly(facts) is facts
    many = PersonBudgets(np.arange(1, 30_001), np.ones(30_000, dtype=np.int64))
    noisy = PersonBudgets(many.levels, many.counts, noise=np.ones(30_000))
    assert rough_roster.roughly(Facts(SCHEMA, budgets=noisy)).budgets is noisy
    assert rough_roster.roughly(Facts(SCHEMA, budgets=many)).budgets.people == many.people


def test_too_many_budgets_are_refused(monkeypatch, facts):
    monkeypatch.setitem(offers.__globals__, "MOST_BUDGETS", 100)
    with pytest.raises(Exception, match="round the budgets"):
        offers(ASKED[0], facts)
