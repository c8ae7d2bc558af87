"""Brute force on tiny rosters: no person's loss exceeds what they granted, whatever the data.

Linear mechanisms: what is handed to the noise is recorded for every data set and each of its neighbours; with discrete
Laplace noise the largest log-ratio of output probabilities is exactly Σ |difference| rate. Sampling and the exponential
mechanism: the whole output distribution is computed.
"""

from itertools import product

import numpy as np
import pytest

from sfumato.people import ArrayReader, PairReader, Question, plan_offer, preview_mean
from sfumato.people.mechanisms.sampling import keep_thresholds
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.privacy.noise import laplace
from sfumato.testing import Tape, compare, replay, reveal

BUDGETS = [0.05, 0.11, 0.11, 0.4, 0.9]
ROSTER = PersonBudgets.of(BUDGETS)
GROUPS = np.array([0, 1, 1, 2, 3])
LINEAR = {
    "affine": {},
    "minimum": {},
    "threshold": {},
    "stretching": {},
    "robust": {},
    "partition": {"parts": 3, "rounds": 3},
    "privacy-aware": {"parts": 3, "rounds": 4},
}


def _loss(first, second):
    """Largest log-ratio of all noisy sums together, in nano-ε. These plans ask the same whatever they were answered."""
    return sum(pair.loss for pair in compare(first, second))


@pytest.mark.parametrize("mechanism", LINEAR)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 3), (-2, 1)])
def test_linear_mechanisms(mechanism, low, high):
    option = plan_offer(Question(ROSTER, low=low, high=high), mechanism, **LINEAR[mechanism])

    def calls(x):
        tape = Tape(1)
        meter = Meter(limit=option.charge, budgets=ROSTER, source=tape)
        option.run(ArrayReader.of(GROUPS, np.array(x), low=low, high=high, group_count=4), meter)
        return tape, meter.spent().people

    ends = sorted({low, 0, high})
    seen = {x: calls(x) for x in product(ends, repeat=5)}
    worst = np.zeros(5, dtype=object)
    for x, (made, spent) in seen.items():
        assert (spent == option.charge.people).all()
        for person in range(5):
            neighbour = tuple(0 if u == person else v for u, v in enumerate(x))
            worst[person] = max(worst[person], _loss(made, seen[neighbour][0]))
    granted = ROSTER.levels[GROUPS]
    assert all(w <= g for w, g in zip(worst, granted, strict=True))
    # The charge is not only safe but exact: somebody's data attain it.
    assert worst.tolist() == option.charge.people[GROUPS].tolist()


def test_several_rows_per_person():
    question = Question(Terms(rows_per_person=3, budgets=ROSTER))
    option = plan_offer(question, "affine")
    rows = np.repeat(GROUPS, 3)

    def run(x, source):
        meter = Meter(limit=option.charge, budgets=ROSTER, rows_per_person=3, source=source)
        return option.run(ArrayReader.of(rows, x, group_count=4), meter).value

    for person in range(5):
        there = np.ones(15, dtype=int)
        there[3 * person : 3 * person + 3] = 0
        found = replay(run, np.ones(15, dtype=int), there)
        assert 0 < found.loss <= ROSTER.levels[GROUPS[person]]
        assert found.same_output


@pytest.mark.parametrize("mechanism", ["affine", "minimum", "partition", "robust"])
def test_means_spend_two_halves(mechanism):
    option = {o.mechanism: o for o in preview_mean(ROSTER, low=0, high=10, steps=4)}[mechanism]

    def calls(v, keep):
        centred = ArrayReader.of(GROUPS, np.where(keep, 2 * v - 4, 0), low=-4, high=4, group_count=4)
        tape = Tape(1)
        meter = Meter(limit=option.charge, budgets=ROSTER, source=tape)
        option.run(PairReader(centred, ArrayReader.of(GROUPS, keep.astype(int), group_count=4)), meter)
        return tape

    for extreme in (0, 4):
        everybody = calls(np.full(5, extreme), np.ones(5, dtype=bool))
        for person in range(5):
            keep = np.arange(5) != person
            assert _loss(everybody, calls(np.full(5, extreme), keep)) <= ROSTER.levels[GROUPS[person]]


