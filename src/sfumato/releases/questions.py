"""The questions that can be asked of a `Table`, one method each: what a plan's ``[[release]]`` says, in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sfumato.privacy.units import Epsilon
from sfumato.releases.asking import Common
from sfumato.releases.figure_questions import FigureQuestions

if TYPE_CHECKING:
    from sfumato.attributes import Profiled
    from sfumato.classifiers.released import Model
    from sfumato.grids import Joint, Network, Synopsis
    from sfumato.histograms import Histogram
    from sfumato.statistics import CrossTable, TopValues


class Questions(FigureQuestions):
    """A method for every kind of release; what they have in common is described at `Table`."""

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

    def table(
        self,
        *columns: str,
        where: str | None = None,
        margins: str | int | Sequence[int] | None = None,
        nonnegative: bool | None = None,
        whole: bool | None = None,
        **common: Unpack[Common],
    ) -> CrossTable:
        """Counts over several columns, with margins that add up.

        Parameters
        ----------
        columns : str
            Names of columns, up to 8.
        where : str, optional
            The condition.
        margins : "all", int or sequence of int, optional
            Which margins matter: all of them (the default), those of up to so many columns, or of these numbers of columns.
        nonnegative : bool, optional
            Whether negative cells are set right, all margins with them.
        whole : bool, optional
            Whether cells become whole numbers, all margins with them.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        CrossTable
        """
        asked = {"columns": list(columns), "where": where, "margins": margins, "nonnegative": nonnegative, "whole": whole}
        return cast("CrossTable", self._release("table", asked, common))

    def top(
        self,
        *columns: str,
        k: int,
        where: str | None = None,
        counts: bool | None = None,
        **common: Unpack[Common],
    ) -> TopValues:
        """The most frequent values of a column, or of several together.

        Parameters
        ----------
        columns : str
            Names of columns.
        k : int
            How many values to list.
        where : str, optional
            The condition.
        counts : bool, optional
            Whether half of the budget goes to how often each listed value occurs.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        TopValues
        """
        asked = {"columns": list(columns), "k": k, "where": where, "counts": counts}
        return cast("TopValues", self._release("top", asked, common))

    def synthesize(
        self,
        *,
        target: str,
        where: str | None = None,
        attributes: Sequence[str] | None = None,
        purpose: str | None = None,
        **common: Unpack[Common],
    ) -> Synopsis | Network | Joint:
        """A synthetic table for predicting `target`, or for everything.

        Parameters
        ----------
        target : str
            The column to predict.
        where : str, optional
            The condition.
        attributes : sequence of str, optional
            The predictors to consider; every other column if left out.
        purpose : "classification" or "general", optional
            What it is for: predicting `target` (the default), or all columns alike.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Synopsis, Network or Joint
        """
        asked = {"target": target, "where": where, "attributes": attributes, "purpose": purpose}
        return cast("Synopsis | Network | Joint", self._release("synthesize", asked, common))

    def profile(
        self,
        column: str,
        *,
        catalogue: Any,
        budgets: Mapping[str, Epsilon] | None = None,
        where: str | None = None,
        **common: Unpack[Common],
    ) -> Profiled:
        """Totals of the attributes that the items of a column have.

        Parameters
        ----------
        column : str
            The column whose values are the items.
        catalogue : Catalogue, mapping of item to its attributes, or path
            Public: the attributes of each item, or the JSON, TOML or CSV file that lists them.
        budgets : mapping of attribute to ε, optional
            What each attribute may lose by this release; `epsilon` where one is left out.
        where : str, optional
            The condition.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Profiled
        """
        asked = {"column": column, "catalogue": catalogue, "budgets": budgets, "where": where}
        return cast("Profiled", self._release("profile", asked, common))

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
