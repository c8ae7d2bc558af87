"""Fitting on a table and on its neighbour with equal answers gives, call by call, the exact privacy loss of that output."""

import pytest

from sfumato.testing import replay


def losses_of(make, tables, seed):
    """(loss, charged) of every noisy call for two neighbouring tables, and the total charge."""
    found = replay(lambda table, source: make(source).fit(*table).guarantee_.nano, *tables, source=seed)
    assert found.same_output
    return [(pair.loss, pair.charged) for pair in found.calls if pair.here.noisy], found.published[0]


@pytest.fixture
def exact_losses():
    return losses_of
