"""Classifiers on pairs of neighbours: whole fits, and all that their Meter answered (see `transcripts`).

Each pair is the worst we know for its estimator: the record that is there or not moves every count it can, and where there
is a choice it helps one candidate as much as it hurts the other. Budgets that are shared by many steps are larger, so that
all steps can be seen together in ten thousand fits. Linear models with noise on the objective are in `cases_linear`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.registry import register
from sfumato.audit.transcripts import Fit, transcript_case
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema

_ILL = Categorical(["no", "yes"])
_ONE = Schema({"age": Numeric(0, 3, bins=3), "ill": _ILL})
_SIDE = Schema({"side": Categorical(["left", "right"]), "ill": _ILL})
_TWO = Schema({"a": Categorical(["no", "yes"]), "b": Categorical(["no", "yes"]), "ill": _ILL})

Pair = tuple[Records, Records]
Rows = list[tuple[tuple[int, ...], int, int]]  # leaves, class, how often


def estimator(make: Callable[[], Any], schema: Schema) -> Fit[Records]:
    """Fits of an estimator on coded records; published is what it says everywhere in the (tiny) domain."""
    from sfumato.records.coding import Coding

    coding = Coding.of(schema, target="ill")
    everywhere = np.array(list(product(*(range(t.leaves) for t in coding.taxonomies))), dtype=np.int32)

    def fit(records: Records, meter: Meter) -> list[NDArray[Any]]:
        model = make()
        model._coding, model.classes_ = coding, coding.classes
        model._train(Exact(records), meter)
        return [model._scores(everywhere)]

    return fit


def pair_of(schema: Schema, rows: Rows, target: str = "ill") -> Pair:
    """The table, and the same without its last record."""
    from sfumato.records.coding import Coding

    coding = Coding.of(schema, target=target)
    leaves = np.array([leaf for leaf, _, times in rows for _ in range(times)], dtype=np.int32).reshape(
        -1, len(coding.taxonomies)
    )
    classes = np.array([label for _, label, times in rows for _ in range(times)], dtype=np.int64)
    full = Records(coding.taxonomies, leaves, classes, coding.class_labels)
    return full, Records(coding.taxonomies, leaves[:-1], classes[:-1], coding.class_labels)


# With the last record both columns classify as many records, without it the first classifies one less.
TIED: Rows = [((1, 0), 0, 30), ((1, 1), 1, 20), ((0, 0), 1, 20)]
# With the last record a grid that is divided is better than one that is not, without it they are equal.
SIDES: Rows = [((1,), 0, 2), ((0,), 1, 1)]


def _classifiers() -> None:
    from sfumato import classifiers as c

    def case(name: str, make: Callable[[], Any], schema: Schema, rows: Rows, words: str, **more: Any) -> None:
        register(transcript_case(f"classifier-{name}", estimator(make, schema), pair_of(schema, rows), words, **more))

    alone = "one record or none"
    case("majority", lambda: c.Majority(epsilon=1), _ONE, [((0,), 1, 1)], alone)
    case("naive-bayes", lambda: c.PrivateNaiveBayes(epsilon=2, rows=100), _TWO, [((0, 0), 1, 1)], alone)
    case("functional", lambda: c.FunctionalMechanism(epsilon=2), _SIDE, [((1,), 1, 1)], alone)
    case("tree", lambda: c.PrivateDecisionTree(epsilon=1, depth=1, rows=100), _SIDE, [((0,), 1, 1)], alone)
    case("forest", lambda: c.PrivateForest(epsilon=1, trees=2, depth=1, rows=100), _SIDE, [((0,), 1, 1)], alone)
    case(
        "tree-split",
        lambda: c.PrivateDecisionTree(epsilon=3, depth=1, rows=80),
        _TWO,
        TIED,
        "a record that makes two splits equally good, or not",
    )
    case("auto", lambda: c.AutoClassifier(epsilon=1), _ONE, [((0,), 1, 1)], f"{alone}; too few for more than class counts")
    surer = "a record that makes the divided grid better than the undivided one; without it they are equal"
    case("auto-additive", lambda: c.AutoClassifier(epsilon=3, rows=100), _SIDE, SIDES, surer)
    case("additive", lambda: c.PrivateAdditive(epsilon=3, rounds=1, rows=100), _SIDE, SIDES, surer)
    case("histogram", lambda: c.HistogramClassifier(epsilon=3, rows=100, grids=1), _SIDE, SIDES, surer)
    # The hinge is straight up to a margin of one. A step of 1.2 overshoots: on balanced records it hurts either way, so the
    # constant is out of the question and the record decides between the two directions of the other coefficient.
    case(
        "local",
        lambda: c.PrivLocal(epsilon=1, loss="svm", rounds=1, step=1.2),
        _ONE,
        [((1,), 0, 80), ((1,), 1, 80), ((2,), 1, 1)],
        "a record that tells which way a coefficient should go",
    )
    case(
        "gene",
        lambda: c.PrivGene(epsilon=1, loss="svm", rounds=1, population=2, parents=1, radius=1.0),
        _ONE,
        [((2,), 1, 1)],
        "one record or none, between a candidate that fits it and one that contradicts it",
        known=True,
    )


def _overlapping(records: Records, meter: Meter) -> list[NDArray[Any]]:
    """Two trees on the same records that are priced as if they had different ones."""
    from sfumato.classifiers.counting.tree import grow
    from sfumato.records.coding import Coding

    coding = Coding.of(_SIDE, target="ill")
    with meter.parallel("each record is in one tree") as branch:
        for _ in range(2):
            with branch():
                grow(Exact(records), meter, coding, nano=Nano(NANO), rows=100, depth=1)
    return []


_classifiers()
register(
    transcript_case(
        "control-overlapping-trees",
        _overlapping,
        pair_of(_SIDE, [((0,), 1, 1)]),
        "one record or none; a forest whose trees share records and are priced as if they did not",
        control=True,
    )
)
