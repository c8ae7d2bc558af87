"""Linear models with noise on the objective or on the coefficients: whole fits, seen through what their Meter answered.

With noise of density ∝ exp(-β‖b‖) on the objective, the published f is the minimum for the noise ``b(f) = -Σ w ∇l - λ f``:
``log P(f) = -β ‖b(f)‖ + log det H(f)`` up to a constant, H being the Hessian; with noise on the minimum m itself it is
``-β ‖f - m‖`` (`sfumato.testing`). The last record pulls against the others, which makes it matter most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.registry import register
from sfumato.audit.transcripts import TranscriptCase, transcript_case
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.tables.domains import Categorical
from sfumato.tables.schema import Schema

_OTHERS = 20
_MANY = 400
_AGAINST = "one record against all others, present or absent"


def _whole_fit(name: str, estimator: str, *, epsilon: float, size: int) -> TranscriptCase:
    """A whole fit of an estimator, with a Meter of its own."""
    from sfumato import classifiers

    def fitted(records: int, source: Any) -> Any:
        model = getattr(classifiers, estimator)(epsilon=epsilon, bounds=(-1, 1), classes=[0, 1], rows=size, source=source)
        return model.fit(np.full((records, 1), 1.0), np.array([1] * size + [0])[:records])

    def fit(records: int, meter: Meter) -> list[NDArray[Any]]:
        model = fitted(records, meter._source)
        return [model.coef_, model.intercept_]

    claimed = fitted(size + 1, Seeded(0)).guarantee_.nano
    return TranscriptCase(name, claimed, fit, (size + 1, size), _AGAINST)


def _personal(name: str, kind: Any) -> TranscriptCase:
    """The weighted objective with a public roster, in one dimension: one careful person among generous ones."""
    from sfumato.classifiers.linear.personal import Training, train

    roster = PersonBudgets.from_tiers({"careful": (1, 1), "generous": (2, _OTHERS)})
    groups = np.array([1] * _OTHERS + [0])
    signed = np.where(groups[:, None] == 1, 1.0, -1.0)

    def fit(rows: NDArray[np.float64], meter: Meter) -> list[NDArray[Any]]:
        t = Training(kind, Exact(rows), 1, groups, roster, 1.0)
        return [np.asarray(m) for m in train(t, meter, mechanism="weighted", threshold=None, parts=None).models]

    meter = Meter(budgets=roster, source=Seeded(0))
    fit(signed, meter)
    spent = meter.spent().people
    assert spent is not None
    return TranscriptCase(
        name,
        int(spent[0]),
        fit,
        (signed, np.where(groups[:, None] == 1, signed, 0.0)),
        "a careful person against generous ones, with values or blank",
        meter=lambda source: Meter(budgets=roster, source=source),
    )


def _output_perturbation() -> TranscriptCase:
    """Noise on the coefficients. The last record is at an angle to the others: they cannot hold it, and it is misjudged."""
    from sfumato.classifiers.linear.output_perturbation import OutputPerturbation
    from sfumato.records.coding import Coding
    from sfumato.records.records import Records

    pair = Categorical(["no", "yes"])
    coding = Coding.of(Schema({"a": pair, "b": pair, "ill": pair}), target="ill")
    leaves = np.array([[1, 1]] * _MANY + [[1, 0]], dtype=np.int32)
    classes = np.array([1] * _MANY + [0])

    def fit(keep: int, meter: Meter) -> list[NDArray[Any]]:
        model = OutputPerturbation(epsilon=3)
        model._coding = coding
        model._train(Exact(Records(coding.taxonomies, leaves[:keep], classes[:keep], coding.class_labels)), meter)
        return [np.asarray(model.coef_)]

    return transcript_case("classifier-output-perturbation", fit, (_MANY + 1, _MANY), _AGAINST)


register(_whole_fit("classifier-logistic", "PrivateLogisticRegression", epsilon=2, size=_OTHERS))
register(_whole_fit("classifier-svm", "PrivateSVM", epsilon=2, size=1))
register(_personal("classifier-logistic-personal", "logistic"))
register(_personal("classifier-svm-personal", "huber"))
register(_output_perturbation())
