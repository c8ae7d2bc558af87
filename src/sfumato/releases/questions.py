"""The questions that can be asked of a `Table`, one method each: what a plan's ``[[release]]`` says, in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sfumato.releases.asking import Common
from sfumato.results import Result

if TYPE_CHECKING:
    from sfumato.classifiers.released import Model
    from sfumato.grids import Network, Synopsis
    from sfumato.histograms import Histogram
    from sfumato.people import Estimate


class Questions(ABC):
    """A method for every kind of release; what they have in common is described at `Table`."""

    @abstractmethod
    def _release(self, kind: str, given: Mapping[str, Any], common: Mapping[str, Any]) -> Result:
        """Price, charge, read; or bring back what was paid for."""

    def count(
        self,
        *,
        where: str | None = None,
        selectivity: float | None = None,
        **common: Unpack[Common],
    ) -> Estimate:
        """How many rows satisfy a condition.

        Parameters
        ----------
        where : str, optional
            The condition; everybody if left out.
        selectivity : float, optional
            A public guess of the share of rows that satisfy it.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate
        """
        asked = {"where": where, "selectivity": selectivity}
        return cast("Estimate", self._release("count", asked, common))

    def sum(self, column: str, *, where: str | None = None, **common: Unpack[Common]) -> Estimate:
        """The sum of a numeric column over the rows that satisfy a condition.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate
        """
        asked = {"column": column, "where": where}
        return cast("Estimate", self._release("sum", asked, common))

    def mean(self, column: str, *, where: str | None = None, **common: Unpack[Common]) -> Estimate:
        """The mean of a numeric column over the rows that satisfy a condition.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate
        """
        asked = {"column": column, "where": where}
        return cast("Estimate", self._release("mean", asked, common))

    def histogram(
        self,
        *columns: str,
        where: str | None = None,
        purpose: str | None = None,
        bin_budgets: Sequence[float] | None = None,
        **common: Unpack[Common],
    ) -> Histogram:
        """Counts per cell of one or more columns.

        Parameters
        ----------
        columns : str
            Names of columns.
        where : str, optional
            The condition.
        purpose : "shape" or "ranges", optional
            What it is for: its shape (the default), or sums over ranges of bins.
        bin_budgets : one ε per cell, optional
            What a person may lose by their rows in each cell, compared with these rows absent.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Histogram
        """
        asked = {"columns": list(columns), "where": where, "purpose": purpose, "bin_budgets": bin_budgets}
        return cast("Histogram", self._release("histogram", asked, common))

    def synthesize(
        self,
        *,
        target: str,
        where: str | None = None,
        attributes: Sequence[str] | None = None,
        **common: Unpack[Common],
    ) -> Synopsis | Network:
        """A synthetic table for predicting `target`.

        Parameters
        ----------
        target : str
            The column to predict.
        where : str, optional
            The condition.
        attributes : sequence of str, optional
            The predictors to consider; every other column if left out.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Synopsis or Network
        """
        asked = {"target": target, "where": where, "attributes": attributes}
        return cast("Synopsis | Network", self._release("synthesize", asked, common))

    def model(
        self,
        *,
        target: str,
        estimator: str | None = None,
        where: str | None = None,
        attributes: Sequence[str] | None = None,
        **common: Unpack[Common],
    ) -> Model:
        """A classifier that predicts `target`, trained where the table lives and charged as every other release.

        Parameters
        ----------
        target : str
            The column to predict; categorical in the schema.
        estimator : str, optional
            A name of `sfumato mechanisms model`, such as "naive-bayes" or "logistic-regression"; `mechanism` means the
            same. By default the best by the measured comparison.
        where : str, optional
            The condition.
        attributes : sequence of str, optional
            The predictors; every other column if left out.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Model
        """
        asked = {"target": target, "estimator": estimator, "where": where, "attributes": attributes}
        return cast("Model", self._release("model", asked, common))
