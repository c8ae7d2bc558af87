"""Linear models with noise on the objective or on the coefficients: whole fits, seen through the coefficients they publish.

The number of a draw is the log-likelihood ratio of the published coefficients f under the two tables, so no event tells them
apart better. With noise of density ∝ exp(-β‖b‖) on the objective, f is the minimum for the noise ``b(f) = -Σ w ∇l - λ f``,
so ``log P(f) = -β ‖b(f)‖ + log det H(f)`` up to a constant, H being the Hessian; with noise on the minimum m itself it is
``-β ‖f - m‖``. The last record pulls against the others, which makes it matter most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import register
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded, Source, positive_nano
from sfumato.privacy.objective import Objective
from sfumato.tables.domains import Categorical
from sfumato.tables.schema import Schema

Floats = NDArray[np.float64]
_FITS = 10_000
_OTHERS = 20
_MANY = 400
_AGAINST = "one record against all others, present or absent"


@dataclass(frozen=True, eq=False)
class Observed:
    """What an observer knows of a training table: its objective and the rate of the noise."""

    objective: Objective
    beta: float

    def log_density(self, f: Floats) -> float:
        gradient, _ = self.objective.gradient(f, np.zeros(f.size))
        return float(-self.beta * np.linalg.norm(gradient) + np.linalg.slogdet(self.objective.hessian(f))[1])


def _table(which: int, size: int) -> tuple[Floats, NDArray[np.int64]]:
    """`size` records and one against them, which the second neighbour lacks."""
    X = np.full((size + 1, 1), 1.0)
    y = np.array([1] * size + [0])
    return X[: size + 1 - which], y[: size + 1 - which]


def _whole_fit(name: str, estimator: str, kind: Any, *, epsilon: float, size: int) -> AuditCase:
    """A whole fit of an estimator, coefficients taken back to the scale on which rows have norm one."""
    from sfumato import classifiers

    def fit(which: int, source: Source) -> Any:
        model = getattr(classifiers, estimator)(epsilon=epsilon, bounds=(-1, 1), classes=[0, 1], rows=size, source=source)
        return model.fit(*_table(which, size))

    @cache
    def known(which: int) -> Observed:
        X, y = _table(which, size)
        rows = np.hstack([X, np.ones_like(X)]) / np.sqrt(2) * np.where(y == 1, 1.0, -1.0)[:, None]
        at = calibrate(positive_nano(epsilon), kind=kind, dimension=2)
        return Observed(Objective(kind, rows, np.ones(len(y)), at.penalty), at.beta)

    def draw(which: int, n: int, source: Source) -> Floats:
        out = np.empty(n)
        for i in range(n):
            model = fit(which, source)
            f = np.sqrt(2) * np.array([model.coef_[0, 0], model.intercept_[0]])
            out[i] = round(known(0).log_density(f) - known(1).log_density(f), 6)
        return out

    return AuditCase(name, fit(0, Seeded(0)).guarantee_.nano, draw, _AGAINST, most=_FITS)


def _personal(name: str, kind: Any) -> AuditCase:
    """The weighted objective with a public roster, in one dimension: one careful person among generous ones."""
    from sfumato.classifiers.linear.personal import Training, cap_for, train

    roster = PersonBudgets.from_tiers({"careful": (1, 1), "generous": (2, _OTHERS)})
    groups = np.array([1] * _OTHERS + [0])
    signed = np.where(groups[:, None] == 1, 1.0, -1.0)
    cap = cap_for(roster, 1)
    at = calibrate(cap, kind=kind, dimension=1)
    per_group = at.weights(np.minimum(roster.levels, cap))

    def fit(which: int, meter: Meter) -> Floats:
        t = Training(kind, Exact(signed[: groups.size - which]), 1, groups[: groups.size - which], roster, 1.0)
        return np.asarray(train(t, meter, mechanism="weighted", threshold=None, parts=None).models[0])

    known = [
        Observed(Objective(kind, signed[: groups.size - w], per_group[groups[: groups.size - w]], at.penalty), at.beta)
        for w in (0, 1)
    ]

    def draw(which: int, n: int, source: Source) -> Floats:
        models = (fit(which, Meter(budgets=roster, source=source)) for _ in range(n))
        return np.array([round(known[0].log_density(f) - known[1].log_density(f), 6) for f in models])

    meter = Meter(budgets=roster, source=Seeded(0))
    fit(0, meter)
    spent = meter.spent().people
    assert spent is not None
    return AuditCase(name, int(spent[0]), draw, "a careful person against generous ones, present or absent", most=_FITS)


def _output_perturbation() -> AuditCase:
    """Noise on the coefficients. The last record is at an angle to the others: they cannot hold it, and it is misjudged."""
    from sfumato.classifiers.linear.features import design
    from sfumato.classifiers.linear.output_perturbation import OutputPerturbation
    from sfumato.records.coding import Coding
    from sfumato.records.records import Records

    pair = Categorical(["no", "yes"])
    coding = Coding.of(Schema({"a": pair, "b": pair, "ill": pair}), target="ill")
    leaves = np.array([[1, 1]] * _MANY + [[1, 0]], dtype=np.int32)
    classes = np.array([1] * _MANY + [0])

    def fit(which: int, meter: Meter) -> Floats:
        keep = _MANY + 1 - which
        model = OutputPerturbation(epsilon=3)
        model._coding = coding
        model._train(Exact(Records(coding.taxonomies, leaves[:keep], classes[:keep], coding.class_labels)), meter)
        return np.asarray(model.coef_[0])

    @cache
    def minimum(which: int) -> Floats:
        keep = _MANY + 1 - which
        signed = design(leaves[:keep], coding.taxonomies) * np.where(classes[:keep] == 1, 1.0, -1.0)[:, None]
        return minimise(Objective("logistic", signed, np.ones(keep), 1.0), np.zeros(3))

    def draw(which: int, n: int, source: Source) -> Floats:
        found = (fit(which, Meter(source=source)) for _ in range(n))
        ratios = (3 * (np.linalg.norm(f - minimum(1)) - np.linalg.norm(f - minimum(0))) for f in found)
        return np.array([round(float(r), 6) for r in ratios])

    meter = Meter(source=Seeded(0))
    fit(0, meter)
    return AuditCase("classifier-output-perturbation", meter.spent().total, draw, _AGAINST, most=_FITS)


register(_whole_fit("classifier-logistic", "PrivateLogisticRegression", "logistic", epsilon=2, size=_OTHERS))
register(_whole_fit("classifier-svm", "PrivateSVM", "huber", epsilon=2, size=_OTHERS))
register(_personal("classifier-logistic-personal", "logistic"))
register(_personal("classifier-svm-personal", "huber"))
register(_output_perturbation())
