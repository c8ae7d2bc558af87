"""The estimators as mechanisms of the kind "model": one line each, with the parameters that a plan may set.

A parameter has the name that the estimator itself has for it. Nothing here imports scikit-learn: `make` does, when a model
is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sfumato.grids.publishers import diffgen, pph, privpfc, uniform
from sfumato.registry import Mechanism, Parameter, register

if TYPE_CHECKING:
    from sfumato.classifiers.learning import Learner

KIND: Final = "model"
ONE_EPSILON: Final = ("one epsilon",)
_AUTO: Final = ("auto",)

_DEPTH = Parameter(
    "depth", "whole", "largest depth; by default from ε and the number of records", "auto", (), 0, 30, words=_AUTO
)
_CRITERION = Parameter(
    "criterion",
    "text",
    "what a good split is; by default records classified rightly for the last two levels, the Gini index above them",
    "auto",
    choices=("auto", "max", "gini", "information"),
)
_GROUPS = Parameter(
    "groups", "whole", "a category with more values is taken at a coarser level of its taxonomy", 8, (), 1, 10_000
)
_SEARCHED = Parameter("loss", "text", "what the search lowers", "logistic", choices=("logistic", "svm"))
_TIERS = Parameter(
    "tiers",
    "number",
    "with personal budgets: how many times as much the generous may weigh as the strict",
    "as granted",
    low=1,
    high=1e9,
    words=("as granted", "in proportion"),
)
_LINEAR = (
    Parameter("regularization", "number", "least penalty on the coefficients; noise may raise it", 1.0, (), 1e-9, 1e9),
    Parameter(
        "budgeting",
        "text",
        "how personal budgets are used",
        "weighted",
        choices=("weighted", "minimum", "threshold", "sampling", "partition"),
    ),
    Parameter("threshold", "epsilon", "for the budgeting by threshold and by sampling: the ε of the fit"),
    Parameter("parts", "whole", "for the budgeting by partition: how many parts", None, (), 1, 1000),
    Parameter("ensemble", "text", "how models of several parts are combined", "average", choices=("average", "vote")),
)


def _maker(name: str, **fixed: Any) -> Callable[..., Learner]:
    """Makes an estimator by the name of its class, which is imported then and not before."""

    def make(**given: Any) -> Learner:
        found: Learner = getattr(import_module("sfumato.classifiers"), name)(**fixed, **given)
        return found

    return make


def _grid(publisher: Mechanism) -> Callable[..., Learner]:
    """Makes a classifier over the grid of a publisher, whose parameters are its settings."""
    own = {p.name for p in publisher.parameters}
    make = _maker("HistogramClassifier", publisher=publisher.name)

    def make_grid(**given: Any) -> Learner:
        settings = {name: value for name, value in given.items() if name in own}
        return make(**{k: v for k, v in given.items() if k not in own}, settings=settings)

    return make_grid


def _entry(
    name: str,
    make: Callable[..., Learner],
    summary: str,
    *parameters: Parameter,
    personal: bool = True,
    paper: str = "",
) -> Mechanism:
    rank, needs = {"classification": len(MECHANISMS) + 1}, () if personal else ONE_EPSILON
    known = (*parameters, _TIERS) if personal else parameters
    entry = Mechanism(name, (KIND,), make, summary, known, needs, rank=rank, paper=paper)
    MECHANISMS.append(register(entry))
    return entry


MECHANISMS: list[Mechanism] = []
"""In the order of the measured comparison (docs/classifiers.md), the best first."""

_entry("automatic", _maker("AutoClassifier"), "the estimator and its settings from ε, noisy class counts and the schema")
_entry(
    "additive",
    _maker("PrivateAdditive"),
    "a sum of terms over grids of a few columns, boosted in few rounds; every part of it can be drawn",
    Parameter(
        "rounds", "whole", "number of terms; by default from ε and the number of records", "auto", (), 1, 50, words=_AUTO
    ),
    Parameter(
        "columns_per_term",
        "whole",
        "columns in a term at most; 1 gives plain shape functions",
        "auto",
        (),
        1,
        8,
        words=_AUTO,
    ),
    Parameter("candidates", "whole", "grids to choose among at most", "auto", (), 1, 5_000_000, words=_AUTO),
    Parameter("cap", "number", "largest weight of a record once there is a model", 0.5, (), 0.001, 1),
)
_entry(
    "svm",
    _maker("PrivateSVM"),
    "a linear support vector machine by objective perturbation",
    *_LINEAR,
    paper="Chaudhuri, Monteleoni & Sarwate 2011",
)
_entry(
    "logistic-regression",
    _maker("PrivateLogisticRegression"),
    "logistic regression by objective perturbation",
    *_LINEAR,
    paper="Chaudhuri, Monteleoni & Sarwate 2011",
)
_entry(
    "privpfc",
    _grid(privpfc.MECHANISM),
    "a decision tree over the cells of PrivPfC's grid",
    # A model has no use for the columns outside the grid, and a tree on its cells none for their totals.
    *(replace(p, default="clip") if p.name == "cleaning" else p for p in privpfc.MECHANISM.parameters if p.name != "others"),
    paper=privpfc.MECHANISM.paper,
)
_entry(
    "tree",
    _maker("PrivateDecisionTree"),
    "a decision tree: splits by choice, noisy leaves, pruning",
    _DEPTH,
    _CRITERION,
    Parameter("prune", "flag", "whether subtrees that hardly help are cut back", True),
    paper="Friedman & Schuster 2010",
)
_entry(
    "forest",
    _maker("PrivateForest"),
    "such trees over disjoint parts of the records",
    Parameter(
        "trees", "whole", "number of trees; by default from ε and the number of records", "auto", (), 1, 1000, words=_AUTO
    ),
    _DEPTH,
    _CRITERION,
    Parameter("column_share", "number", "share of the columns that a tree may use", 0.8, (), 0.001, 1),
)
_entry(
    "naive-bayes",
    _maker("PrivateNaiveBayes"),
    "one-way class counts; part of ε chooses how far the columns are believed",
    Parameter(
        "temper", "number", "power of the likelihood; 1 is naive Bayes as in books", "auto", (), 0.001, 10, words=_AUTO
    ),
)
for _publisher, _says in (
    (diffgen.MECHANISM, "a decision tree over the cells that DiffGen publishes"),
    (uniform.MECHANISM, "a decision tree over a uniform grid"),
    (pph.MECHANISM, "a decision tree over the cells that PPH publishes"),
):
    _entry(_publisher.name, _grid(_publisher), _says, *_publisher.parameters, personal=False, paper=_publisher.paper)
_entry(
    "output-perturbation",
    _maker("OutputPerturbation"),
    "regularised logistic regression with noise on the coefficients",
    Parameter("noise", "number", "expected length of the noise vector; it decides the penalty", 1.0, (), 1e-6, 1e6),
    _GROUPS,
    personal=False,
    paper="Chaudhuri, Monteleoni & Sarwate 2011",
)
_entry(
    "functional",
    _maker("FunctionalMechanism"),
    "the minimum of a noisy quadratic objective",
    Parameter(
        "loss", "text", "the regression that is replaced by its polynomial", "logistic", choices=("logistic", "linear")
    ),
    _GROUPS,
    personal=False,
    paper="Zhang, Zhang, Xiao, Yang & Winslett 2012",
)
_entry(
    "privlocal",
    _maker("PrivLocal"),
    "coefficients changed one at a time, each step a choice",
    _SEARCHED,
    Parameter("rounds", "whole", "number of steps; each costs an equal share", 20, (), 1, 1000),
    Parameter("step", "number", "first change of a coefficient", 0.5, (), 1e-6, 1e3),
    Parameter("shrink", "number", "factor by which the step shrinks after each round", 0.95, (), 0.01, 1),
    _GROUPS,
    personal=False,
    paper="Su, Cao, Li & Lyu 2018",
)
_entry(
    "privgene",
    _maker("PrivGene"),
    "a genetic search over coefficients",
    _SEARCHED,
    Parameter("rounds", "whole", "generations", 8, (), 1, 100),
    Parameter("population", "whole", "candidates per generation", 100, (), 1, 10_000),
    Parameter("parents", "whole", "how many of them have offspring", 2, (), 1, 100),
    Parameter("radius", "number", "largest Euclidean norm of the coefficients", 4.0, (), 1e-3, 1e3),
    _GROUPS,
    personal=False,
    paper="Zhang, Xiao, Yang, Zhang & Winslett 2013",
)
_entry("majority", _maker("Majority"), "the most frequent class for everybody: what every model has to beat")
