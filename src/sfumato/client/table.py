"""A dataset of a service: the calls of `sfumato.Table`, running there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Unpack, cast

from sfumato.client.connection import Connection, place
from sfumato.errors import InputError, SfumatoError
from sfumato.offers import Request
from sfumato.privacy.units import NANO, epsilon_text
from sfumato.releases.asking import Asked
from sfumato.releases.kinds import KindName
from sfumato.releases.plan import parse_request
from sfumato.releases.questions import Questions
from sfumato.releases.wanted import Needed, Pricing, Unit, needed, wanted_error
from sfumato.results import Result
from sfumato.tables import Schema

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.client.kinds_of_people import Jobs, Releases

Progress = Callable[[str], None]


class JobFailedError(SfumatoError):
    """A job ended without a release. Why is not told: it may depend on the table. What was charged stays spent."""


@dataclass(frozen=True)
class RemotePreview:
    """What the service says about a request beforehand: prints as a table. Nothing was read and nothing spent.

    Attributes
    ----------
    price : str or None
        What it would cost, in ε; ``None`` where heads must be counted first.
    fits : bool
        Whether it may be asked now.
    refusals : tuple of str
        Why not.
    offers : tuple of mapping
        Every mechanism with its charge and expected error.
    chosen : str or None
        The mechanism that would be taken.
    guarantee : str or None
        What the release would promise.
    notes : tuple of str
        What public facts say beside the prices.
    allowance : mapping or None
        What the caller may spend for the purpose.
    told : mapping
        All that the service said.
    """

    price: str | None
    fits: bool
    refusals: tuple[str, ...]
    offers: tuple[Mapping[str, Any], ...]
    chosen: str | None
    guarantee: str | None
    notes: tuple[str, ...]
    allowance: Mapping[str, Any] | None
    told: Mapping[str, Any]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> RemotePreview:
        """From what the service answered (`told`)."""
        release = told["release"] or {}
        return cls(
            told["price"],
            bool(told["fits"]),
            tuple(told["refusals"]),
            tuple(release.get("offers", ())),
            release.get("mechanism"),
            release.get("guarantee"),
            tuple(release.get("notes", ())),
            told["allowance"],
            told,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per mechanism."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "mechanism": offer["mechanism"],
                    "expected_rmse": offer["expected_rmse"],
                    "worst": None if offer["errors"] is None else offer["errors"].get("worst"),
                    "epsilon": float(offer["charge"]["epsilon"]),
                    "chosen": offer["mechanism"] == self.chosen,
                    "note": offer["note"],
                }
                for offer in self.offers
            ]
        )

    def __len__(self) -> int:
        return len(self.offers)

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        return self.offers[index]

    def __repr__(self) -> str:
        table = self.to_frame().to_string(index=False, float_format=lambda x: f"{x:,.4g}") if self.offers else "no price yet"
        said = [f"note: {note}" for note in self.notes] + [f"refused: {why}" for why in self.refusals]
        return "\n".join([table, *said])


class RemoteTable(Questions):
    """A dataset of a service, for one purpose. Made by `Client.open`; it asks as `sfumato.Table` does.

    Every method that releases sends its request, waits for the slot at which the answer is told, downloads it, verifies it
    here, and returns the same type as a table on this machine. The request is charged to the caller's allowance too, and is
    released to the caller alone, so `recipient` is left out. A request that was paid for before comes back at no cost.

    Parameters
    ----------
    connection : Connection
        What it sends by.
    jobs, releases
        Of the client.
    name : str
        Of the dataset.
    purpose : str
        What the releases are for.
    progress : callable, optional
        Takes a line while a release is waited for.
    """

    def __init__(
        self,
        connection: Connection,
        jobs: Jobs,
        releases: Releases,
        name: str,
        *,
        purpose: str,
        progress: Progress | None = None,
    ) -> None:
        self._connection, self._jobs, self._releases = connection, jobs, releases
        self.name, self.purpose = name, purpose
        self._progress = progress
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The public schema."""
        if self._schema is None:
            from sfumato.tables.toml_text import parse_toml

            text = self._connection.get(place("datasets", self.name))["schema"]
            what = f"the schema of {self.name!r}"
            self._schema = Schema.from_mapping(parse_toml(text, what), what=what)
        return self._schema

    def allowance(self) -> dict[str, Any] | None:
        """What the caller may spend here for this purpose, what is spent and what is left; ``None`` if nothing."""
        mine = self._connection.pages("/allowances", dataset=self.name)
        return next((one for one in mine if one["purpose"] == self.purpose), None)

    def balance(self) -> dict[str, Any]:
        """Who has what left, for custodians and officers; for an analyst what `allowance` says."""
        found = self.allowance()
        return found if found is not None else dict(self._connection.get(place("datasets", self.name, "balance")))

    def preview(self, kind: KindName, **asked: Unpack[Asked]) -> RemotePreview:
        """Price and expected error of every applicable mechanism; nothing is read, nothing is spent.

        Parameters
        ----------
        kind : "count", "sum", "mean", "quantile", "histogram", ...
            What is asked.
        asked
            The keys of the kind and of its price, as for `sfumato.Table.preview`.

        Returns
        -------
        RemotePreview
        """
        _, table = _request(kind, asked)
        return self._preview(table)

    def epsilon_for(
        self,
        kind: KindName,
        *,
        error: float | None = None,
        relative_error: float | None = None,
        size: float | None = None,
        confidence: float | None = None,
        any_data: bool = False,
        unit: Unit = "epsilon",
        **asked: Unpack[Asked],
    ) -> Needed:
        """The smallest ε, or share of everyone's budget, whose preview reaches a wanted error, by a few dozen previews.

        Parameters
        ----------
        kind : str
            What is asked, as for `preview`.
        error, relative_error, size, confidence, any_data
            As for `sfumato.Table.epsilon_for`.
        unit : "epsilon" or "share"
            What to look for.
        asked
            The other keys of the kind; a price is not needed.

        Returns
        -------
        Needed
        """
        if asked.get("epsilon") is not None or asked.get("share") is not None:
            raise InputError("epsilon_for looks for the price: leave it out, or ask `preview` what it gives")
        request, table = _request(kind, {**asked, unit: 1})

        def pricing(at: Request) -> Any:
            price = at.epsilon if unit == "epsilon" else at.share
            seen = self._preview({**table, unit: exact(price)})
            chosen = next((o for o in seen.offers if o["mechanism"] == seen.chosen), None)
            if chosen is None:
                raise InputError(seen.refusals[0] if seen.refusals else "this request has no price yet")
            errors = chosen["errors"]
            return SimpleNamespace(
                chosen=SimpleNamespace(
                    mechanism=chosen["mechanism"],
                    expected_rmse=chosen["expected_rmse"],
                    errors=None if errors is None else SimpleNamespace(**errors),
                    bias_bound=0.0,
                )
            )

        wanted = wanted_error(error, relative_error, size, request, None)
        return needed(request, cast("Pricing", pricing), error=wanted, unit=unit, confidence=confidence, any_data=any_data)

    def release(self, kind: KindName, **asked: Unpack[Asked]) -> Result:
        """Make a release of any `kind`; `asked` are the keys that a plan's ``[[release]]`` has. See `preview`."""
        return self._release(kind, {}, asked)

    def _release(self, kind: str, given: Mapping[str, Any], common: Mapping[str, Any]) -> Result:
        _, table = _request(kind, {**given, **common})
        queued = self._connection.post(place("datasets", self.name, "requests"), self._body(table))
        job = self._jobs.wait(queued["job"], progress=self._progress)
        if job["state"] != "finished":
            raise JobFailedError(
                f"job {queued['job']} ended as {job['state']}, without a release. Why is not told; what was charged stays "
                "spent. The allowance and the preview show what is left"
            )
        made = self._releases.of_job(job["id"], dataset=self.name)
        if not made:
            raise JobFailedError(f"job {job['id']} is finished, and its release is not there; ask the custodian")
        return self._releases.load(made[-1]["id"], repeated=bool(queued["already_paid"]))

    def _preview(self, table: Mapping[str, Any]) -> RemotePreview:
        return RemotePreview.of(
            self._connection.post(place("datasets", self.name, "requests", "preview"), self._body(table))
        )

    def _body(self, table: Mapping[str, Any]) -> dict[str, Any]:
        return {"purpose": self.purpose, "release": dict(table)}

    def __repr__(self) -> str:
        return f"RemoteTable({self.name!r}, purpose {self.purpose!r}, {self._connection!r})"


