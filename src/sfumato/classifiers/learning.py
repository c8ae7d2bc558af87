"""What every estimator can do beside `fit`: learn from coded records, pay a ledger, and be written down.

`learn` is how a release trains a model: the records come from the engine that holds the table (`records.reading`), coded by
the public schema, and the Meter is that of the release. It is the same training as `fit`'s, so the same proof holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sfumato.classifiers.charging import charged
from sfumato.errors import InputError
from sfumato.privacy import Exact, Guarantee, Meter, PersonBudgets
from sfumato.records.coding import Coding

if TYPE_CHECKING:
    from sfumato.classifiers.model_file import Arrays

Floats = NDArray[np.float64]


class Learner:
    """An estimator that learns from coded records.

    Attributes
    ----------
    takes_budgets : bool
        Whether people may have an ε of their own.
    takes_counts : bool
        Whether a row of the records may stand for several equal ones: then the engine's counts are used as they are.
    """

    takes_budgets: ClassVar[bool] = False
    takes_counts: ClassVar[bool] = False

    if TYPE_CHECKING:
        _coding: Coding
        classes_: NDArray[Any]
        guarantee_: Guarantee
        ledger_entry_: int
        ledger_spent_: Decimal

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def learn(self, coding: Coding, records: Exact[Any], meter: Meter, *, budgets: PersonBudgets | None = None) -> Self:
        """Train on coded records, through a Meter that is somebody else's.

        Parameters
        ----------
        coding : Coding
            The public columns and classes.
        records : Exact of Records
            The rows; with `budgets`, of pairs of records and the person group of each row.
        meter : Meter
            Pays and draws.
        budgets : PersonBudgets, optional
            What each person group may lose, for an estimator that takes budgets.

        Returns
        -------
        self
        """
        if budgets is not None and not self.takes_budgets:
            raise InputError(
                f"{type(self).__name__} has one ε for all: give epsilon, or take an estimator that takes budgets"
            )
        self._coding, self.classes_, self.n_features_in_ = coding, coding.classes, len(coding.attributes)
        self._learn(records, meter, budgets)
        self.meter_ = meter
        self.guarantee_ = meter.guarantee()
        return self

    def _learn(self, records: Exact[Any], meter: Meter, budgets: PersonBudgets | None) -> None:
        raise TypeError(f"{type(self).__name__} does not say how it learns from records")

    def class_names(self) -> list[str]:
        """The classes as the schema calls them: labels where a column has some, else the values as text."""
        schema, target = getattr(self, "schema", None), getattr(self, "target", None)
        if schema is not None and target is not None:
            return list(schema[target].labels())
        return [str(c) for c in self.classes_]

    # --- coded rows: what a prediction needs once a table was coded by the schema --------------------------------------

    def _coded_labels(self, leaves: NDArray[np.int32]) -> NDArray[Any]:
        raise TypeError(f"{type(self).__name__} does not say how it predicts")

    def _coded_shares(self, leaves: NDArray[np.int32]) -> Floats:
        raise InputError(f"{type(self).__name__} gives no probabilities; leave out --proba, or take another estimator")

    # --- a ledger ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _charged(self, meter: Meter) -> Iterator[None]:
        """The charge of a fit, if the estimator has a ledger: reserved before anything is read, never given back."""
        with charged(self, meter) as entry:
            yield
        if entry is not None:
            self.ledger_entry_, self.ledger_spent_ = entry.id, entry.spent()

    # --- a model file ------------------------------------------------------------------------------------------------

    def to_portable(self) -> tuple[dict[str, Any], Arrays]:
        """The fitted model as plain JSON and arrays of numbers, without pickle.

        Returns
        -------
        dict
            What is no array: estimator, settings, schema, classes, promise.
        dict of str to array
            The arrays by name.
        """
        from sfumato.classifiers.portable import to_portable

        check_is_fitted(self, "guarantee_")
        return to_portable(self)

    def save(self, folder: str | Path) -> Path:
        """Write the fitted model to `folder` as ``model.json`` and ``model.npz``; `sfumato.load` reads it back.

        Parameters
        ----------
        folder : path
            Made if it is not there; a model that is in it is not overwritten.

        Returns
        -------
        Path
        """
        from sfumato.classifiers.model_file import write_model

        return write_model(Path(folder), *self.to_portable())
