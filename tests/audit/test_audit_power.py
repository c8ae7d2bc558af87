"""Every case states the smallest deficit of noise that it catches, and catches it.

Cases of every kind are tried here with 15% too little noise; ``sfumato audit all --deficit 0.15`` tries all of them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.audit import AuditCase, TranscriptCase, Weaker, audit
from sfumato.audit.evidence import ALTERNATIVES, DEFICITS, ONE, RHO, Evidence
from sfumato.audit.transcripts import transcript_case
from sfumato.privacy import NANO, Meter, Seeded
from sfumato.privacy.calls import Call
from sfumato.privacy.partition import least_cost
from sfumato.testing import Tape
from sfumato.testing.likelihood import cut_probability, cuts, log_probability

QUICK = [
    "attributes-overall",
    "attributes-stream",
    "classifier-majority",
    "classifier-naive-bayes",
    "grid-choice",
    "histogram-ahp",
    "histogram-dpa",
    "histogram-hierarchical",
    "histogram-partition",
    "histogram-sdpa",
    "laplace-histogram",
    "people-histogram-2-rows-strict",
    "people-mean-partition-strict",
    "privpfc",
    "table-margins",
    "top-counts",
    "top-flip",
    "weighted-count-strict",
]


@pytest.mark.parametrize("name", QUICK)
def test_fifteen_percent_too_little_noise_is_caught(name):
    result = audit(name, source=Weaker(0.15))
    if not result.caught:  # 99 of 100 audits catch it; a case without power never does
        result = audit(name, source=Weaker(0.15))
    assert result.caught, result.summary


@pytest.mark.parametrize(
    "name", ["histogram-ahp", "people-histogram-strict", "classifier-naive-bayes", "weighted-count-open"]
)
def test_the_stated_power_is_part_of_the_result(name):
    result = audit(name, trials=20_000, power=True)
    assert 0 < result.deficit <= 0.15
    assert result.reached is None or result.reached >= 0.85
    assert result.to_dict()["smallest_deficit_caught"] == round(result.deficit, 4)
    assert "too little noise would show" in result.summary


def counted(table, meter):
    return [meter.laplace([table] + [0] * 24, rate=NANO // 10)]


def test_stated_deficits_are_caught_and_the_right_noise_is_not():
    """What the evidence states, by simulation: it is caught nearly always, and no deficit at all is found hardly ever."""
    honest = transcript_case("count", counted, (1, 0), "one person")
    caught = sum(audit(honest, source=Weaker(0.15, Seeded(i))).caught for i in range(30))
    assert caught >= stats.binom.ppf(1e-6, 30, 0.97)
    assert not any(audit(honest, trials=3000, source=Seeded(i)).caught for i in range(20))


def test_a_price_that_is_too_low_is_caught_at_once():
    honest = transcript_case("count", counted, (1, 0), "one person")
    lie = TranscriptCase("lie", int(0.99 * honest.claimed), counted, (1, 0), "one person")
    assert audit(lie, trials=1000, source=Seeded(0)).caught
    twice = TranscriptCase("twice", honest.claimed, counted, (2, 0), "two people")
    assert audit(twice, trials=1000, source=Seeded(0)).caught


def test_a_pair_that_moves_nothing_states_that_it_sees_nothing():
    blind = TranscriptCase("blind", NANO // 10, counted, (1, 1), "the same table")
    result = audit(blind, trials=3000, source=Seeded(0))
    assert not result.caught
    assert result.reached == 0
    unseen = AuditCase("unseen", NANO, lambda w, n, s: Meter(source=s).laplace(np.zeros(n, dtype=int), rate=NANO), "")
    assert audit(unseen, trials=5000, source=Seeded(0), power=True).deficit == 1


def test_a_sample_is_seen_through_the_chance_to_be_in_it():
    whole = TranscriptCase("in a sample", NANO, counted, (1, 0), "", kept=1.0)
    half = TranscriptCase("in a sample", NANO, counted, (1, 0), "", kept=0.5)
    (one, most, _), (less, seen, _) = whole.run(0, Seeded(1)), half.run(0, Seeded(1))
    assert most == pytest.approx(0.1)
    assert seen == pytest.approx(math.log1p(0.5 * math.expm1(0.1)))
    assert less == pytest.approx(math.log1p(0.5 * math.expm1(one)))


# --- the evidence -------------------------------------------------------------------------------------------------------


def calls_of(kind, size, source):
    tape = Tape(source)
    for _ in range(size):
        meter = Meter(source=tape)
        match kind:
            case "laplace":
                meter.laplace([0, 0], rate=[NANO // 3, 2 * NANO])
            case "choice":
                meter.choose([0.0, 1.0, 3.0], rate=NANO // 2)
            case "partition":
                meter.partition([0, 1, 0], [1, 2, 2], [0, 0, 1], rate=[NANO, NANO, NANO // 2], moves=[0, 0, 1])
    return tape.calls


@pytest.mark.parametrize("kind", ["laplace", "choice", "partition"])
def test_expected_evidence_is_what_comes(kind):
    """Mean and variance of the log-ratio under a deficit, against runs with that very deficit."""
    where = list(ALTERNATIVES).index(24)
    rho, size = float(RHO[ONE + 24]), 2000
    single = Evidence()
    single.add(calls_of(kind, 1, Seeded(0))[0])
    found = []
    for call in calls_of(kind, size, Weaker(float(DEFICITS[where]), Seeded(7))):
        evidence = Evidence()
        evidence.add(call)
        found.append(evidence._likelihood[ONE + 24] - evidence._likelihood[ONE])
    assert rho > 1.5
    spread = math.sqrt(single._variance[where])
    assert abs(np.mean(found) - single._mean[where]) < 4.5 * spread / math.sqrt(size)
    assert np.std(found) == pytest.approx(spread, rel=0.15)


def test_the_evidence_of_a_choice_is_that_of_its_probabilities():
    scores = [3.0, 1.0, 2.5, -1.0, 3.0]
    evidence = Evidence()
    evidence.add(Call("choice", np.array(scores), {"rate": NANO}, answer=2))
    for k in (0, ONE, ONE + 30):
        assert evidence._likelihood[k] == pytest.approx(log_probability(scores, NANO * float(RHO[k]), 2), abs=1e-9)


@pytest.mark.parametrize(
    ("starts", "stops", "costs"), [([0, 1, 0], [1, 2, 2], [2, 1, 4]), ([0, 0, 2, 1], [1, 2, 3, 3], [0, 2, 1, 0])]
)
def test_the_probability_of_a_cut_is_that_of_the_mechanism(starts, stops, costs):
    rates = np.full(len(starts), NANO // 2)
    call = Call("partition", None, {"starts": np.array(starts), "stops": np.array(stops), "rate": rates})
    rng = np.random.default_rng(3)
    noise = rng.geometric(1 - np.exp(-0.5), size=(20_000, len(starts))) - 1
    drawn = [tuple(least_cost(np.array(starts), np.array(stops), np.array(costs) - g).tolist()) for g in noise]
    share = np.mean([d == cuts(call)[0] for d in drawn])
    assert abs(share - cut_probability(call, np.array(costs))) < 4.5 * math.sqrt(0.25 / 20_000)


def test_the_bound_on_the_size_of_the_noise_is_honest():
    above = 0
    for seed in range(20):
        evidence = Evidence()
        for call in calls_of("laplace", 200, Seeded(seed)):
            evidence.add(call)
        above += evidence.bound(0.9) > 1
    assert above <= stats.binom.ppf(1 - 1e-6, 20, 0.1)