def _request(kind: str, given: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
    """A request as it is asked here, where mistakes are found at once, and as it is sent."""
    keys = {k: v for k, v in given.items() if k != "parameters"} | dict(given.get("parameters") or {})
    table = {"name": kind, "kind": kind, **{k: v for k, v in keys.items() if v is not None}}
    request = cast("Request", parse_request(table, "the request"))
    sent: dict[str, Any] = {k: exact(v) if k in ("epsilon", "share") else v for k, v in table.items()}
    if isinstance(sent.get("budgets"), Mapping):
        sent["budgets"] = {name: exact(v) for name, v in sent["budgets"].items()}
    if "bin_budgets" in sent:
        sent["bin_budgets"] = [exact(v) for v in sent["bin_budgets"]]
    return request, cast("dict[str, Any]", _plain(sent))


def exact(value: Any) -> str:
    """An ε, or a share, as exact decimal text; a fraction that has none is rounded down to nano-ε.

    >>> exact(0.1), exact(2), exact(Fraction(1, 3)), exact("0.25")
    ('0.1', '2', '0.333333333', '0.25')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        return epsilon_text(int(value * NANO))
    return format(Decimal(repr(value) if isinstance(value, float) else value), "f")


def _plain(value: Any) -> Any:
    """What JSON can say: arrays as lists, decimals as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Decimal | Fraction):
        return exact(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value
