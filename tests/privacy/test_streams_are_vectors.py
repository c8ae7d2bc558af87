"""A paid stream gives one vector at a time: a matrix would be several sums for the price of one."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.privacy import Exact, Meter, Seeded
from sfumato.privacy.items import laplace_shares


@pytest.mark.parametrize(
    "values", [np.zeros((3, 2), dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(3, dtype=np.int64)]
)
def test_only_one_sum_for_each_rate(values):
    meter = Meter(neighbours="item", source=Seeded(0))
    draw = laplace_shares(meter, rate=np.array([10**8] * 2), touches=np.array([[1, 1]]), why="each item is in one sum")
    assert draw(Exact(np.array([5, 7])), 1).shape == (2,)
    with pytest.raises(InputError, match="one vector of 2 sums"):
        draw(Exact(values), 1)
