"""How all benches print: mean ± standard error with the number of draws, and a mark where a setting was tuned on the set.

A figure is a mapping with `mean`, `se` (None where a single draw gives none), `draws`, and for classifiers `auc` and
`balanced` with their own `_se`. A table has one row per method and one column per case. What was tuned on a set, in part or
in whole, is in `TUNED`; its figures there are no independent test, so they get a mark and the table a footnote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARK = "†"
FOOTNOTE = f"{MARK} Some of this method's rules were set while looking at this data set: no independent test."
TUNED: dict[str, tuple[str, ...]] = {
    "AutoClassifier": ("adult", "bank"),
    "PrivateAdditive": ("adult", "bank"),
    "HistogramClassifier": ("adult", "bank"),
    "PrivPfC": ("adult", "bank"),
    "privpfc": ("adult", "bank"),
    "auto": ("adult", "bank"),
    "PrivateNaiveBayes": ("adult", "bank"),
    "PrivateDecisionTree": ("adult", "bank"),
    "PrivateForest": ("adult", "bank"),
    "PrivateLogisticRegression": ("adult", "bank"),
    "PrivateSVM": ("adult", "bank"),
}
"""Methods with rules that were set on some data sets, by the method's name (before a comma) and the set's."""
NAMES = {"": "misclassified", "auc": "area under the curve", "balanced": "balanced accuracy"}


def short(value: float, digits: int = 3) -> str:
    """A share without its leading zero.

    >>> short(0.1484), short(-0.0203), short(1.0), short(12.5)
    ('.148', '-.020', '1.000', '12.500')
    """
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def cell(figure: Mapping[str, Any], measure: str = "", *, digits: int = 3) -> str:
    """Mean ± standard error of the share misclassified, or of another measure; the mean alone for one draw.

    >>> figure = {"mean": 0.1484, "se": 0.0012, "draws": 5, "auc": 0.9, "auc_se": None}
    >>> cell(figure), cell(figure, "auc")
    ('.148 ± .001', '.900')
    """
    mean, error = (figure["mean"], figure.get("se")) if not measure else (figure[measure], figure.get(f"{measure}_se"))
    return short(mean, digits) + (f" ± {short(error, digits)}" if error is not None and figure["draws"] > 1 else "")


def said(figure: Mapping[str, Any]) -> str:
    """One line for the progress of a bench.

    >>> said({"mean": 0.2, "se": 0.01, "draws": 2, "auc": 0.8, "auc_se": 0.02, "balanced": 0.7, "balanced_se": 0.01})
    '.2000 ± .0100, AUC .800 ± .020, balanced .700 ± .010 (2 draws)'
    """
    parts = [cell(figure, digits=4)]
    parts += [f"{name} {cell(figure, key)}" for name, key in (("AUC", "auc"), ("balanced", "balanced")) if key in figure]
    return f"{', '.join(parts)} ({counted(figure['draws'])})"


def counted(draws: int) -> str:
    """How many draws, in words.

    >>> counted(1), counted(5)
    ('1 draw', '5 draws')
    """
    return f"{draws} draw" + ("" if draws == 1 else "s")


def tuned(method: str, data_set: str) -> bool:
    """Whether rules of the method were set while looking at that data set.

    >>> tuned("PrivPfC, tree", "adult"), tuned("PrivPfC, tree", "census"), tuned("DP-EBM", "adult")
    (True, False, False)
    """
    return data_set.split(",")[0] in TUNED.get(method.split(",")[0], ())


def markdown(title: str, found: Mapping[str, Mapping[str, Mapping[str, Any]]], measure: str = "", *, digits: int = 3) -> str:
    """A table by method (rows) and case, such as ε (columns); `title` begins with the data set's name.

    >>> figures = {"mean": 0.2, "se": 0.01, "draws": 3}
    >>> print(markdown("adult", {"PrivPfC, tree": {"1": figures}, "Majority": {"1": {**figures, "draws": 1}}}))
    | adult, misclassified, ε = | 1 | draws |
    |---|---|---|
    | PrivPfC, tree † | .200 ± .010 | 3 |
    | Majority | .200 | 1 |
    <BLANKLINE>
    † Some of this method's rules were set while looking at this data set: no independent test.
    """
    shown = {name: by_case for name, by_case in found.items() if not measure or measure in next(iter(by_case.values()))}
    cases = list(dict.fromkeys(case for by_case in shown.values() for case in by_case))
    lines = [f"| {title}, {NAMES.get(measure, measure)}, ε = | " + " | ".join(cases) + " | draws |"]
    lines.append("|---" * (len(cases) + 2) + "|")
    marked = False
    for name, by_case in shown.items():
        mark = f" {MARK}" if tuned(name, title) else ""
        marked = marked or bool(mark)
        cells = [cell(by_case[case], measure, digits=digits) if case in by_case else "" for case in cases]
        draws = sorted({int(figure["draws"]) for figure in by_case.values()})
        lines.append(f"| {name}{mark} | " + " | ".join(cells) + f" | {' to '.join(map(str, draws))} |")
    return "\n".join(lines + (["", FOOTNOTE] if marked else []))


def all_measures(title: str, found: Mapping[str, Any], measures: Sequence[str] = ("", "auc", "balanced")) -> str:
    """The tables of a data set, one per measure."""
    return "\n\n".join(markdown(title, found, measure) for measure in measures)
