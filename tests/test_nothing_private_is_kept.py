"""After `fit` an estimator, a publisher and what it published hold no private value, and nothing that depends on one.

What is private is taken from a recording of the same fit: whatever reached the noise. And a neighbour who is given the same
answers ends up with the same object, byte by byte.
"""

import pickle

import numpy as np
import pytest

from sfumato import classifiers as c
from sfumato import grids
from sfumato.privacy import Exact, Meter, Seeded
from sfumato.testing import Tape, replay
from support import grids as helpers
from support.holding import everything, holds_array, holds_exact

ROWS = 1237  # a number that nothing else has by chance
LABELS = ("no", "yes", "maybe")
FRAME = helpers.frame(ROWS, classes=LABELS)
SCHEMA = helpers.schema(LABELS)
EPSILON = 0.05  # noise that does not vanish: an exact number would be met once in thousands of runs


def fit_estimator(name, frame, source, **how):
    model = getattr(c, name)(**{"epsilon": EPSILON, "schema": SCHEMA, "target": "ill", **how}, source=source)
    return model.fit(frame.drop(columns="ill"), frame["ill"])


def fit_search(name, frame, source, **how):
    model = c.PrivateNaiveBayes(schema=SCHEMA, target="ill")
    search = getattr(c, name)(estimator=model, grid={"temper": [0.2, 0.9]}, epsilon=EPSILON, source=source, **how)
    return search.fit(frame.drop(columns="ill"), frame["ill"])


def fit_publisher(name, frame, source, **how):
    return getattr(grids, name)(**{"epsilon": EPSILON, "target": "ill", **how}).fit(frame, schema=SCHEMA, source=source)


CASES = {name: (fit_search if name == "PrivateSearch" else fit_estimator, name, {}) for name in c.__all__} | {
    "DiffGen": (fit_publisher, "DiffGen", {}),
    "PPH": (fit_publisher, "PPH", {}),
    "PrivBayes": (fit_publisher, "PrivBayes", {}),
    "PrivMarginals": (fit_publisher, "PrivMarginals", {}),
    "PrivBayes, bits": (fit_publisher, "PrivBayes", {"encoding": "gray", "epsilon": 2}),
    "PrivPfC": (fit_publisher, "PrivPfC", {}),
    "PrivPfC, two grids": (fit_publisher, "PrivPfC", {"grids": 2}),
    "UniformGrid": (fit_publisher, "UniformGrid", {}),
    "PrivateAdditive, three terms": (fit_estimator, "PrivateAdditive", {"rounds": 3}),
    "PrivateForest, three trees": (fit_estimator, "PrivateForest", {"trees": 3}),
    "PrivateNaiveBayes, chosen power": (fit_estimator, "PrivateNaiveBayes", {"rows": 10**6}),
}


def test_every_publisher_is_tried():
    published = {name for name in grids.__all__ if isinstance(getattr(grids, name), type)}
    kinds = {name for name in published if issubclass(getattr(grids, name), grids.Publisher)} - {"Publisher"}
    assert kinds <= {name for _, name, _ in CASES.values()}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_nothing_private_is_held_after_fit(case):
    fit, name, how = case
    tape = Tape(3)
    fit(name, FRAME, tape, **how)
    asked = [np.asarray(call.exact) for call in tape.calls if call.noisy and call.exact is not None]
    exact = {f"{i}": array for i, array in enumerate(asked) if array.size >= 3 and np.unique(array).size > 2}
    exact |= {column: FRAME[column].to_numpy() for column in ("age", "visits")}
    model = fit(name, FRAME, Seeded(3), **how)
    assert not holds_exact(model)
    assert not holds_array(model, exact)
    numbers = [path for path, value in everything(model) if type(value) in (int, float) and value == ROWS]
    assert not numbers


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_whatever_meets_noise_came_as_an_exact(case, monkeypatch):
    """A plain array or a function would be taken for public: nobody could say what else was done with it."""
    fit, name, how = case
    opened = []
    really = Meter._open_for_noise
    monkeypatch.setattr(Meter, "_open_for_noise", lambda meter, value: opened.append(type(value)) or really(meter, value))
    fit(name, FRAME.head(100), Seeded(3), **how)
    assert set(opened) == {Exact}


def bytes_of(model):
    """Everything that is stored of it, but for the source that a test gave it."""
    for part in (model, getattr(model, "model_", None), getattr(model, "best_estimator_", None)):
        if hasattr(part, "source"):
            part.source = None
    return pickle.dumps(model)


@pytest.mark.parametrize("where", [0, 30, 59])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_neighbour_with_the_same_answers_is_left_with_the_same_bytes(case, where):
    fit, name, how = case
    table = FRAME.head(60)
    place = 59 if name == "PrivateForest" else where  # a deal is replayed by position
    there = table.drop(index=table.index[place])
    found = replay(lambda rows, source: bytes_of(fit(name, rows, source, **how)), table, there, source=4)
    assert found.published[0] == found.published[1]
