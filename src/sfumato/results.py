"""What a finished release looks like to whoever asked for it, to reports and to artefacts: one kind of object per question.

A result is numbers and their promise. It can be written down (`to_dict`) and comes back as the same type (`from_dict`),
so that a release that was paid for once is the same object ever after, in this process or the next.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from sfumato.errors import InputError
from sfumato.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Receipt", "Result", "load_result"]

_HOMES = {
    "AttributeRelease": "sfumato.attributes.release",
    "CrossTable": "sfumato.statistics.crosstab_result",
    "Estimate": "sfumato.people.estimate",
    "Figure": "sfumato.statistics.figure",
    "Groups": "sfumato.statistics.groups_result",
    "HeadCounts": "sfumato.people.head_counts",
    "Model": "sfumato.classifiers.released",
    "Histogram": "sfumato.histograms.result",
    "Profiled": "sfumato.attributes.profiled",
    "PersonalHistogram": "sfumato.people.histogram",
    "Quantiles": "sfumato.statistics.quantiles",
    "TopValues": "sfumato.statistics.top_result",
    "Synopsis": "sfumato.grids.published.synopsis",
    "Network": "sfumato.grids.published.network",
    "Joint": "sfumato.grids.published.joint",
}


def load_result(data: Mapping[str, Any]) -> Result:
    """The result that `to_dict` wrote down, as the type it was.

    Parameters
    ----------
    data : mapping
        What `to_dict` returned, also after a round trip through JSON.

    Returns
    -------
    Result
    """
    name = str(data.get("result"))
    if name not in _HOMES:
        raise InputError(f"this is not a result that Sfumato wrote: its type is {name!r}; known: {', '.join(_HOMES)}")
    made: Result = getattr(import_module(_HOMES[name]), name).from_dict(data)
    return made


class Receipt(Protocol):
    """What the ledger knows of a result: its entry, and how to write the result's folder."""

    @property
    def entry(self) -> int | None:
        """The ledger's number for it."""

    @property
    def repeated(self) -> bool:
        """Whether it was paid for before and came back at no cost."""

    @property
    def certificate(self) -> Mapping[str, Any]:
        """What was released, by which mechanism, at which price and with which promise."""

    def save(self, result: Result, folder: str | Path) -> Path:
        """Write the artefact of `result` to `folder`."""


class Result:
    """The common part of every result. Subclasses add the numbers and say how they are written down.

    Attributes
    ----------
    guarantee : Guarantee
        What the release promises.
    mechanism : str
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
    warnings : tuple of str
        What a reader must know before using the figures.
    receipt : Receipt or None
        Set on what came through a ledger.
    """

    receipt: Receipt | None = None

    if TYPE_CHECKING:  # fields or properties of the subclasses

        @property
        def guarantee(self) -> Guarantee: ...
        @property
        def mechanism(self) -> str: ...
        @property
        def parameters(self) -> Mapping[str, Any]: ...
        @property
        def expected_rmse(self) -> float | None: ...
        @property
        def warnings(self) -> tuple[str, ...]: ...

    @property
    def repeated(self) -> bool:
        """Whether this was paid for before and came back at no cost."""
        return self.receipt is not None and self.receipt.repeated

    def with_receipt(self, receipt: Receipt) -> Self:
        """The same result, knowing its entry in the ledger (`receipt`)."""
        object.__setattr__(self, "receipt", receipt)
        return self

    def save(self, folder: str | Path) -> Path:
        """Write the artefact folder: data, certificate.json and report.html.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet, or one that holds this very release.

        Returns
        -------
        Path
        """
        if self.receipt is None:
            raise InputError("this result did not come through a ledger, so there is no certificate to write; use sf.open")
        return self.receipt.save(self, folder)

    def words(self, number: float) -> str:
        """`number` in the unit of the answer, for sentences."""
        return f"{number:,.6g}"

    def to_frame(self) -> pd.DataFrame:
        """The figures as a table."""
        raise TypeError(f"{type(self).__name__} does not say how it becomes a table")

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, from which `from_dict` makes the same result; "result" names its type."""
        return {"result": type(self).__name__}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The result that `to_dict` wrote down as `data`."""
        raise TypeError(f"{cls.__name__} does not say how it is read back")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or on a new figure."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn")

    def _repr_html_(self) -> str:
        """For notebooks: the first rows of the table and the promise."""
        frame = self.to_frame()
        shown = frame.head(20).to_html(index=False, float_format=lambda x: f"{x:,.6g}")
        more = "" if len(frame) <= 20 else f"<p>{len(frame) - 20:,} more rows: to_frame()</p>"
        return f"{shown}{more}<p><em>{html.escape(str(self.guarantee))}</em></p>"
