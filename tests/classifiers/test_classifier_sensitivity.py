"""Brute force over neighbouring tiny tables: no call may lose more than it was charged, nor all calls more than ε."""

import itertools

import numpy as np
import pytest

from sfumato import classifiers as c
from sfumato.classifiers.counting.lattice import UNIT
from sfumato.classifiers.counting.terms import weights_of
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, Schema

SCHEMA = Schema({"age": Numeric(0, 4, bins=4), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
THREE = Schema({"age": Numeric(0, 4, bins=4), "sex": Categorical(["F", "M"]), "ill": Categorical(["a", "b", "c"])})
ROWS = list(itertools.product((0, 1, 3), ("F", "M")))

MAKERS = {
    "additive": lambda k: c.PrivateAdditive(rounds=3, columns_per_term=2, **k),
    "auto": lambda k: c.AutoClassifier(**k),
    "auto, public rows": lambda k: c.AutoClassifier(rows=50_000, **k),
    "naive Bayes": lambda k: c.PrivateNaiveBayes(**k),
    "naive Bayes, chosen power": lambda k: c.PrivateNaiveBayes(rows=50_000, **k),
    "majority": lambda k: c.Majority(**k),
    "tree": lambda k: c.PrivateDecisionTree(depth=2, rows=9, **k),
    "tree, max": lambda k: c.PrivateDecisionTree(depth=2, rows=9, criterion="max", **k),
    "tree, gini": lambda k: c.PrivateDecisionTree(depth=2, rows=9, criterion="gini", **k),
    "tree, information": lambda k: c.PrivateDecisionTree(depth=2, rows=2, criterion="information", **k),
    "forest": lambda k: c.PrivateForest(trees=2, depth=1, **k),
    "functional": lambda k: c.FunctionalMechanism(**k),
    "local": lambda k: c.PrivLocal(rounds=3, **k),
    "local, svm": lambda k: c.PrivLocal(rounds=3, loss="svm", **k),
    "gene": lambda k: c.PrivGene(rounds=2, population=6, **k),
    "histogram": lambda k: c.HistogramClassifier(grids=1, **k),
    "histogram, two grids": lambda k: c.HistogramClassifier(grids=2, rows=20, **k),
    "gene, svm": lambda k: c.PrivGene(rounds=2, population=6, loss="svm", **k),
    "functional, linear": lambda k: c.FunctionalMechanism(loss="linear", **k),
    "output": lambda k: c.OutputPerturbation(**k),
    "logistic": lambda k: c.PrivateLogisticRegression(**k),
    "logistic, public rows": lambda k: c.PrivateLogisticRegression(rows=9, regularization=1e-3, **k),
    "svm": lambda k: c.PrivateSVM(regularization=1e-3, **k),
}


def tables(labels, seed, size):
    """A random tiny table and the same without its last row (forests draw a tree per row, in order)."""
    draw = np.random.default_rng(seed)
    rows = [ROWS[i] for i in draw.integers(len(ROWS), size=size)]
    y = draw.choice(labels, size=size).tolist()
    X = np.array(rows, dtype=object).reshape(-1, 2)
    return (X, y), (X[:-1], y[:-1])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("schema", [SCHEMA, THREE], ids=["two classes", "three classes"])
def test_no_call_loses_more_than_it_was_charged(name, schema, exact_losses):
    labels = list(schema["ill"].values)
    largest = 0.0
    for seed in range(12):
        arguments = {"epsilon": 5, "schema": schema, "target": "ill"}
        pair = tables(labels, seed, 1 + seed % 5)
        found, total = exact_losses(lambda source, a=arguments: MAKERS[name]({**a, "source": source}), pair, seed)
        for loss, charged in found:
            assert loss <= charged * (1 + 1e-12)
        whole = sum(loss for loss, _ in found)
        assert whole <= total * (1 + 1e-12)
        assert total <= 5 * 10**9
        largest = max(largest, whole / total)
    assert largest > 0.1, "these tables hardly move the mechanism: the test would pass whatever the price"


def test_every_pair_of_tiny_tables_for_the_additive_model(exact_losses):
    """Exhaustive: every record added to every table of up to one record, along several published paths."""
    records = [(row, label) for row in ROWS for label in ("no", "yes")]
    bases = [[], *([r] for r in records[::3])]
    for base, extra in itertools.product(bases, records):
        full = [*base, extra]
        X = np.array([r for r, _ in full], dtype=object).reshape(-1, 2)
        y = [label for _, label in full]
        for seed in (0, 1):

            def make(source):
                return c.PrivateAdditive(epsilon=2, schema=SCHEMA, target="ill", rounds=2, rows=9, source=source)

            found, total = exact_losses(make, ((X, y), (X[:-1], y[:-1])), seed)
            assert all(loss <= charged * (1 + 1e-12) for loss, charged in found)
            assert sum(loss for loss, _ in found) <= total * (1 + 1e-12)


@pytest.mark.parametrize("label", ["no", "yes"])
def test_a_first_choice_that_heeds_the_rarer_class_costs_no_more(label, exact_losses):
    """Sixty records of one class, six of the other in one cell: the choice weighs them unequally, none above a unit."""
    X = np.array([*(ROWS[i % 5] for i in range(60)), *[(3, "M")] * 6], dtype=object)
    y = [*["no"] * 60, *["yes"] * 5, label]
    largest = 0.0
    for seed in range(6):

        def make(source):
            return c.PrivateAdditive(epsilon=50, schema=SCHEMA, target="ill", rounds=3, source=source)

        assert make(Seeded(seed)).fit(X, y).settings_.heed < 0.5
        found, _ = exact_losses(make, ((X, y), (X[:-1], y[:-1])), seed)
        assert all(loss <= charged * (1 + 1e-12) for loss, charged in found)
        largest = max(largest, found[1][0] / found[1][1])
    assert label == "no" or largest > 0.3, "the choice is hardly moved: the test would pass whatever the price"


def test_every_pair_of_tiny_tables_for_the_power_of_naive_bayes(exact_losses):
    """Exhaustive: every record added to every table of up to two records, with a choice of the power that matters."""
    records = [(row, label) for row in ROWS for label in ("no", "yes")]
    bases = [[], *([r] for r in records), *([a, b] for a in records[::3] for b in records[1::4])]
    moved = 0
    for number, (base, extra) in enumerate(itertools.product(bases, records)):
        full = [*base, extra]
        X = np.array([r for r, _ in full], dtype=object).reshape(-1, 2)
        y = [label for _, label in full]

        def make(source):
            return c.PrivateNaiveBayes(epsilon=4, schema=SCHEMA, target="ill", rows=1000, source=source)

        found, total = exact_losses(make, ((X, y), (X[:-1], y[:-1])), number)
        assert len(found) == 3
        assert all(loss <= charged * (1 + 1e-12) for loss, charged in found)
        assert total <= 4 * 10**9
        moved += found[-1][0] > 0
    assert moved > 0, "no choice was moved by any record: the test would pass whatever the price"


def test_the_probe_catches_a_price_that_is_too_low(monkeypatch, exact_losses):
    """The same test must fail for a mechanism that forgets the weight of a record."""
    from sfumato.classifiers.counting import terms

    real = terms.weights_of
    monkeypatch.setattr(terms, "weights_of", lambda *a: 4 * real(*a))
    pair = tables(["no", "yes"], 3, 4)

    def make(source):
        return c.PrivateAdditive(epsilon=5, schema=SCHEMA, target="ill", rounds=2, rows=50, source=source)

    found, _ = exact_losses(make, pair, 3)
    assert any(loss > charged * 1.5 for loss, charged in found)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("cap", [0.3, 0.5, 1.0])
def test_the_weight_of_a_record_does_not_depend_on_other_records(classes, cap):
    """Least of all where the model says nothing about all of the others."""
    scores = np.vstack([np.zeros((4, classes)), np.tile(np.linspace(-3, 3, classes), (4, 1))])
    labels = np.arange(8) % classes
    alone = [int(weights_of(scores[[i]], labels[[i]], cap)[0]) for i in range(8)]
    assert weights_of(scores, labels, cap).tolist() == alone
    assert len(set(alone)) > 1


def test_before_the_first_term_every_record_weighs_a_full_unit(monkeypatch):
    seen = []
    monkeypatch.setattr("sfumato.classifiers.counting.terms.weights_of", lambda *a: seen.append(weights_of(*a)) or seen[-1])
    X, y = tables(["a", "b", "c"], 1, 6)[0]
    c.PrivateAdditive(epsilon=5, schema=THREE, target="ill", rounds=2, rows=50, source=Seeded(3)).fit(X, y)
    assert len(seen) == 2
    assert seen[0].tolist() == [UNIT] * 6


def test_every_estimator_is_tried():
    made = {type(make({})).__name__ for make in MAKERS.values()}
    assert made | {"PrivateSearch"} == set(c.__all__)  # a search has a test of its own
