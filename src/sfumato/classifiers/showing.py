"""What a fitted model says, as a table, a picture and a few sentences. Everything shown has been released already.

Linear models show their coefficients, additive ones their shape functions, naive Bayes what each value says about the
classes, trees their rules, grids their cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.classifiers.automatic import AutoClassifier
from sfumato.classifiers.counting.additive import PrivateAdditive
from sfumato.classifiers.counting.additive_plot import plot_column, used_columns
from sfumato.classifiers.counting.baselines import Majority
from sfumato.classifiers.counting.forest import PrivateForest
from sfumato.classifiers.counting.histogram import HistogramClassifier
from sfumato.classifiers.counting.naive_bayes import PrivateNaiveBayes
from sfumato.classifiers.counting.tree import Node, PrivateDecisionTree
from sfumato.classifiers.linear.erm import PrivateLogisticRegression, PrivateSVM
from sfumato.classifiers.linear.features import design_names
from sfumato.palette import BLUE, VERMILION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_BARS = 18
LINEAR = (PrivateLogisticRegression, PrivateSVM)


def plain_model(model: Any) -> Any:
    """The model itself, where another one only chose it."""
    return model.model_ if isinstance(model, AutoClassifier) else model


def frame_of(model: Any) -> pd.DataFrame:
    """The figures of a model as a table."""
    import pandas as pd

    model = plain_model(model)
    if isinstance(model, PrivateDecisionTree | PrivateForest):
        rules = list(_rules(model))
        return pd.DataFrame(rules, columns=["tree", "rule", "predicts", *(f"records: {c}" for c in class_names(model))])
    if isinstance(model, HistogramClassifier):
        return _cells(model)
    said, unit = list(_said(model)), unit_of(model)
    return pd.DataFrame(said, columns=["column", "value", "class", unit])


def class_names(model: Any) -> list[str]:
    """The classes as the schema calls them."""
    found: list[str] = model.class_names()
    return found


def unit_of(model: Any) -> str:
    """What the numbers in the table of a model are."""
    model = plain_model(model)
    if isinstance(model, Majority):
        return "log count"
    if isinstance(model, PrivateAdditive):
        return "score"
    return "log-likelihood" if isinstance(model, PrivateNaiveBayes) else "coefficient"


def _said(model: Any) -> Iterator[tuple[str, str, str, float]]:
    """Column, value, class, number."""
    classes = class_names(model)
    if isinstance(model, Majority):
        yield from (("", "everybody", c, float(n)) for c, n in zip(classes, model.log_counts_, strict=True))
    elif isinstance(model, PrivateAdditive):
        constant = np.sum([t.scores for t in model.terms_ if not t.grid], axis=0)
        if np.ndim(constant):
            yield from (("", "everybody", c, float(s)) for c, s in zip(classes, constant, strict=True))
        for name in used_columns(model):
            labels = next(t for t in model._coding.taxonomies if t.name == name).labels[-1]
            for c, scores in zip(classes, model.shape(name), strict=True):
                yield from ((name, label, c, float(s)) for label, s in zip(labels, scores, strict=True))
    elif isinstance(model, PrivateNaiveBayes):
        yield from (("", "prior", c, float(p)) for c, p in zip(classes, model.log_prior_, strict=True))
        for taxonomy, level, table in zip(model._coding.taxonomies, model.levels_, model.log_likelihood_, strict=True):
            for c, scores in zip(classes, model.temper_ * table, strict=True):
                pairs = zip(taxonomy.labels[level], scores, strict=True)
                yield from ((taxonomy.name, label, c, float(s)) for label, s in pairs)
    else:
        rows, names = _coefficients(model)
        for c, row in zip(classes[-len(rows) :], rows, strict=True):
            yield from ((name, value, c, float(n)) for (name, value), n in zip(names, row, strict=True))


def _coefficients(model: Any) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """One row per class (of two, for the second), the constant last."""
    if not isinstance(model, LINEAR):
        return model.coef_, design_names(model._coding.taxonomies, groups=model.groups)
    rows = np.hstack([model.coef_, model.intercept_[:, None]])
    if model.schema is not None:
        return rows, model._features.names()
    names = getattr(model, "feature_names_in_", [f"column {j + 1}" for j in range(model.n_features_in_)])
    return rows, [*((str(n), "per unit") for n in names), ("", "constant")]


def _rules(model: Any) -> Iterator[list[Any]]:
    """The leaves of every tree: how a row gets there, and the noisy class counts."""
    trees = model.trees_ if isinstance(model, PrivateForest) else (model.tree_,)
    for number, tree in enumerate(trees, start=1):
        waiting: list[tuple[Node, tuple[str, ...]]] = [(tree, ())]
        while waiting:
            node, path = waiting.pop()
            if node.split is None:
                best = class_names(model)[int(node.counts.argmax())]
                yield [number, " and ".join(path) or "everybody", best, *map(float, node.counts)]
                continue
            for group in reversed(range(len(node.children))):
                words = node.split.words(group, model._coding.taxonomies)
                waiting.append((node.children[group], (*path, words)))


def _cells(model: Any) -> pd.DataFrame:
    frame: pd.DataFrame = model.synopsis_.to_frame()
    table, classes = model.cells_.table, class_names(model)
    best = np.full(len(frame), model.cells_.fallback) if table is None else table.argmax(axis=1)
    frame["predicts"] = [classes[i] for i in best]
    return frame


# --- pictures ----------------------------------------------------------------------------------------------------------


def draw(model: Any, ax: Axes | None) -> Axes:
    """The picture of a model on one pair of axes."""
    import matplotlib.pyplot as plt

    model = plain_model(model)
    if isinstance(model, HistogramClassifier):
        drawn: Axes = model.synopsis_.plot(ax)
        return drawn
    if isinstance(model, PrivateAdditive) and used_columns(model):
        return plot_column(model, None, ax)  # type: ignore[no-any-return]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    labels, numbers, words = _bars(model)
    order = np.argsort(-np.abs(numbers), kind="stable")[:MOST_BARS][::-1]
    place = np.arange(order.size)
    ax.barh(place, numbers[order], color=[BLUE if numbers[i] >= 0 else VERMILION for i in order])
    ax.set_yticks(place, [labels[i] for i in order], fontsize=7)
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set_xlabel(words)
    return ax


def _bars(model: Any) -> tuple[list[str], np.ndarray[Any, Any], str]:
    """What is drawn as bars: names, numbers and the label of the axis."""
    frame = frame_of(model)
    first, last = class_names(model)[0], class_names(model)[-1]
    if "rule" in frame:
        counts = frame[[c for c in frame.columns if str(c).startswith("records: ")]].to_numpy() + 1.0
        share = counts[:, -1] / counts.sum(axis=1)
        return frame["rule"].tolist(), share, f"noisy share of {last}"
    unit = unit_of(model)
    if unit == "coefficient" and model.classes_.size == 2:
        names = [f"{r[0]} {r[1]}".strip() for r in frame.itertuples(index=False)]
        return names, frame[unit].to_numpy(), f"coefficient for {last}"
    if model.classes_.size == 2:  # what a value says for the second class against the first
        wide = frame.pivot_table(index=["column", "value"], columns="class", values=unit, sort=False)
        odds = (wide[last] - wide[first]).to_numpy()
        return [f"{c} {v}".strip() for c, v in wide.index], odds, f"log-odds of {last}"
    return [_label(r) for r in frame.itertuples(index=False)], frame[unit].to_numpy(), unit


def _label(row: Any) -> str:
    return f"{row[0]} {row[1]}: {row[2]}".strip()


def sentences(model: Any) -> list[str]:
    """What a reader should know first: which columns it uses, which it does not."""
    inner = plain_model(model)
    names = list(inner._coding.names) if getattr(inner, "schema", None) is not None else []
    used = [n for n in names if n in used_by(inner)]
    said = [f"It predicts {' or '.join(class_names(inner))}."]
    if isinstance(model, AutoClassifier):
        said.append(f"The automatic choice was {model.family_}.")
    if names:
        said.append(
            f"It looks at {', '.join(used)}." if used else "It looks at no column: it predicts the same for everybody."
        )
    if used and len(used) < len(names):
        said.append(f"It does not look at {', '.join(n for n in names if n not in used)}.")
    return said


def used_by(model: Any) -> set[str]:
    """The columns that a prediction depends on."""
    model = plain_model(model)
    names = model._coding.names
    if isinstance(model, Majority):
        return set()
    if isinstance(model, PrivateAdditive):
        return set(used_columns(model))
    if isinstance(model, HistogramClassifier):
        return set(names) - set(model.synopsis_.not_in_grid()) if model.cells_.table is not None else set()
    if isinstance(model, PrivateDecisionTree | PrivateForest):
        found: set[str] = set()
        waiting = list(model.trees_ if isinstance(model, PrivateForest) else (model.tree_,))
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children)
            found |= set() if node.split is None else {names[node.split.column]}
        return found
    return set(names)