def _sampled_pmf(x, p, rate, outputs):
    """Law of (sum of the kept records) + discrete Laplace."""
    kept = np.array([1.0])
    for value, share in zip(x, p, strict=True):
        kept = np.convolve(kept, [1 - share, share] if value else [1.0])
    q = np.exp(-rate / NANO)
    noise = (1 - q) / (1 + q) * q ** np.abs(outputs[:, None] - np.arange(kept.size)[None, :])
    return noise @ kept


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.4, 0.9])
def test_sampling(threshold):
    option = plan_offer(Question(ROSTER), "sampling", threshold=threshold)
    p = (option.plan.thresholds / 2.0**63)[GROUPS]
    outputs = np.arange(-40, 46)
    worst = np.zeros(5)
    for x in product([0, 1], repeat=5):
        pmf = _sampled_pmf(x, p, option.plan.rate, outputs)
        for person in range(5):
            other = _sampled_pmf([v * (u != person) for u, v in enumerate(x)], p, option.plan.rate, outputs)
            worst[person] = max(worst[person], np.abs(np.log(pmf / other)).max() * NANO)
    assert (worst <= ROSTER.levels[GROUPS] + 1e-3).all()
    assert (worst <= option.charge.people[GROUPS] + 1e-3).all()
    # Nothing is given away either: people below the threshold use what they granted.
    low = ROSTER.levels[GROUPS] < threshold * NANO
    assert (worst[low] >= 0.999 * ROSTER.levels[GROUPS][low]).all()


def test_keep_probabilities_never_pass_the_price():
    rng = np.random.default_rng(0)
    levels = np.unique((10 ** rng.uniform(0, 9.5, 2000)).astype(np.int64))
    for loss in (10**3, 10**8, 3 * 10**9):
        exact = np.log1p(keep_thresholds(levels, loss) / 2.0**63 * np.expm1(loss / NANO)) * NANO
        assert (exact <= levels * (1 + 1e-12)).all()


def _noisy_max_pmf(scores):
    """Exact law of the noisy maximum with unit exponential noise, by quadrature on x = score + noise of the winner."""
    x = np.linspace(0, 40, 20_001) + scores.max()
    tail = np.exp(-np.maximum(x[:, None] - scores[None, :], 0.0))
    below = np.where(x[:, None] >= scores[None, :], 1 - tail, 0.0)
    out = []
    for i in range(scores.size):
        density = tail[:, i] * np.prod(np.delete(below, i, axis=1), axis=1)
        out.append(np.trapezoid(density, x))
    return np.array(out)


@pytest.mark.parametrize("high", [1, 2])
def test_exponential_mechanism(high):
    roster = PersonBudgets.of([0.2, 0.7, 1.5])
    groups = np.array([0, 1, 2])
    option = plan_offer(Question(roster, high=high), "exponential")

    def pmf(x):
        sums = np.bincount(groups, weights=x, minlength=3).astype(np.int64)
        return _noisy_max_pmf(option.plan.scores(sums) / NANO)

    seen = {x: pmf(x) for x in product(range(high + 1), repeat=3)}
    worst = np.zeros(3)
    for x, law in seen.items():
        assert law.sum() == pytest.approx(1, abs=1e-6)
        for person in range(3):
            other = seen[tuple(0 if u == person else v for u, v in enumerate(x))]
            worst[person] = max(worst[person], np.abs(np.log(law / other)).max())
    assert (worst <= roster.epsilons[groups] + 1e-5).all()


def test_a_plan_cannot_run_on_a_smaller_limit():
    from sfumato.errors import BudgetError
    from sfumato.privacy import Charge

    option = plan_offer(Question(ROSTER), "affine")
    meter = Meter(limit=Charge(10**7, np.full(4, 10**7)), budgets=ROSTER)

    class Untouchable:
        def __getattr__(self, name):
            return lambda *_: Exact.reading(self.read)

        def read(self):
            raise AssertionError("the table was read before the price was accepted")

    with pytest.raises(BudgetError):
        option.run(Untouchable(), meter)


def test_the_brute_force_rejects_weights_that_are_too_large():
    """The check above must be able to fail: 30% more weight is noticed."""
    option = plan_offer(Question(ROSTER), "affine")
    weights = (option.plan.rounds[0].weights * 13) // 10
    sums = ArrayReader.of(GROUPS, np.ones(5, dtype=int), group_count=4)
    less = ArrayReader.of(GROUPS, np.array([0, 1, 1, 1, 1]), group_count=4)
    assert reveal(sums.weighted_sum(weights)) - reveal(less.weighted_sum(weights)) > ROSTER.levels[0]
    assert laplace(1, source=Seeded(1)).shape == ()
