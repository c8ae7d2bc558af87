"""The audit finds nothing above the claims of the grids, and its pair of neighbours is the worst for the choice."""

import numpy as np
import pytest

from sfumato.audit.cases_grids import _fixed, _pool, _table
from sfumato.audit.harness import audit
from sfumato.grids.search.dependence import F_SPREAD
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import NANO, Seeded
from sfumato.privacy.losses import choice_rate


@pytest.mark.parametrize(("name", "trials"), [("grid-choice", 2_000), ("privbayes-choice", 2_000), ("privpfc", 1_000)])
def test_audit_does_not_refute_the_claim(name, trials):
    assert not audit(name, trials=trials, source=Seeded(5)).caught


def test_the_pair_loses_exactly_what_is_claimed():
    quality = Quality.of(NANO)
    eta = choice_rate(NANO, quality.spread) / NANO
    # Of two candidates the worse one, behind by g, wins with probability e^(-g)/2: the loss is the change of g.
    gaps = [eta * (scores[1] - scores[0]) for scores in (score_pool(_table(w), _pool(), quality) for w in (0, 1))]
    assert min(gaps) > 0
    assert abs(gaps[0] - gaps[1]) == pytest.approx(1.0, abs=1e-6)
    assert abs(gaps[0] - gaps[1]) <= 1.0 + 1e-12


def test_the_pair_for_parents_moves_two_scores_apart_by_the_whole_spread():
    with_record, without = np.array(_fixed(0)), np.array(_fixed(1))
    assert np.ptp(with_record - without) == F_SPREAD
