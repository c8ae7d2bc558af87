"""Fitted estimators as plain JSON and arrays, and back: the same predictions, bit by bit.

What is written is what a prediction needs: the public schema, the classes, the settings and the numbers that the Meter gave
back (all of it released already). `from_portable` makes an estimator of a class from the list of `sfumato.classifiers`,
never of a name that a file invents, and checks every array against the schema before anything is predicted. How the numbers
of each estimator are laid out is in `portable_states`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import __version__
from sfumato.classifiers.model_file import Arrays
from sfumato.errors import InputError
from sfumato.privacy.guarantee import Guarantee
from sfumato.records.coding import Coding
from sfumato.tables.schema import Schema

MOST_LEAVES = 5_000_000  # cells of all columns one after the other
NOT_WRITTEN = ("schema", "source", "ledger", "dataset", "estimator", "grid")
BROKEN = "{what} is not a model that Sfumato wrote: {why}; get it again from whoever released it"


def to_portable(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a fitted estimator."""
    from sfumato.classifiers.portable_states import state_of

    state, arrays = state_of(estimator)
    schema = getattr(estimator, "schema", None)
    return {
        "software": {"name": "sfumato", "version": __version__},
        "estimator": type(estimator).__name__,
        "settings": {k: _plain(v, k) for k, v in estimator.get_params(deep=False).items() if k not in NOT_WRITTEN},
        "schema": None if schema is None else schema.to_toml(),
        "classes": [_plain(c, "a class") for c in np.asarray(estimator.classes_).tolist()],
        "features": int(estimator.n_features_in_),
        "guarantee": estimator.guarantee_.to_dict(),
        "state": state,
    }, arrays


def from_portable(header: Mapping[str, Any], arrays: Arrays, *, what: str = "this") -> Any:
    """The estimator that `to_portable` wrote down.

    Parameters
    ----------
    header : mapping
        What is no array.
    arrays : dict of str to array
        The arrays by name.
    what : str
        What to call it in a message.

    Returns
    -------
    fitted estimator
    """
    try:
        return _restored(header, arrays)
    except InputError as error:
        reason = str(error)
    except Exception as error:  # a file may be wrong in any way
        reason = f"it cannot be put together ({type(error).__name__})"
    raise InputError(BROKEN.format(what=what, why=reason))


def _restored(header: Mapping[str, Any], arrays: Arrays) -> Any:
    from sfumato.classifiers.portable_states import ESTIMATORS, restore

    name = header["estimator"]
    if name not in ESTIMATORS:
        raise InputError(f"it names no estimator of this version ({str(name)[:40]!r})")
    schema = None if header["schema"] is None else schema_of(header["schema"])
    made = ESTIMATORS[name]()
    known = set(made.get_params(deep=False)) - set(NOT_WRITTEN)
    made.set_params(**{k: _plain(v, k) for k, v in header["settings"].items() if k in known}, schema=schema)
    made.classes_ = _label_array(header["classes"])
    made.n_features_in_ = int(header["features"])
    if schema is None and not hasattr(made, "bounds"):
        raise InputError("it has no schema, without which its rows mean nothing")
    if schema is not None:
        coding = Coding.of(schema, target=made.target, classes=None if made.target is not None else header["classes"])
        if len(coding.attributes) != made.n_features_in_ or coding.classes.tolist() != made.classes_.tolist():
            raise InputError("its schema and its classes do not agree")
        made._coding, made.classes_ = coding, coding.classes
    made.guarantee_ = Guarantee.from_dict(header["guarantee"])
    left = dict(arrays)
    restore(made, header["state"], left)
    if left:
        raise InputError(f"nobody asks for its array {min(left)!r}")
    if schema is not None:  # what does not fit together shows here and not in somebody's table
        tried = np.stack([np.full(made.n_features_in_, leaf, dtype=np.int32) for leaf in (0, -1)])
        made._coded_labels(tried)
    return made


def schema_of(text: Any) -> Schema:
    """The schema in a model file, TOML text: never the name of a file, and with a bounded number of cells."""
    if not isinstance(text, str):
        raise InputError("its schema is not the text of one")
    plain, what, cells = tomllib.loads(text), "the schema of the model", 0
    if any("values_file" in column for column in plain["columns"].values()):
        raise InputError("its schema asks for a file of values: nothing is read from elsewhere")
    for name, column in plain["columns"].items():  # one at a time: the first that are too many are the last that are made
        cells += Schema.from_mapping({"columns": {name: column}}, what=what)[name].size
        if cells > MOST_LEAVES:
            raise InputError(f"its columns have more than {MOST_LEAVES:,} cells one after the other")
    return Schema.from_mapping(plain, what=what)


def _label_array(labels: Any) -> NDArray[Any]:
    if not isinstance(labels, list) or len(labels) < 2 or any(isinstance(v, list | dict) for v in labels):
        raise InputError("it has no list of at least two classes")
    array = np.asarray(labels)
    return array if array.dtype.kind in "biufU" else np.array(labels, dtype=object)


def _plain(value: Any, what: str) -> Any:
    """Numbers, text and lists as JSON has them."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v, what) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v, what) for k, v in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        json.dumps(value, allow_nan=False)
        return value
    if type(value).__module__ in ("decimal", "fractions"):
        return str(value)
    raise InputError(f"{what!r} of the model is a {type(value).__name__}, which a model file cannot hold")
