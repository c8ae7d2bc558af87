"""PrivLocal and PrivGene: linear models found by choosing among candidate coefficients with the exponential mechanism.

*PrivLocal* (Algorithm 1 of Su et al. 2018): from the current coefficients ω the candidates are ω ± s in one coordinate; one
is chosen, s shrinks by β, repeat. *PrivGene* (Zhang et al., SIGMOD 2013): a population is cut to the fittest by repeated
choice, the survivors are crossed and mutated, and the last choice picks the model.

Features x come from public domains with entries in [-1, 1] and norm at most one after scaling; losses are 1-Lipschitz in the
margin ``y x·ω`` (logistic, or the hinge of a support vector machine).

**Guarantee.** ε-differential privacy against the absence of a record. The scores of all candidates may be shifted by what
does not depend on the candidate, so each record's loss is taken *relative to a public reference model* (the current ω, or
0). Then a record changes the score of candidate ω' by minus ``l(ω') - l(ω)``, which lies within ±‖x‖ ‖ω' - ω‖: for PrivLocal
within ±s |x_j| instead of the whole range of the loss, which is what the paper pays for. The change is rounded to integers
of 2**-20 per record and clipped at that public bound B, so the sums are exact and the spread is 2 B. Rounds in sequence add
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats, PrivateClassifier
from sfumato.classifiers.linear.features import design
from sfumato.errors import InputError
from sfumato.privacy import Exact, Meter, Nano
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.source import Generator
from sfumato.records.records import Records

_LATTICE = 1 << 20


def margin_loss(kind: str, margin: Floats) -> Floats:
    """Loss of a margin: 1-Lipschitz, not increasing.

    >>> margin_loss("svm", np.array([-1.0, 0.5, 2.0])).tolist()
    [2.0, 0.5, 0.0]
    """
    return np.logaddexp(0.0, -margin) if kind == "logistic" else np.maximum(0.0, 1.0 - margin)


def relative_scores(kind: str, margins: Floats, reference: Floats, bound: float) -> Floats:
    """Scores of candidates (columns of `margins`): minus the summed loss relative to the reference model.

    What one record adds is a whole number of 2**-20 and at most `bound` in size; float64 holds sums of those exactly.
    """
    change = margin_loss(kind, reference)[:, None] - margin_loss(kind, margins)
    whole = np.clip(np.rint(change * _LATTICE), -bound * _LATTICE, bound * _LATTICE).astype(np.int64)
    return np.asarray(whole.sum(axis=0) / _LATTICE)


def step_scores(signed: Floats, *, kind: str, model: Floats, step: float, bound: float) -> Floats:
    """Scores of the models that are one step away: up in each coordinate, then down."""
    margin = signed @ model
    moves = (margin[:, None] + way * step * signed[:, [j]] for way in (1, -1) for j in range(model.size))
    return np.concatenate([relative_scores(kind, m, margin, bound) for m in moves])


def pool_scores(signed: Floats, *, kind: str, pool: Floats, bound: float) -> Floats:
    """Scores of all models of a pool, relative to the zero model."""
    return relative_scores(kind, signed @ pool.T, np.zeros(len(signed)), bound)


def lattice_up(size: float) -> float:
    """The next multiple of 2**-20 above a bound, and one more for the rounding."""
    return (int(np.ceil(size * _LATTICE)) + 1) / _LATTICE


class _Search(PrivateClassifier):
    """What both searches share: features, one model per class where there are more than two."""

    loss: str
    rounds: int
    groups: int

    def _train(self, records: Exact[Records], meter: Meter) -> None:
        if self.loss not in ("logistic", "svm"):
            raise InputError(f"loss must be 'logistic' or 'svm', got {self.loss!r}")
        if self.rounds < 1:
            raise InputError(f"a search needs at least one round, got {self.rounds}")
        taxonomies, count = self._coding.taxonomies, len(self._coding.class_labels)
        problems = 1 if count == 2 else count
        nano = Nano(self._budget(meter) // problems)
        rows = records.map(lambda r: (self._features(r.leaves, taxonomies), r.classes))
        size = self._features(np.empty((0, len(taxonomies)), dtype=np.int32), taxonomies).shape[1]

        def signed(c: int) -> Exact[Floats]:
            return rows.map(lambda table: table[0] * np.where(table[1] == c, 1.0, -1.0)[:, None])

        classes = [1] if problems == 1 else range(problems)
        self.coef_ = np.stack([self._search(signed(c), size, meter, nano) for c in classes])

    def _features(self, leaves: NDArray[np.integer], taxonomies: Any) -> Floats:
        return np.asarray(design(leaves, taxonomies, groups=self.groups) * np.sqrt(len(taxonomies) + 1))

    def _search(self, signed: Exact[Floats], size: int, meter: Meter, nano: Nano) -> Floats:
        raise TypeError(f"{type(self).__name__} does not say how it searches")

    def _scores(self, leaves: NDArray[np.int32]) -> Floats:
        scores = self._features(leaves, self._coding.taxonomies) @ self.coef_.T
        return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


@dataclass(kw_only=True, eq=False, repr=False)
class PrivLocal(_Search):
    """Local search, one coordinate at a time.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset
        See `PrivateClassifier`.
    loss : "logistic" or "svm"
    rounds : int
        Number of steps; each costs an equal share.
    step : float
        First change of a coefficient, for features in [-1, 1].
    shrink : float
        Factor by which the step shrinks after each round.
    groups : int
        A category with more values than this is taken at a coarser level of its taxonomy.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> model = PrivLocal(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    >>> model.score(age, ill), model.guarantee_.epsilon <= 1
    (1.0, True)
    """

    loss: str = "logistic"
    rounds: int = 20
    step: float = 0.5
    shrink: float = 0.95
    groups: int = 8

    def _search(self, signed: Exact[Floats], size: int, meter: Meter, nano: Nano) -> Floats:
        if not (self.step > 0 and 0 < self.shrink <= 1):
            raise InputError("the step must be positive and its factor lie in (0, 1]")
        share = Nano(nano // self.rounds)
        model, step = np.zeros(size), float(self.step)
        for _ in range(self.rounds):
            bound = lattice_up(step)
            index = meter.choose(
                signed.map(partial(step_scores, kind=self.loss, model=model, step=step, bound=bound)),
                rate=choice_rate(share, 2.0 * bound),
                spread=2.0 * bound,
                label="one step of a coefficient",
            )
            model = model.copy()
            model[index % size] += step if index < size else -step
            step *= self.shrink
        return model


@dataclass(kw_only=True, eq=False, repr=False)
class PrivGene(_Search):
    """A genetic search over coefficients.

    Parameters
    ----------
    epsilon, schema, target, classes, source, ledger, dataset
        See `PrivateClassifier`.
    loss : "logistic" or "svm"
    rounds : int
        Generations.
    population, parents : int
        Candidates per generation, and how many of them are chosen to have offspring.
    radius : float
        Largest Euclidean norm of the coefficients, for rows of norm at most one.
    groups : int
        A category with more values than this is taken at a coarser level of its taxonomy.

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000)[:, None] % 80
    >>> ill = np.where(age[:, 0] < 40, "no", "yes")
    >>> PrivGene(epsilon=1, schema=schema, target="ill", source=Seeded(1)).fit(age, ill).score(age, ill) > 0.8
    True
    """

    loss: str = "logistic"
    rounds: int = 8
    population: int = 100
    parents: int = 2
    radius: float = 4.0
    groups: int = 8

    def _features(self, leaves: NDArray[np.integer], taxonomies: Any) -> Floats:
        return design(leaves, taxonomies, groups=self.groups)

    def _search(self, signed: Exact[Floats], size: int, meter: Meter, nano: Nano) -> Floats:
        if self.population < self.parents or self.parents < 1 or not self.radius > 0:
            raise InputError("a population holds at least its parents (one or more), and the radius is positive")
        draws = meter.post_processing()
        share = Nano(nano // ((self.rounds - 1) * self.parents + 1))
        # |x| <= 1 and |ω| <= radius, so the loss differs from that of the zero model by at most the radius.
        bound = lattice_up(self.radius)
        rate = choice_rate(share, 2.0 * bound)
        pool = self._inside(draws.normal(size=(self.population, size)))
        spread = 1.0
        for generation in range(self.rounds):
            fitness = signed.map(partial(pool_scores, kind=self.loss, pool=pool, bound=bound))
            wanted = 1 if generation == self.rounds - 1 else self.parents
            chosen = [
                pool[meter.choose(fitness, rate=rate, spread=2.0 * bound, label="choice of a parent")] for _ in range(wanted)
            ]
            if generation < self.rounds - 1:
                pool, spread = self._offspring(np.stack(chosen), spread, draws), spread * 0.7
        return np.asarray(chosen[0])

    def _offspring(self, parents: Floats, spread: float, draws: Generator) -> Floats:
        """Each child takes every coefficient from one of its parents, then one coefficient in four changes a little."""
        size = parents.shape[1]
        source = draws.integers(len(parents), size=(self.population, size))
        children = np.take_along_axis(parents, source, axis=0)
        change = draws.normal(size=children.shape) * (self.radius * spread / np.sqrt(size))
        children = children + change * (draws.random(children.shape) < 0.25)
        children[: len(parents)] = parents
        return self._inside(children)

    def _inside(self, pool: Floats) -> Floats:
        norm = np.linalg.norm(pool, axis=1, keepdims=True)
        return np.asarray(pool * np.minimum(1.0, self.radius / np.maximum(norm, 1e-12)))
