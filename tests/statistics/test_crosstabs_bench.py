"""The bench of tables and lists measures what it says."""

import numpy as np
import pytest

from sfumato.bench import statistics_crosstabs as bench


def test_tables_are_compared_at_the_same_price(tmp_path):
    table = bench.made((2, 12), 0)
    assert table.sum() == 20_000
    row = bench.compared(table, 0.1, 12)
    for name in ("margins", "cells"):
        assert row["error"][name] == pytest.approx(row["previewed"][name], rel=0.5)
    assert row["error"]["separate"] == pytest.approx(np.sqrt(2) * 3 / 0.1, rel=0.3)  # three margins at ε / 3 each
    lists = [bench.listed(k, 4) for k in (1, 5)]
    claims = bench.claims([{"set": "made", "epsilon": 0.1, **row}], lists, 1.0)
    assert all(isinstance(c["holds"], bool | np.bool_) for c in claims)
    found = bench.plots(tmp_path, {"tables": [{"set": "made", "epsilon": 0.1, **row}]})
    assert all(path.stat().st_size > 5000 for path in found)


def test_a_claim_that_does_not_hold_says_so():
    assert not bench._claim("too large", 2.0, 1.0)["holds"]
