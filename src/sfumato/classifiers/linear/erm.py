"""Private logistic regression and support vector machine, with one ε for all or everybody's own.

scikit-learn estimators over `objective` (one ε) and `personal` (budgets per row). What differs from their non-private
namesakes, because privacy needs it: feature bounds are public input and never read off the data, the intercept is
penalised, there are no sample weights, and more data than rows never helps (one row is one person).

What both share, and why it is private, is in `estimator`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.linear.estimator import LABELS_ARE_PUBLIC as LABELS_ARE_PUBLIC
from sfumato.classifiers.linear.estimator import WIDTH_IS_PUBLIC as WIDTH_IS_PUBLIC
from sfumato.classifiers.linear.estimator import PrivateLinear
from sfumato.privacy.objective import Floats


class PrivateLogisticRegression(PrivateLinear):
    """Logistic regression by objective perturbation.

    Parameters
    ----------
    epsilon : number
        What everybody loses, if `fit` gets no budgets.
    schema, target
        Public domains of the columns and the column that holds the classes, as for the other classifiers.
    bounds : (low, high)
        Without a schema: public bounds of the features, numbers or one per feature. Values beyond are clipped.
    max_norm : float
        Instead of bounds: the largest Euclidean norm of a row; longer rows are scaled back (one-hot data).
    classes : array, optional
        The public class labels; without them the labels in y are taken and the guarantee says so.
    regularization : float
        Least penalty on the coefficients; noise may raise it.
    budgeting : "weighted", "minimum", "threshold", "sampling" or "partition"
        How `budgets` are used.
    threshold, parts
        Parameters of threshold and sampling (in ε), and of partition.
    ensemble : "average" or "vote"
        How labels of several parts are combined.
    tiers : "as granted", "in proportion" or a number
        How much more the generous may weigh than the strict in the weighted fit: as their budgets allow, not at all (for
        budgets that go with the records; more noise), or so many times. `parameters_` holds the lean and the noise.
    neighbours : "absence" or "replacement"
        What the promise compares with: the same rows without one person, or with another record in its place.
    rows : int, optional
        A public number of rows; without it a hundredth of `epsilon` counts them with noise. Not needed with budgets.
    source : Source, optional
        Random bits; secure unless given. `Seeded` is for experiments: the guarantee then says *not private*.
    ledger, dataset
        Where every fit is charged before a row is read, and the table's name there; see `PrivateClassifier`.

    Examples
    --------
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateLogisticRegression(epsilon=1, bounds=(-1, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), str(model.guarantee_.epsilon) <= "1"
    (True, True)
    >>> model = PrivateLogisticRegression(bounds=(-1, 1)).fit(X, y, budgets=np.tile([0.1, 1.0], 2000))
    >>> bool((model.guarantee_.people <= [10**8, 10**9]).all())
    True
    """

    _loss = "logistic"

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the rows of `X`; one-vs-rest probabilities are scaled to add up to one."""
        return self._shares(self._rows(X))

    def _coded_shares(self, leaves: NDArray[np.int32]) -> Floats:
        return self._shares(self._features.rows(leaves))

    def _shares(self, rows: Any) -> Floats:
        scores = self._decided(rows)
        share = 0.5 * (1 + np.tanh(scores / 2))
        if share.ndim == 1:
            return np.stack([1 - share, share], axis=1)
        share = np.maximum(share, 1e-300)
        return np.asarray(share / share.sum(axis=1, keepdims=True))


class PrivateSVM(PrivateLinear):
    """Linear support vector machine with a Huber hinge, by objective perturbation.

    Parameters
    ----------
    epsilon, schema, target, bounds, max_norm, classes, regularization
        See `PrivateLogisticRegression`.
    budgeting, threshold, parts, ensemble, tiers, neighbours, rows, source, ledger, dataset
        See `PrivateLogisticRegression`.

    Examples
    --------
    >>> X = np.sin(np.arange(8000) ** 2).reshape(4000, 2); y = np.where(X[:, 1] > 0, "up", "down")
    >>> bool(PrivateSVM(epsilon=1, bounds=(-1, 1)).fit(X, y).score(X, y) > 0.8)
    True
    """

    _loss = "huber"
