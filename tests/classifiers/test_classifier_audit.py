"""The audit of whole fits: nothing above the claims, the pairs have power, and broken versions are caught."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato import classifiers
from sfumato.audit.cases_classifiers import SIDES, TIED, estimator, pair_of
from sfumato.audit.harness import audit
from sfumato.audit.registry import case, names
from sfumato.audit.transcripts import TranscriptCase, transcript_case
from sfumato.privacy import NANO, Seeded
from sfumato.tables import Categorical, Schema
from sfumato.testing import reveal

RIVALS = [
    "diffgen",
    "pph",
    "privbayes",
    "privbayes-binary",
    "privbayes-gray",
    "privpfc-estimator",
    "privpfc-two-grids",
    "uniform-grid",
]
WHOLE = [*RIVALS, *(n for n in names() if n.startswith("classifier-"))]
TWO = Schema({"side": Categorical(["left", "right"]), "ill": Categorical(["no", "yes"])})


@pytest.mark.parametrize("name", WHOLE)
def test_no_draw_tells_more_than_is_claimed(name):
    """The number of a draw is a log-likelihood ratio: not one may exceed the claim, and some must come near it."""
    subject = case(name)
    if isinstance(subject, TranscriptCase):
        runs = [subject.run(i % 2, Seeded(i), draws=subject.draws) for i in range(40)]
        ratios = np.array([ratio for ratio, _, _ in runs])
        assert max(most for _, most, _ in runs) <= subject.claimed / NANO + 1e-6
    else:
        ratios = np.concatenate([subject.draw(which, 20, Seeded(12)) for which in (0, 1)])
    assert np.abs(ratios).max() <= subject.claimed / NANO + 1e-5
    assert np.abs(ratios).max() >= 0.4 * subject.claimed / NANO


def test_every_estimator_has_a_case():
    stated = {n.removeprefix("classifier-") for n in names() if n.startswith("classifier-")}
    of = {
        "AutoClassifier": "auto",
        "FunctionalMechanism": "functional",
        "HistogramClassifier": "histogram",
        "Majority": "majority",
        "OutputPerturbation": "output-perturbation",
        "PrivGene": "gene",
        "PrivLocal": "local",
        "PrivateAdditive": "additive",
        "PrivateDecisionTree": "tree",
        "PrivateForest": "forest",
        "PrivateLogisticRegression": "logistic",
        "PrivateNaiveBayes": "naive-bayes",
        "PrivateSVM": "svm",
    }
    # A search is fits and a choice: both are audited.
    assert set(classifiers.__all__) - {"PrivateSearch"} == set(of)
    assert set(of.values()) <= stated


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier-majority", "uniform-grid"])
def test_a_claim_that_is_half_of_the_truth_is_caught(name):
    honest = case(name)
    lie = replace(honest, name="lie", claimed=honest.claimed // 2)
    assert audit(lie, trials=2000, source=Seeded(5)).caught


@pytest.mark.slow
def test_trees_that_share_records_are_caught():
    assert audit("control-overlapping-trees", trials=2000, source=Seeded(1)).caught


def test_data_used_outside_the_meter_is_caught():
    class Leaky(classifiers.Majority):
        def _train(self, records, meter):
            super()._train(records, meter)
            self.log_counts_ = self.log_counts_ + (len(reveal(records).classes) > 2)

    leaky = transcript_case("leaky", estimator(lambda: Leaky(epsilon=1), TWO), pair_of(TWO, SIDES), "")
    assert audit(leaky, trials=1000, source=Seeded(1)).lower > 4


def test_another_question_to_the_neighbour_is_caught():
    def fit(table, meter):
        for _ in range(table):
            meter.laplace([1], rate=NANO)
        return []

    for pair, ratio in (((2, 1), math.inf), ((1, 2), math.inf), ((2, 2), 0.0)):
        asked = TranscriptCase("asked", NANO, fit, pair, "")
        assert asked.run(0, Seeded(0))[0] == ratio
        assert audit(asked, trials=1000, source=Seeded(0)).caught == (ratio > 0)


def test_the_tied_table_is_tied():
    """With the last record both splits classify equally many, without it the first one less."""
    full, less = pair_of(Schema({"a": TWO["side"], "b": TWO["side"], "ill": TWO["ill"]}), TIED)
    score = [[int(r.table(((j, 1),)).max(axis=0).sum()) for j in (0, 1)] for r in (full, less)]
    assert score[0][0] == score[0][1]
    assert score[1][0] == score[0][0] - 1
    assert score[1][1] == score[0][1]
