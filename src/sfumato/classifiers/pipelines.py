"""What happens around a private estimator and is not private: found by how a pipeline is built, never by looking at rows.

A private estimator promises something about the rows that it is *given*. A scaler that was fitted on them before, a search
that compares exact scores, a stack that fits it again and again: each looks at the rows without noise, or costs ε once more,
and no guarantee speaks of it.

What can be seen is the structure: `check_pipeline` reads the steps of a pipeline, and an estimator that is fitted *by* a
scikit-learn `Pipeline` looks at the steps before it and warns. What cannot be seen is what was done before: rows that
``scaler.fit_transform`` changed in an earlier cell of a notebook are numbers like any others. A check whether the columns
happen to have mean 0 would find some of these, and its warning would tell of the data: whether it appears depends on private
rows. So there is none. Give raw rows and a public schema (or public bounds); the estimators scale by those.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

from sfumato.classifiers.fits import CountedFits
from sfumato.errors import PrivacyWarning

_NOTHING_LEARNT = {
    "FunctionTransformer",
    "Normalizer",
    "Binarizer",
    "PolynomialFeatures",
    "FeatureHasher",
    "HashingVectorizer",
}
_LISTED = {"OneHotEncoder", "OrdinalEncoder"}
_FRAMES = 40  # how far up a fit looks for the pipeline that called it


def check_pipeline(estimator: Any) -> list[str]:
    """What around a private estimator looks at rows without noise, or fits it more than once. Reads no data.

    Parameters
    ----------
    estimator : scikit-learn estimator
        A pipeline, a search, a meta-estimator or a private estimator itself.

    Returns
    -------
    list of str
        A sentence for each finding; empty if nothing was found. A transformer that is not known is taken to learn.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from sfumato.classifiers import PrivateSVM
    >>> check_pipeline(make_pipeline(Normalizer(), PrivateSVM(bounds=(-1, 1))))
    []
    >>> [found.split(" learns ")[0] for found in check_pipeline(make_pipeline(StandardScaler(), PrivateSVM()))]
    ["step 'standardscaler' (StandardScaler)"]
    """
    return list(_findings(estimator))


def _findings(estimator: Any) -> Iterator[str]:
    if not _holds_private(estimator) or isinstance(estimator, CountedFits) or type(estimator).__name__ == "PrivateSearch":
        return
    made = type(estimator).__name__
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list):
        for name, step in steps[:-1]:
            if _learns(step):
                yield (
                    f"step {name!r} ({type(step).__name__}) learns from the rows without noise before a private estimator "
                    "sees them, and no guarantee covers that: leave it out and give a public schema or public bounds"
                )
        yield from _findings(steps[-1][1])
        return
    if any(hasattr(estimator, part) for part in ("param_grid", "param_distributions")):
        yield (
            f"{made} fits a private estimator once per candidate and fold, each at its full ε, and compares exact scores of "
            "private rows: sfumato.classifiers.PrivateSearch chooses within one ε"
        )
    else:
        yield f"{made} fits private estimators inside itself, perhaps several times: every fit costs its full ε"
    for inner in _inner(estimator):
        yield from _findings(inner)


def _holds_private(estimator: Any) -> bool:
    if isinstance(estimator, CountedFits) or type(estimator).__name__ == "PrivateSearch":
        return True
    return any(_holds_private(inner) for inner in _inner(estimator))


def _inner(estimator: Any) -> list[Any]:
    """The estimators that another one is made of."""
    found = [getattr(estimator, "estimator", None), getattr(estimator, "final_estimator", None)]
    for name in ("steps", "estimators", "transformer_list", "transformers"):
        listed = getattr(estimator, name, None)
        found += [part[1] if isinstance(part, tuple) else part for part in listed] if isinstance(listed, list) else []
    return [part for part in found if part is not None and not isinstance(part, str | type)]


def _learns(step: Any) -> bool:
    """Whether a transformer takes anything from the rows that it is fitted on."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return False
    made = type(step).__name__
    if made in ("Pipeline", "FeatureUnion", "ColumnTransformer"):
        return any(_learns(inner) for inner in _inner(step))
    if made in _LISTED:
        return isinstance(getattr(step, "categories", "auto"), str)  # "auto" reads them off the rows
    if made in _NOTHING_LEARNT:
        return False
    try:
        from sklearn.utils import get_tags

        return bool(get_tags(step).requires_fit)
    except Exception:  # no estimator of scikit-learn's
        return True


def warn_of_pipeline(stacklevel: int = 3) -> None:
    """Warn where a scikit-learn pipeline that learns from rows is what calls this fit."""
    pipeline = _calling_pipeline()
    for found in () if pipeline is None else check_pipeline(pipeline):
        warnings.warn(found, PrivacyWarning, stacklevel=stacklevel)


def _calling_pipeline() -> Any:
    """The outermost scikit-learn pipeline among the callers; None if there is none, or if nobody uses them."""
    module = sys.modules.get("sklearn.pipeline")
    found, frame = None, sys._getframe(1)
    for _ in range(_FRAMES):
        caller = frame.f_back if module is not None else None
        if caller is None:
            break
        frame = caller
        owner = frame.f_locals.get("self") if frame.f_code.co_name.startswith("fit") else None
        if module is not None and isinstance(owner, module.Pipeline):
            found = owner
    return found
