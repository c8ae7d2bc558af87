"""Models of counts whose records weigh what their people granted (`classifiers.weighing`): one strict person among generous.

The pairs are those of `cases_classifiers`; the record that is there or not is a strict person's, whose claim is the smallest
and easiest to break: with the weight of the others it would lose many times as much. The roster is public and stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cases_classifiers import SIDES, TIED, Rows, estimator, pair_of
from sfumato.audit.registry import register
from sfumato.audit.transcripts import TranscriptCase
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema

_ILL = Categorical(["no", "yes"])
_ONE = Schema({"age": Numeric(0, 3, bins=3), "ill": _ILL})
_SIDE = Schema({"side": Categorical(["left", "right"]), "ill": _ILL})
_TWO = Schema({"a": Categorical(["no", "yes"]), "b": Categorical(["no", "yes"]), "ill": _ILL})


def personal_case(
    name: str, make: Callable[[], Any], schema: Schema, rows: Rows, words: str, *, epsilon: float, own: int = 1
) -> TranscriptCase:
    """A strict person of `epsilon`, the last record, among people who granted three times as much.

    `own` is what the mechanism is told that a strict record weighs beside what it does: 1 unless it is a control.
    """
    from sfumato.classifiers.weighing import Weighing

    full, _ = pair_of(schema, rows)
    roster = PersonBudgets.from_tiers({"strict": (epsilon, 1), "open": (3 * epsilon, max(1, len(full.classes) - 1))})
    weighing = Weighing.of(roster, "as granted")
    weights = np.full(len(full.classes), weighing.groups[1])
    weights[-1] = weighing.groups[0] * own
    here = replace(full, weights=weights)
    there = replace(full, leaves=full.leaves[:-1], classes=full.classes[:-1], weights=weights[:-1])

    def weighed() -> Any:
        model = make()
        model._weighing = weighing
        return model

    fit = estimator(weighed, schema)

    def run(records: Records, meter: Meter) -> list[NDArray[Any]]:
        return list(fit(records, meter))

    meter = Meter(budgets=roster, source=Seeded(0))
    run(here, meter)
    spent = meter.spent().people
    assert spent is not None
    return TranscriptCase(
        name, int(spent[0]), run, (here, there), words, lambda s: Meter(budgets=roster, source=s), control=own > 1
    )


def _cases() -> None:
    from sfumato import classifiers as c

    alone = "a strict person among generous ones, with values or blank"

    def case(name: str, make: Callable[[], Any], schema: Schema, rows: Rows, epsilon: float, words: str = alone) -> None:
        register(personal_case(f"classifier-{name}-personal", make, schema, rows, words, epsilon=epsilon))

    one: Rows = [((0,), 0, 2), ((0,), 1, 1)]
    case("majority", c.Majority, _ONE, one, 1)
    case("naive-bayes", c.PrivateNaiveBayes, _TWO, [((0, 0), 0, 2), ((0, 0), 1, 1)], 2)
    case("tree", lambda: c.PrivateDecisionTree(depth=1), _SIDE, one, 1)
    case("forest", lambda: c.PrivateForest(trees=1, depth=1), _SIDE, one, 1)
    split = "a strict person whose record makes two splits equally good, or not"
    case("tree-split", lambda: c.PrivateDecisionTree(depth=1), _TWO, TIED, 3, split)
    surer = "a strict person whose record makes the divided grid better than the undivided one"
    case("additive", lambda: c.PrivateAdditive(rounds=1), _SIDE, SIDES, 3, surer)
    case("auto", c.AutoClassifier, _SIDE, SIDES, 3, surer)
    case("histogram", lambda: c.HistogramClassifier(grids=1), _SIDE, SIDES, 3, surer)
    register(
        personal_case(
            "control-weighed-as-the-generous",
            c.Majority,
            _ONE,
            one,
            "a strict person who weighs as much as the generous and is priced by their own ε",
            epsilon=1,
            own=3,
        )
    )


_cases()
