"""The questions whose answer is a figure, or one per group: a method of `Table` for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from sfumato.releases.asking import Common
from sfumato.results import Result

if TYPE_CHECKING:
    from sfumato.people import Estimate
    from sfumato.statistics import Figure, Groups, Quantiles


class FigureQuestions(ABC):
    """A method for every kind of release; what they have in common is described at `Table`."""

    @abstractmethod
    def _release(self, kind: str, given: Mapping[str, Any], common: Mapping[str, Any]) -> Result:
        """Price, charge, read; or bring back what was paid for."""

    @overload
    def count(
        self,
        *,
        where: str | None = None,
        by: None = None,
        selectivity: float | None = None,
        **common: Unpack[Common],
    ) -> Estimate: ...
    @overload
    def count(self, *, where: str | None = None, by: Sequence[str], **common: Unpack[Common]) -> Groups: ...
    def count(
        self,
        *,
        where: str | None = None,
        by: Sequence[str] | None = None,
        selectivity: float | None = None,
        **common: Unpack[Common],
    ) -> Estimate | Groups:
        """How many rows satisfy a condition.

        Parameters
        ----------
        where : str, optional
            The condition; everybody if left out.
        by : sequence of str, optional
            One count for each group: all cells of these columns.
        selectivity : float, optional
            A public guess of the share of rows that satisfy it.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate, or Groups with `by`
        """
        asked = {"where": where, "by": _listed(by), "selectivity": selectivity}
        return cast("Estimate | Groups", self._release("count", asked, common))

    @overload
    def sum(self, column: str, *, where: str | None = None, by: None = None, **common: Unpack[Common]) -> Estimate: ...
    @overload
    def sum(self, column: str, *, where: str | None = None, by: Sequence[str], **common: Unpack[Common]) -> Groups: ...
    def sum(
        self, column: str, *, where: str | None = None, by: Sequence[str] | None = None, **common: Unpack[Common]
    ) -> Estimate | Groups:
        """The sum of a numeric column over the rows that satisfy a condition.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        by : sequence of str, optional
            One figure for each group: all cells of these columns.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate, or Groups with `by`
        """
        asked = {"column": column, "where": where, "by": _listed(by)}
        return cast("Estimate | Groups", self._release("sum", asked, common))

    @overload
    def mean(self, column: str, *, where: str | None = None, by: None = None, **common: Unpack[Common]) -> Estimate: ...
    @overload
    def mean(self, column: str, *, where: str | None = None, by: Sequence[str], **common: Unpack[Common]) -> Groups: ...
    def mean(
        self, column: str, *, where: str | None = None, by: Sequence[str] | None = None, **common: Unpack[Common]
    ) -> Estimate | Groups:
        """The mean of a numeric column over the rows that satisfy a condition.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        by : sequence of str, optional
            One figure for each group: all cells of these columns.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Estimate, or Groups with `by`
        """
        asked = {"column": column, "where": where, "by": _listed(by)}
        return cast("Estimate | Groups", self._release("mean", asked, common))

    def variance(self, column: str, *, where: str | None = None, **common: Unpack[Common]) -> Figure:
        """The variance of a numeric column over the rows that satisfy a condition, and its standard deviation.

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
        Figure
        """
        return cast("Figure", self._release("variance", {"column": column, "where": where}, common))

    @overload
    def proportion(self, *, where: str, of: str | None = None, by: None = None, **common: Unpack[Common]) -> Figure: ...
    @overload
    def proportion(self, *, where: str, of: str | None = None, by: Sequence[str], **common: Unpack[Common]) -> Groups: ...
    def proportion(
        self, *, where: str, of: str | None = None, by: Sequence[str] | None = None, **common: Unpack[Common]
    ) -> Figure | Groups:
        """The share of rows that satisfy a condition.

        Parameters
        ----------
        where : str
            The condition.
        of : str, optional
            The condition of the base: the share is that among rows that satisfy it; everybody if left out.
        by : sequence of str, optional
            One share for each group: all cells of these columns.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Figure, or Groups with `by`
        """
        asked = {"where": where, "of": of, "by": _listed(by)}
        return cast("Figure | Groups", self._release("proportion", asked, common))

    def quantile(
        self,
        column: str,
        quantiles: Sequence[float],
        *,
        where: str | None = None,
        by: Sequence[str] | None = None,
        **common: Unpack[Common],
    ) -> Quantiles:
        """The values of a numeric column that have given shares of the rows below them.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        quantiles : sequence of float
            The shares, each between 0 and 1.
        where : str, optional
            The condition.
        by : sequence of str, optional
            Columns of the schema: quantiles for each of their cells.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Quantiles
        """
        asked = {"column": column, "quantiles": list(quantiles), "where": where, "by": by}
        return cast("Quantiles", self._release("quantile", asked, common))

    def median(
        self, column: str, *, where: str | None = None, by: Sequence[str] | None = None, **common: Unpack[Common]
    ) -> Quantiles:
        """The median of a numeric column over the rows that satisfy a condition.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        by : sequence of str, optional
            Columns of the schema: a median for each of their cells.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Quantiles
        """
        asked = {"column": column, "where": where, "by": by}
        return cast("Quantiles", self._release("median", asked, common))

    def min(
        self, column: str, *, where: str | None = None, risk: float | None = None, **common: Unpack[Common]
    ) -> Quantiles:
        """A value with almost no row below it. The smallest value itself is one person's and cannot be told.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        risk : float, optional
            The share of the rows that may lie below; as small as rows and ε allow if left out.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Quantiles
        """
        asked = {"column": column, "where": where, "risk": risk}
        return cast("Quantiles", self._release("min", asked, common))

    def max(
        self, column: str, *, where: str | None = None, risk: float | None = None, **common: Unpack[Common]
    ) -> Quantiles:
        """A value with almost no row above it. The largest value itself is one person's and cannot be told.

        Parameters
        ----------
        column : str
            Numeric in the schema; values are clamped to its bounds.
        where : str, optional
            The condition.
        risk : float, optional
            The share of the rows that may lie above; as small as rows and ε allow if left out.
        common
            What the price is and who pays it: see the class.

        Returns
        -------
        Quantiles
        """
        asked = {"column": column, "where": where, "risk": risk}
        return cast("Quantiles", self._release("max", asked, common))


def _listed(by: Sequence[str] | None) -> list[str] | None:
    return None if by is None else [by] if isinstance(by, str) else list(by)
