"""How the released numbers of each estimator are laid out in a model file, and checked when they come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.automatic import AutoClassifier
from sfumato.classifiers.counting.additive import PrivateAdditive
from sfumato.classifiers.counting.additive_settings import AdditiveSettings
from sfumato.classifiers.counting.baselines import Majority
from sfumato.classifiers.counting.forest import PrivateForest
from sfumato.classifiers.counting.histogram import CellScores, HistogramClassifier
from sfumato.classifiers.counting.naive_bayes import PrivateNaiveBayes
from sfumato.classifiers.counting.terms import Term
from sfumato.classifiers.counting.tree import Node, PrivateDecisionTree
from sfumato.classifiers.counting.tree_scores import Split
from sfumato.classifiers.linear.erm import PrivateLogisticRegression, PrivateSVM
from sfumato.classifiers.linear.features import Indicators, design
from sfumato.classifiers.linear.functional import FunctionalMechanism
from sfumato.classifiers.linear.local_search import PrivGene, PrivLocal
from sfumato.classifiers.linear.output_perturbation import OutputPerturbation
from sfumato.classifiers.linear.scaling import Scaling
from sfumato.classifiers.model_file import Arrays
from sfumato.errors import InputError
from sfumato.grids.published.base import column_record
from sfumato.grids.published.cuts import ScoreCut
from sfumato.grids.published.synopsis import Synopsis

DEEPEST = 500  # a path of a tree
State = Mapping[str, Any]
Written = tuple[dict[str, Any], Arrays]


def state_of(model: Any) -> Written:
    """The released numbers of a fitted estimator."""
    return _of(model)[0](model)


def restore(model: Any, state: State, arrays: Arrays) -> None:
    """Give them back to an estimator of the same class; the arrays that are used are taken out of `arrays`."""
    _of(model)[1](model, state, arrays)


def _of(model: Any) -> tuple[Callable[[Any], Written], Callable[[Any, State, Arrays], None]]:
    for kind, both in _STATES.items():
        if type(model) is kind:
            return both
    raise InputError(f"a {type(model).__name__} does not say how it is written down")


def _take(arrays: Arrays, name: str, *shape: int | None, kind: str = "f") -> NDArray[Any]:
    """An array by name, of this shape (None is any length)."""
    if name not in arrays:
        raise InputError(f"its array {name!r} is missing")
    array = arrays.pop(name)
    fits = array.ndim == len(shape) and all(w is None or n == w for n, w in zip(array.shape, shape, strict=True))
    if not fits or array.dtype.kind != kind:
        raise InputError(f"its array {name!r} has another shape than its schema asks for")
    return array


def _whole(value: Any, low: int, high: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"its {what} is not a whole number from {low} to {high}")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"its {what} is not a number")
    return float(value)


# --- counts ------------------------------------------------------------------------------------------------------------


def _write_majority(model: Any) -> Written:
    return {}, {"log_counts": model.log_counts_}


def _read_majority(model: Any, _state: State, arrays: Arrays) -> None:
    model.log_counts_ = _take(arrays, "log_counts", model.classes_.size)


def _write_bayes(model: Any) -> Written:
    tables = {f"likelihood_{j}": table for j, table in enumerate(model.log_likelihood_)}
    state = {"levels": [int(level) for level in model.levels_], "temper": float(model.temper_)}
    return state, {"log_prior": model.log_prior_, **tables}


def _read_bayes(model: Any, state: State, arrays: Arrays) -> None:
    taxonomies, classes = model._coding.taxonomies, model.classes_.size
    model.levels_ = tuple(
        _whole(level, 0, t.height - 1, "level") for level, t in zip(state["levels"], taxonomies, strict=True)
    )
    model.temper_ = _number(state["temper"], "power")
    model.log_prior_ = _take(arrays, "log_prior", classes)
    model.log_likelihood_ = tuple(
        _take(arrays, f"likelihood_{j}", classes, t.sizes[level])
        for j, (t, level) in enumerate(zip(taxonomies, model.levels_, strict=True))
    )


def _node_arrays(root: Node, prefix: str) -> Arrays:
    """The nodes of a tree, each before its children."""
    rows: list[list[int]] = []
    counts: list[NDArray[np.float64]] = []
    scales: list[float] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        split = node.split
        rows.append([0] * 6 if split is None else [1, split.column, split.level, split.node, split.start, split.stop])
        counts.append(node.counts)
        scales.append(node.scale)
        waiting.extend(reversed(node.children))
    return {
        f"{prefix}nodes": np.array(rows, dtype=np.int64),
        f"{prefix}counts": np.array(counts, dtype=np.float64),
        f"{prefix}scales": np.array(scales, dtype=np.float64),
    }


def _read_nodes(model: Any, arrays: Arrays, prefix: str) -> Node:
    taxonomies, classes = model._coding.taxonomies, model.classes_.size
    rows = _take(arrays, f"{prefix}nodes", None, 6, kind="i")
    counts = _take(arrays, f"{prefix}counts", len(rows), classes)
    scales = _take(arrays, f"{prefix}scales", len(rows))
    if not len(rows) or (counts < 0).any() or (scales <= 0).any():
        raise InputError("its tree has no nodes, or counts that no tree has")
    made: list[tuple[Node, int]] = []  # from the last node to the first, so that children are there before their parent
    for row, count, scale in zip(rows[::-1].tolist(), counts[::-1], scales[::-1].tolist(), strict=True):
        if not row[0]:
            made.append((Node(None, (), count, scale), 0))
            continue
        taxonomy = taxonomies[_whole(row[1], 0, len(taxonomies) - 1, "column of a split")]
        level = _whole(row[2], -1, taxonomy.height - 1, "level of a split")
        _whole(row[3], 0, taxonomy.sizes[level] - 1, "node of a split")
        _whole(row[4], 0, taxonomy.leaves - 1, "range of a split")
        _whole(row[5], 0, taxonomy.leaves, "range of a split")
        (first, deep), (second, deeper) = made.pop(), made.pop()
        depth = max(deep, deeper) + 1
        if depth > DEEPEST:
            raise InputError("its tree is deeper than any that is grown here")
        leaves = first.leaves + second.leaves
        made.append((Node(Split(row[1], level, *row[3:]), (first, second), count, scale, leaves), depth))
    if len(made) != 1:
        raise InputError("its nodes are not one tree")
    return made[0][0]


def _write_tree(model: Any) -> Written:
    return {}, _node_arrays(model.tree_, "")


def _read_tree(model: Any, _state: State, arrays: Arrays) -> None:
    model.tree_ = _read_nodes(model, arrays, "")


def _write_forest(model: Any) -> Written:
    parts = [_node_arrays(tree, f"tree_{i}_") for i, tree in enumerate(model.trees_)]
    return {"trees": len(parts)}, {name: array for part in parts for name, array in part.items()}


def _read_forest(model: Any, state: State, arrays: Arrays) -> None:
    trees = _whole(state["trees"], 1, len(arrays), "number of trees")
    model.trees_ = tuple(_read_nodes(model, arrays, f"tree_{i}_") for i in range(trees))


def _write_additive(model: Any) -> Written:
    terms = [{"grid": [[int(j), int(v)] for j, v in t.grid], "noise": float(t.noise)} for t in model.terms_]
    arrays = {f"{what}_{i}": getattr(t, what) for i, t in enumerate(model.terms_) for what in ("scores", "mass")}
    return {"terms": terms, "settings": asdict(model.settings_)}, {k: np.asarray(v) for k, v in arrays.items()}


def _read_additive(model: Any, state: State, arrays: Arrays) -> None:
    taxonomies, classes = model._coding.taxonomies, model.classes_.size
    model.settings_ = AdditiveSettings(**state["settings"])
    terms = []
    for i, term in enumerate(state["terms"]):
        grid = tuple((_whole(j, 0, len(taxonomies) - 1, "column"), v) for j, v in term["grid"])
        shape = [taxonomies[j].sizes[_whole(v, 0, taxonomies[j].height - 1, "level")] for j, v in grid]
        scores, mass = _take(arrays, f"scores_{i}", classes, *shape), _take(arrays, f"mass_{i}", *shape)
        terms.append(Term(grid, scores, mass, _number(term["noise"], "noise")))
    model.terms_ = tuple(terms)


def _write_automatic(model: Any) -> Written:
    state, arrays = state_of(model.model_)
    return {"family": model.family_, "model": state}, arrays


def _read_automatic(model: Any, state: State, arrays: Arrays) -> None:
    kinds = {kind.__name__: kind for kind in (Majority, PrivateAdditive)}
    if state["family"] not in kinds:
        raise InputError("it names no family that is chosen automatically")
    inner: Any = kinds[state["family"]](schema=model.schema, target=model.target, classes=model.classes)
    inner._coding, inner.classes_, inner.n_features_in_ = model._coding, model.classes_, model.n_features_in_
    inner.guarantee_ = model.guarantee_
    restore(inner, state["model"], arrays)
    model.family_, model.model_ = state["family"], inner


def _write_grid(model: Any) -> Written:
    from sfumato.classifiers.portable import _plain

    cells = model.cells_
    told = _plain(model.synopsis_.to_dict(), "the grid")
    return {"fallback": int(cells.fallback), "synopsis": told}, {} if cells.table is None else {"cells": cells.table}


def _read_grid(model: Any, state: State, arrays: Arrays) -> None:
    told, classes = state["synopsis"], model.classes_.size
    for cut in told["grid"]:
        for one in cut.get("first_grid", [cut]):
            _check_cut(one, model)
    # The columns are those of the model's schema, whatever else the file says of them.
    synopsis = Synopsis.from_dict(
        {**told, "attributes": [column_record(a.name, a.domain) for a in model._coding.attributes]}
    )
    cells = math.prod(synopsis.shape)
    if synopsis.noisy.shape != (classes, cells):
        raise InputError("its grid is not one over its columns and classes")
    table = _take(arrays, "cells", cells, classes) if "cells" in arrays else None
    model.synopsis_ = synopsis
    model.cells_ = CellScores(synopsis, table, _whole(state["fallback"], 0, classes - 1, "class"))
    if table is not None:
        _check_first_grids(synopsis)


def _check_cut(cut: Mapping[str, Any], model: Any) -> None:
    taxonomies = model._coding.taxonomies
    leaves = taxonomies[_whole(cut["attribute"], 0, len(taxonomies) - 1, "column of a cut")].leaves
    starts = cut["starts"]
    rising = all(a < b for a, b in pairwise(_whole(n, 0, leaves - 1, "cut") for n in starts))
    if cut["leaves"] != leaves or not starts or starts[0] != 0 or not rising or len(cut["groups"]) != len(starts):
        raise InputError("a cut of its grid does not divide its column")


def _check_first_grids(synopsis: Synopsis) -> None:
    """The scores of a first grid must be there for each of its cells."""
    for cut in synopsis.cuts:
        if isinstance(cut, ScoreCut):
            cells = math.prod(c.size for c in cut.inner)
            if cut.bucket.shape != (cells,) or not ((cut.bucket >= 0) & (cut.bucket <= 10)).all():
                raise InputError("its first grid has no score for each of its cells")


# --- coefficients ------------------------------------------------------------------------------------------------------


def _write_coefficients(model: Any) -> Written:
    return {}, {"coef": model.coef_}


def _read_coefficients(model: Any, _state: State, arrays: Arrays) -> None:
    taxonomies, classes = model._coding.taxonomies, model.classes_.size
    _whole(model.groups, 1, 1 << 30, "number of groups")
    none = np.empty((0, len(taxonomies)), dtype=np.int32)
    width = design(none, taxonomies, groups=model.groups).shape[1]
    model.coef_ = _take(arrays, "coef", 1 if classes == 2 else classes, width)


def _write_linear(model: Any) -> Written:
    from sfumato.classifiers.portable import _plain

    features, arrays = model._features, {"models": model._models, "weights": model._weights}
    if isinstance(features, Indicators):
        told: dict[str, Any] = {"groups": int(features.groups), "lines": bool(features.lines)}
    else:
        told = {"most": features.most}
        arrays |= {"low": np.array(features.low), "high": np.array(features.high)}
    names = getattr(model, "feature_names_in_", None)
    told |= {"names": None if names is None else [str(n) for n in names]}
    return {"features": told, "parameters": _plain(model.parameters_, "parameters")}, arrays


def _read_linear(model: Any, state: State, arrays: Arrays) -> None:
    told, classes = state["features"], model.classes_.size
    if model.schema is not None:
        groups = _whole(told["groups"], 1, 1 << 40, "number of groups")
        model._features = Indicators(model._coding.taxonomies, groups, told["lines"] is True)
    else:
        low, high = (_take(arrays, end, model.n_features_in_) for end in ("low", "high"))
        model._features = Scaling.of(low.size, (low, high), None)
        if told["most"] is not None:
            model._features = Scaling(low, high, _number(told["most"], "norm"))
        if isinstance(told["names"], list) and len(told["names"]) == model.n_features_in_:
            model.feature_names_in_ = np.array([str(n) for n in told["names"]], dtype=object)
    problems = 1 if classes == 2 else classes
    model._models = _take(arrays, "models", problems, None, model._features.dimension)
    model._weights = _take(arrays, "weights", problems, model._models.shape[1])
    if not model._models.shape[1] or not (model._weights.sum(axis=1) > 0).all():
        raise InputError("it has no models, or none that counts")
    model._check_settings()
    model._average()
    model.parameters_, model.n_iter_ = dict(state["parameters"]), 1


_STATES: dict[type, tuple[Callable[[Any], Written], Callable[[Any, State, Arrays], None]]] = {
    Majority: (_write_majority, _read_majority),
    PrivateNaiveBayes: (_write_bayes, _read_bayes),
    PrivateDecisionTree: (_write_tree, _read_tree),
    PrivateForest: (_write_forest, _read_forest),
    PrivateAdditive: (_write_additive, _read_additive),
    AutoClassifier: (_write_automatic, _read_automatic),
    HistogramClassifier: (_write_grid, _read_grid),
    FunctionalMechanism: (_write_coefficients, _read_coefficients),
    PrivLocal: (_write_coefficients, _read_coefficients),
    PrivGene: (_write_coefficients, _read_coefficients),
    OutputPerturbation: (_write_coefficients, _read_coefficients),
    PrivateLogisticRegression: (_write_linear, _read_linear),
    PrivateSVM: (_write_linear, _read_linear),
}
ESTIMATORS = {kind.__name__: kind for kind in _STATES}
"""Every estimator that can be written down, by the name of its class."""
