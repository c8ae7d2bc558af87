"""What a call in Python may say, and the preview that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any, TypedDict

from sfumato.errors import InputError
from sfumato.offers import GAPS, Errors, Offer, gap_name
from sfumato.privacy.units import Epsilon, as_epsilon
from sfumato.releases.attribute_charges import attribute_charges
from sfumato.releases.curves import Curves, curves
from sfumato.releases.pipeline import Priced
from sfumato.releases.wanted import Pricing, Unit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Common(TypedDict, total=False):
    """What every release may say: its price, its mechanism, what it assumes, who is to have it, what it is called."""

    epsilon: Epsilon | None
    share: Epsilon | None
    mechanism: str
    parameters: Mapping[str, Any] | None
    recipient: str | None
    name: str | None
    independent: bool | None


class Asked(Common, total=False):
    """What some kind of release may say."""

    where: str | None
    column: str | None
    columns: Sequence[str] | None
    by: Sequence[str] | None
    of: str | None
    target: str | None
    attributes: Sequence[str] | None
    estimator: str | None
    selectivity: float | None
    steps: int | None
    purpose: str | None
    bin_budgets: Sequence[float] | None
    nonnegative: bool | None
    total: float | None
    quantiles: Sequence[float] | None
    risk: float | None
    interval: float | None
    margins: str | int | Sequence[int] | None
    whole: bool | None
    k: int | None
    counts: bool | None
    catalogue: Any
    budgets: Mapping[str, Epsilon] | None
    utility: str | None


class Preview(Sequence[Offer]):
    """The offers for a request, best first; prints as a table.

    Parameters
    ----------
    priced : Priced
        The request with its offers.
    findings : tuple of str
        What is odd about the roster, in sentences with head counts.
    pricing : callable, optional
        The preview of the same request at another price.
    """

    def __init__(self, priced: Priced, findings: tuple[str, ...] = (), pricing: Pricing | None = None) -> None:
        self.priced = priced
        self.findings = findings
        self._pricing = pricing

    @property
    def notes(self) -> tuple[str, ...]:
        """What public facts say beside the prices."""
        return (*self.priced.notes, *self.findings)

    @property
    def attributes(self) -> dict[str, Decimal]:
        """What each attribute that the release shows would be charged, in ε."""
        return {name: as_epsilon(nano) for name, nano in attribute_charges(self.priced).items()}

    def __len__(self) -> int:
        return len(self.priced.offers)

    def __getitem__(self, index: Any) -> Any:
        return self.priced.offers[index]

    def to_frame(self) -> pd.DataFrame:
        """One row per mechanism; where budgets differ, with its error at every gap (see `sfumato.offers.Errors`)."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "mechanism": o.mechanism,
                    "expected_rmse": o.expected_rmse,
                    **({} if o.errors is None else _gaps(o.errors)),
                    "epsilon": o.charge.total / 1e9,
                    "chosen": o is self.priced.chosen,
                    "note": o.note,
                }
                for o in self.priced.offers
            ]
        )

    def __repr__(self) -> str:
        frame = self.to_frame()
        if any(o.errors is not None for o in self.priced.offers):  # its notes would make it too wide to read
            frame = frame.drop(columns="note").rename(columns={"expected_rmse": "independent"})
        lines = [frame.to_string(index=False, float_format=lambda x: f"{x:,.4g}")]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each mechanism's error against the gap between the stricter people and the rest, on `ax` or a new figure.

        With one ε for all there is no gap: the expected errors are drawn.
        """
        from sfumato.people.plots import plot_gaps, plot_options

        known = {o.mechanism: o.errors for o in self.priced.offers if o.errors is not None}
        if not known:
            return plot_options(self.priced.offers, ax)
        errors = {name: (e.independent, *e.at, e.worst) for name, e in known.items()}
        return plot_gaps(errors, ax, chosen=self.priced.chosen.mechanism)

    def chart(self) -> Curves:
        """Expected error of every mechanism at less and at more ε (or share): figures with a `plot`. Nothing is spent."""
        request = self.priced.request
        if self._pricing is None:
            raise InputError("this preview cannot be priced again; make one with Table.preview")
        unit: Unit = "epsilon" if request.epsilon is not None or self.priced.facts.budgets is None else "share"
        return curves(request, self._pricing, unit=unit)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>note: {escape(note)}</p>" for note in self.notes)
        return f"{self.to_frame().to_html(index=False)}{notes}"


def _gaps(errors: Errors) -> dict[str, float]:
    """The columns of a preview where budgets differ."""
    return {**{gap_name(gap): error for gap, error in zip(GAPS, errors.at, strict=True)}, "worst": errors.worst}
