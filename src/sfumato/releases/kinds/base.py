"""What a kind of release must offer: options priced from public facts, each of which can then be run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.meter import Meter
from sfumato.releases.plan import Request

if TYPE_CHECKING:
    from sfumato.tables import Dataset, Roster, Schema


class Result(Protocol):
    """What a finished release looks like to reports and artefacts."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def expected_rmse(self) -> float | None: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    def to_frame(self) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...
    def plot(self, ax: Any = None) -> Any: ...


@dataclass(frozen=True)
class Facts:
    """Public facts: all a preview may know.

    Attributes
    ----------
    budgets : PersonBudgets or None
        Everyone's budget *for this release*; None when one ε holds for all.
    roster : Roster or None
        Where the table's rows find those budgets; with one ε for all it only says who takes part.
    rows : int or None
        A public head count.
    """

    schema: Schema
    budgets: PersonBudgets | None = None
    roster: Roster | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Option:
    """One way to answer a request: what it costs, how well it will do, and how to run it."""

    mechanism: str
    charge: Charge
    expected_rmse: float | None
    note: str
    run: Callable[[Dataset, Meter], Result] = field(repr=False)
    budgets: PersonBudgets | None = None
    neighbours: str = "absence"
    attributes: tuple[str, ...] = ()


class Kind(Protocol):
    """A kind of release."""

    name: str
    keys: Sequence[str]
    personal: bool  # whether it can draw on everyone's own budget

    def options(self, request: Request, facts: Facts) -> list[Option]:
        """Every applicable mechanism, best first, from public facts only."""


def pick(options: list[Option], request: Request) -> Option:
    """The option a request asks for: the best by preview, or the one it names."""
    if request.mechanism == "auto":
        return options[0]
    for option in options:
        if option.mechanism == request.mechanism:
            return option
    names = ", ".join(o.mechanism for o in options)
    raise InputError(f"release {request.name!r} asks for mechanism {request.mechanism!r}; applicable here: auto, {names}")


def need_epsilon(request: Request) -> Any:
    """The request's ε, or an error that says how to give it."""
    if request.epsilon is None:
        raise InputError(
            f"release {request.name!r} needs `epsilon`: without a roster of personal budgets one ε holds for all"
        )
    return request.epsilon
