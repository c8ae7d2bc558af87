"""Whatever a mechanism asks for, a release is held to the price that was previewed and charged."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.offers import Offer
from sfumato.privacy import NANO, Charge, Exact, Seeded
from sfumato.privacy.terms import Terms
from sfumato.releases.pipeline import default_shares, run


def priced(asks):
    terms = Terms(rows_per_person=2).up_to(Charge(NANO))
    return SimpleNamespace(chosen=Offer("greedy", terms, None, "asks for more than it said", asks))


def test_a_call_beyond_the_price_is_refused_before_its_value_is_read():
    opened = []

    def greedy(dataset, meter):
        return meter.laplace(Exact.reading(lambda: opened.append(dataset) or [1], rows_per_person=2), rate=NANO // 2 + 1)

    with pytest.raises(BudgetError, match=r"asked ε 1\.000000002, 1 of 1 left"):
        run(priced(greedy), "the table", source=Seeded(0))
    assert opened == []


def test_a_price_that_was_passed_all_the_same_is_not_published():
    def around(_, meter):
        meter._account.limits.nano[:] = 10 * NANO
        return meter.laplace([1], rate=NANO)

    with pytest.raises(SfumatoError, match="cost more than its price"):
        run(priced(around), None, source=Seeded(0))


def test_a_call_within_the_price_is_answered():
    assert run(priced(lambda _, meter: meter.laplace([1], rate=NANO // 2)), None, source=Seeded(0)).shape == (1,)


@pytest.mark.parametrize(("shares", "said"), [(("0.7", "0.4"), "add up to 1.1"), (("1", None), "nothing is left")])
def test_everyone_has_one_budget_to_share(shares, said):
    asked = [SimpleNamespace(name=str(s), epsilon=None, share=None if s is None else Fraction(s)) for s in shares]
    with pytest.raises(InputError, match=said):
        default_shares(tuple(asked), personal=True)
    assert default_shares(tuple(asked), personal=False) == tuple(asked)
