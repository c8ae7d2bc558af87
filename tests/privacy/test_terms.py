"""A Meter that is made under terms is held to every one of them."""

import numpy as np
import pytest

from sfumato.errors import BudgetError
from sfumato.privacy import Charge, Meter, PersonBudgets, Seeded
from sfumato.privacy.terms import Terms

BUDGETS = PersonBudgets.from_tiers({"strict": (0.1, 4), "open": (1, 2)})
GRANTED = np.array([2 * 10**8, 3 * 10**9])
TERMS = Terms(
    person="patient",
    rows_per_person=3,
    neighbours="replacement",
    limit=Charge.of_people([60, 600]),
    budgets=BUDGETS,
    granted=GRANTED,
    attributes=("age",),
)


def test_prices_know_rows_and_neighbours():
    meter = Meter.under(TERMS, source=Seeded(0))
    meter.laplace([5], rate=[1], weights=[10, 100], attributes=["age"], label="sum")
    assert meter.spent().people.tolist() == [60, 600]
    assert meter.spent().attributes == {"age": 600}
    promise = meter.guarantee()
    assert (promise.rows_per_person, promise.neighbours) == (3, "replacement")
    assert [row["granted"] for row in promise.groups.to_list()] == ["0.2", "3"]


@pytest.mark.parametrize("weights", [[11, 100], [10, 101]])
def test_the_limit_holds_for_every_group(weights):
    with pytest.raises(BudgetError):
        Meter.under(TERMS, source=Seeded(0)).laplace([5], rate=1, weights=weights)


def test_budgets_are_limits_without_a_limit():
    with pytest.raises(BudgetError, match="strict"):
        Meter.under(TERMS.up_to(None, budgets=BUDGETS), source=Seeded(0)).laplace([5], rate=10**8 // 6 + 1)
