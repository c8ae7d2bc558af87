"""The tape sees every kind of call, gives the same answers to a neighbour, and finds what a broken mechanism does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError
from sfumato.privacy import NANO, Charge, Exact, Meter, PersonBudgets, Secure, Seeded, noise
from sfumato.privacy.items import laplace_each, laplace_shares
from sfumato.privacy.losses import objective_loss
from sfumato.privacy.objective import Objective
from sfumato.privacy.optimum import Perturbation
from sfumato.testing import Call, LeakError, Tape, compare, log_probability, replay, vector_loss

TENTH = 10**8
OBJECTIVE = Perturbation("logistic", 2, 10.0, 0.1)
OUTPUT = Perturbation("logistic", 2, 10.0, 1.0, on="output")


def everything(table, source):
    """One call of every kind; a table is a list of small numbers."""
    meter = Meter(source=source)
    out = [meter.laplace(lambda: np.bincount(table, minlength=3), rate=[TENTH, 2 * TENTH, TENTH], label="counts")]
    out.append(meter.choose(lambda: np.bincount(table, minlength=3), rate=TENTH, label="most common"))
    counts = np.bincount(table, minlength=2)[:2]
    costs = [int(counts[0]), int(counts[1]), int(counts.sum()) + 1]
    out.append(meter.partition([0, 1, 0], [1, 2, 2], costs, rate=[TENTH] * 3, moves=[1, 1, 1], label="cut"))
    rows = Exact(np.array([[np.cos(k), np.sin(k)] for k in table]))
    objective = rows.map(lambda r: Objective("logistic", r, np.ones(len(r)), 10.0))
    for by in (OBJECTIVE, OUTPUT):
        out.append(meter.optimum(objective, lambda _, noise: 0 * noise, by=by, label=by.on))
    with meter.sampled(1 << 62) as sample:
        out.append(meter.laplace(lambda: sample([len(table)]), rate=TENTH, label="sampled"))
    out.append(meter.deal(len(table), 4)[:2])
    out.append(meter.post_processing().random(2))
    return out


def test_every_kind_of_call_is_recorded_and_replayed():
    found = replay(everything, [0, 1, 2, 2], [0, 1, 2], source=3)
    kinds = [pair.here.kind for pair in found.calls]
    assert kinds == ["laplace", "choice", "partition", "objective", "output", "sample", "laplace", "deal", "draws"]
    assert found.same_output
    charged = [pair.charged for pair in found.calls]
    assert charged[:3] == [2 * TENTH, TENTH, 2 * TENTH]
    assert charged[3] == int(objective_loss([1.0], beta=0.1, curvature=0.25, penalty=10.0)[0]) + OBJECTIVE.extra
    assert charged[4:] == [TENTH + 1, 0, TENTH, 0, 0]
    losses = [pair.loss for pair in found.calls]
    assert losses[:3] == [TENTH, TENTH, 0]  # the record's bin is not on the line that is cut
    assert all(0.2 * price < loss <= price for loss, price in zip(losses[3:5], charged[3:5], strict=True))
    ratios = [abs(pair.log_ratio) * NANO for pair in found.calls[3:5]]
    assert all(0 < ratio <= loss for ratio, loss in zip(ratios, losses[3:5], strict=True))
    kept = found.calls[5]
    assert losses[5:] == [0, TENTH * int(kept.here.answer[0] - kept.there.answer[0]), 0, 0]
    first = found.calls[0].here
    assert first.public["rate"].tolist() == [TENTH, 2 * TENTH, TENTH]
    assert first.public["touches"] == "one"
    assert first.public["weights"] == 1
    assert first.label == "counts"
    assert first.exact.tolist() == [1, 1, 2]
    assert np.array_equal(first.answer, found.published[0][0])


def test_recording_changes_no_figure():
    """Nothing but the free draws comes from elsewhere than with the seed alone."""
    plain, taped = everything([0, 1, 2, 2], Seeded(3)), everything([0, 1, 2, 2], Tape(3))
    for a, b in zip(plain[:7], taped[:7], strict=True):
        assert np.array_equal(a, b)


def test_what_a_mechanism_does_to_its_answers_does_not_reach_the_tape():
    tape = Tape(1)
    noisy = Meter(source=tape).laplace([5], rate=NANO)
    kept = noisy.copy()
    noisy[0] = -99
    assert Meter(source=tape.again()).laplace([5], rate=NANO) == kept


def test_secure_noise_is_never_shown():
    class Curious(Secure):
        def answer(self, call, draw):
            raise AssertionError("an exact value left the Meter")

    meter = Meter(source=Curious())
    meter.laplace([5], rate=NANO)
    assert meter.private
    assert not Meter(source=Tape()).private


def test_the_price_is_refused_before_the_tape_sees_anything():
    tape = Tape()
    with pytest.raises(BudgetError):
        Meter(limit=Charge.of(0.1), source=tape).laplace([5], rate=NANO)
    assert tape.calls == []


# --- questions that depend on the data ----------------------------------------------------------------------------------


def asks(what):
    def run(n, source):
        meter = Meter(source=source, budgets=PersonBudgets.of([1, 2]))
        match what:
            case "rate":
                meter.laplace([n], rate=n, label="a")
            case "weights":
                meter.laplace([n], rate=1, weights=[n, n], label="a")
            case "label":
                meter.laplace([n], rate=1, label=f"{n} people")
            case "shape":
                meter.laplace(np.zeros(n, dtype=int), rate=1, label="a")
            case "kind":
                meter.laplace([n], rate=1) if n == 2 else meter.choose([n], rate=1)
            case "spread":
                meter.choose([0, n], rate=1, spread=n, label="a")
            case "beta":
                rows = Exact(Objective("huber", np.ones((3, 1)), np.ones(3), 1.0))
                by = Perturbation("huber", 1, 1.0, n / 100, on="output")
                meter.optimum(rows, lambda _, noise: noise, by=by, label="a")
            case "thresholds":
                with meter.sampled([n, n]) as sample:
                    meter.laplace(lambda: sample([n, n]), rate=1)
            case "more" | "fewer":
                for _ in range(n if what == "more" else 5 - n):
                    meter.laplace([1], rate=1)
            case "draws":
                meter.laplace([n], rate=1) if n == 2 else meter.post_processing()

    return run


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("rate", "its rate differs"),
        ("weights", "its weights differs"),
        ("label", "labels are published"),
        ("shape", "another number of values"),
        ("kind", "here for choice, there for laplace"),
        ("spread", "its spread differs"),
        ("beta", "its beta differs"),
        ("thresholds", "its thresholds differs"),
        ("more", "one more than the 2 recorded"),
        ("fewer", "2 of the 3 that were recorded"),
        ("draws", "here for draws, there for laplace"),
    ],
)
def test_questions_that_depend_on_the_data_are_found(what, said):
    with pytest.raises(LeakError, match=said):
        replay(asks(what), 2, 3)


def test_data_used_outside_the_meter_show_in_the_output():
    def leaky(table, source):
        return {"counts": Meter(source=source).laplace([len(table)], rate=1), "size": len(table)}

    assert not replay(leaky, [1, 2], [1]).same_output
    assert replay(leaky, [1, 2], [3, 4]).same_output


# --- losses -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [([5, 0], [4, 0]), ([2**62, -(2**62)], [-(2**62), 2**62])])
def test_the_loss_of_noise_is_exact_however_large(values):
    found = replay(lambda v, s: Meter(source=s).laplace(v, rate=[3, 5]), *values)
    assert found.loss == sum(abs(a - b) * r for a, b, r in zip(*values, (3, 5), strict=True))


def test_no_answer_tells_more_than_the_loss():
    largest = 0.0
    for seed in range(200):
        found = replay(everything_countable, [0, 1, 2, 2], [0, 1, 2], source=seed)
        assert abs(found.log_ratio) <= found.loss / NANO + 1e-9
        largest = max(largest, abs(found.log_ratio) / (found.loss / NANO))
    assert largest > 0.7  # noise attains its bound, a choice among three comes near it


def everything_countable(table, source):
    meter = Meter(source=source)
    counts = np.bincount(table, minlength=3)
    return [meter.laplace(counts, rate=NANO), meter.choose(counts, rate=NANO)]


@pytest.mark.parametrize("scores", [[0.0, 1.0], [0.0, 0.0, 2.0], [3.0, 1.0, 2.5, -1.0, 3.0]])
def test_the_probability_of_a_choice_is_that_of_the_mechanism(scores):
    scores, source = np.array(scores), Seeded(4)
    stated = np.exp([log_probability(scores, NANO, i) for i in range(scores.size)])
    assert stated.sum() == pytest.approx(1, abs=1e-9)
    drawn = np.bincount([noise.choose(scores, rate=NANO, source=source) for _ in range(20_000)], minlength=scores.size)
    assert np.abs(drawn / 20_000 - stated).max() < 5 * np.sqrt(0.25 / 20_000)


LINE = {"starts": [0, 1, 2, 0, 1], "stops": [1, 2, 3, 2, 3]}


def cut(costs, source):
    meter = Meter(source=source)
    return meter.partition(*LINE.values(), costs, rate=[1, 2, 4, 8, 16], moves=[3] * 5, label="cut")


@pytest.mark.parametrize(
    ("moved", "loss"),
    [
        ([0, 0, 0, 0, 0], 0),
        ([1, 0, 0, 0, 0], 8),  # bin 0: 1 * (1 + 1), and the interval of two bins 8 * (0 + 1)
        ([0, 2, 0, 1, 3], 16 * (3 + 3)),  # bin 1: all but the first and the third interval are around it
        ([0, 0, 0, 1, 0], 8 * (1 + 1)),  # bin 0 or 1: the smaller of 8 (1 + 1) and max(8 (1 + 1), 16 (0 + 1))
        ([1, 0, 1, 0, 0], math.inf),  # bins 0 and 2: no single record does that
    ],
)
def test_the_loss_of_a_cut_follows_from_the_intervals_that_moved(moved, loss):
    found = replay(cut, np.array([5, 5, 5, 9, 9]), np.array([5, 5, 5, 9, 9]) + moved)
    assert found.loss == loss
    assert (found.loss <= found.calls[0].charged) == (loss < math.inf)


def test_likelihoods_without_a_closed_form_are_refused():
    with pytest.raises(InputError, match="audit what is published"):
        _ = replay(cut, np.arange(5), np.arange(5)).log_ratio


def test_vector_noise_is_priced_by_what_moved():
    short, round_one, other = (
        Call("objective", public={"beta": 0.5, "length": 2.0}),
        Call("objective", public={"beta": 0.5, "length": None}),
        Call("laplace"),
    )
    assert vector_loss(short, [1.0, -1.0], stretch=-0.1) == pytest.approx(0.6 * NANO)
    assert vector_loss(round_one, [0.6, -0.8]) == pytest.approx(0.5 * NANO)
    with pytest.raises(InputError, match="not laplace"):
        vector_loss(other, [1.0])


# --- samples and parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_a_sample_is_replayed_record_by_record(probability):
    threshold = int(probability * 2**63)

    def run(counts, source):
        meter = Meter(source=source, budgets=PersonBudgets.of([1, 2]))
        with meter.sampled([threshold, threshold]) as sample:
            kept = []
            noisy = meter.laplace(lambda: kept.append(sample(counts)) or [kept[0].sum()], rate=TENTH)
        return noisy, kept[0]

    for seed in range(30):
        for here, there in ([[6, 4], [6, 3]], [[6, 3], [6, 4]]):
            (_, mine), (_, theirs) = replay(run, here, there, source=seed).published
            assert mine[0] == theirs[0]
            assert (theirs >= 0).all()
            assert (theirs <= there).all()
            moved = int(theirs[1] - mine[1])
            # An added record is in the sample; one that is taken away was in it, unless nobody was.
            assert moved == (1 if there[1] > here[1] else -min(1, int(mine[1])))


def test_samples_of_single_records_may_have_another_shape():
    def run(records, source):
        meter = Meter(source=source)
        with meter.sampled(1 << 62) as sample:
            return meter.laplace(lambda: [sample(np.ones((records, 1), dtype=int)).sum()], rate=TENTH)

    for records in (3, 5):
        found = replay(run, 4, records, source=1)
        assert found.loss in (0, TENTH)
    assert replay(run, 4, 5, source=1).loss == TENTH


def test_parts_are_dealt_to_the_same_records():
    def run(records, source):
        return Meter(source=source).deal(records, 7)

    for there in (9, 11):
        mine, theirs = replay(run, 10, there, source=5).published
        assert theirs.shape == (there,)
        assert np.array_equal(mine[: min(10, there)], theirs[: min(10, there)])
    fixed = [replay(run, 10, 9, source=seed, draws=3).published[0].tolist() for seed in (1, 2)]
    assert fixed[0] == fixed[1] != replay(run, 10, 9, source=1).published[0].tolist()


# --- noise that is paid for once ----------------------------------------------------------------------------------------


def test_histories_and_streams_are_seen_too():
    rate, touches = np.array([4 * TENTH, 2 * TENTH]), np.array([[1, 1]])

    def run(history, source):
        meter = Meter(source=source, neighbours="item")
        many = laplace_each(meter, np.stack([history, history * 0]), rate=rate, touches=touches, label="many")
        draw = laplace_shares(meter, rate=rate, touches=touches, why="each item is in two sums", label="stream")
        return many, draw(history, 2), draw(history * 0, 1)

    found = replay(run, np.array([3, 2]), np.array([2, 1]))
    assert [pair.here.kind for pair in found.calls] == ["charge", "laplace", "charge", "laplace", "laplace"]
    assert [pair.charged for pair in found.calls] == [6 * TENTH, 0, 6 * TENTH, 0, 0]
    assert [pair.loss for pair in found.calls] == [0, 6 * TENTH, 0, 3 * TENTH, 0]
    assert found.same_output


# --- where only a source can be given -----------------------------------------------------------------------------------


def test_a_tape_goes_through_the_front_door():
    import pandas as pd

    schema = sf.Schema({"age": sf.Numeric(0, 79, bins=4, integer=True)})

    def run(ages, source):
        table = sf.open(pd.DataFrame({"age": ages}), schema=schema, epsilon=1, rows=4, noise=source)
        return table.count(where="age >= 40", epsilon=0.5).value

    found = replay(run, [50, 60, 3, 70], [50, 60, 3, 20])
    noisy = [pair for pair in found.calls if pair.here.noisy]
    assert len(noisy) == 1
    assert 0 < noisy[0].loss <= noisy[0].charged == NANO // 2
    assert found.same_output


def test_compare_needs_as_many_calls():
    one, two = Tape(), Tape()
    Meter(source=one).laplace([1], rate=1)
    with pytest.raises(LeakError, match="0 of the 1"):
        compare(one, two)
