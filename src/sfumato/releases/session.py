"""`sf.open(...)`: a table to preview and release from, with its ledger, in one object."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.ledger import Balance, Ledger, Reservation
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import Epsilon
from sfumato.releases.kinds import Facts, option_keys
from sfumato.releases.kinds.base import Result
from sfumato.releases.pipeline import Done, Priced, charge_and_run, price
from sfumato.releases.plan import Request, parse_request

if TYPE_CHECKING:
    from sfumato.privacy.budgets import PersonBudgets
    from sfumato.tables import Dataset, Roster, Schema


class Released:
    """A finished release: everything its result has (`value`, `interval()`, `guarantee`, `plot()`...), and `save()`."""

    repeated = False

    def __init__(self, done: Done, dataset: str) -> None:
        self._done = done
        self._dataset = dataset

    @property
    def result(self) -> Result:
        """The result of the mechanism itself."""
        return self._done.result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._done.result, name)

    def save(self, folder: str | Path) -> Path:
        """Write the artefact folder: data, certificate.json and report.html."""
        from sfumato.releases import folder as artefact

        target = Path(folder)
        earlier = artefact.prepare(target, self._done.fingerprint)
        if earlier is None:
            artefact.write(
                target,
                self._done.priced,
                self._done.result,
                dataset=self._dataset,
                reservation=self._done.reservation.id,
                fingerprint=self._done.fingerprint,
            )
        elif artefact.data_digest(self._done.result) != earlier.get("files", {}).get(artefact.DATA):
            raise InputError(f"{target} holds another release of the same request, with other noise; choose another folder")
        return target

    def __repr__(self) -> str:
        return repr(self._done.result)


class Stored:
    """A release that was paid for before, as the ledger kept it: `data` is its `to_dict()`, nothing was charged."""

    repeated = True

    def __init__(self, reservation: Reservation) -> None:
        self.entry = reservation.id
        self.data: dict[str, Any] = dict((reservation.artefact or {}).get("result", {}))

    def __getattr__(self, name: str) -> Any:
        if name in self.data:
            return self.data[name]
        raise AttributeError(
            f"a stored release has no {name!r}; it keeps {', '.join(self.data)}. Save a release when it is made: r.save(...)"
        )

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The interval that was stored with it."""
        low, high = self.data["interval"]
        if confidence != self.data.get("confidence", 0.95):
            raise InputError(f"the stored interval has confidence {self.data.get('confidence', 0.95)}")
        return low, high

    def __repr__(self) -> str:
        return f"Stored(ledger entry {self.entry}: {self.data.get('kind')} {self.data.get('value', '')})"


class Preview(Sequence[Any]):
    """The options for a request, best first; prints as a table."""

    def __init__(self, priced: Priced) -> None:
        self.priced = priced

    def __len__(self) -> int:
        return len(self.priced.options)

    def __getitem__(self, index: Any) -> Any:
        return self.priced.options[index]

    def to_frame(self) -> Any:
        """One row per mechanism."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "mechanism": o.mechanism,
                    "expected_rmse": o.expected_rmse,
                    "epsilon": o.charge.total / 1e9,
                    "chosen": o is self.priced.chosen,
                    "note": o.note,
                }
                for o in self.priced.options
            ]
        )

    def __repr__(self) -> str:
        return str(self.to_frame().to_string(index=False))

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))


class Table:
    """A private table with its public schema, its people's budgets and its ledger. Made by `open`.

    Every method prices its request from public facts, charges the ledger, and only then reads the table.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        name: str,
        ledger: str | Path | None,
        epsilon: Epsilon | None,
        rows: int | None,
        source: Source,
    ) -> None:
        self.dataset = dataset
        self.name = name
        self._where = ledger
        self._epsilon = epsilon
        self._rows = rows
        self._source = source
        self._ledger: Ledger | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._facts: Facts | None = None

    @property
    def schema(self) -> Schema:
        return self.dataset.schema

    @property
    def budgets(self) -> PersonBudgets | None:
        """The public roster, compressed; None when one ε holds for all."""
        return self.facts.budgets

    @property
    def facts(self) -> Facts:
        """The public facts that prices come from. Reads the roster, never the table."""
        if self._facts is None:
            roster = self.dataset.budgets
            if roster is None:
                self._facts = Facts(self.schema, rows=self._rows)
            else:
                people = roster.levels()
                self._facts = Facts(self.schema, people, roster, self._rows or people.people)
        return self._facts

    @property
    def ledger(self) -> Ledger:
        """The ledger; opened, and this table registered in it, at first use."""
        if self._ledger is None:
            if self._epsilon is None and self.dataset.budgets is None:
                raise InputError(
                    "say how much all releases of this table may cost together: sf.open(..., epsilon=1), or give budgets"
                )
            where = self._where
            if where is None:
                self._folder = tempfile.TemporaryDirectory(prefix="sfumato-")
                where = Path(self._folder.name) / "session.ledger"
            self._ledger = Ledger.open(where)
            self._ledger.register(self.name, epsilon=self._epsilon, people=self.facts.budgets)
        return self._ledger

    def balance(self) -> Balance:
        """Who has what left."""
        return self.ledger.balance(self.name)

    def preview(self, kind: str, **request: Any) -> Preview:
        """Price and expected error of every applicable mechanism; nothing is read, nothing is spent."""
        return Preview(price(self._request(kind, request), self.facts))

    def count(self, *, where: str | None = None, **request: Any) -> Released | Stored:
        """How many rows satisfy a condition."""
        return self.release("count", where=where, **request)

    def sum(self, column: str, *, where: str | None = None, **request: Any) -> Released | Stored:
        """The sum of a numeric column over the rows that satisfy a condition."""
        return self.release("sum", column=column, where=where, **request)

    def mean(self, column: str, *, where: str | None = None, **request: Any) -> Released | Stored:
        """The mean of a numeric column over the rows that satisfy a condition."""
        return self.release("mean", column=column, where=where, **request)

    def histogram(self, *columns: str, where: str | None = None, **request: Any) -> Released | Stored:
        """Counts per bin of one or more columns."""
        return self.release("histogram", columns=list(columns), where=where, **request)

    def synthesize(self, *, target: str, **request: Any) -> Released | Stored:
        """A synthetic table for predicting `target`."""
        return self.release("synthesize", target=target, **request)

    def release(self, kind: str, **request: Any) -> Released | Stored:
        """Make a release of any kind; see the keys of the kind in a plan file.

        The same request again returns what was released the first time, at no cost.
        """
        priced = price(self._request(kind, request), self.facts)
        done, reservation = charge_and_run(
            priced,
            dataset_name=self.name,
            ledger=self.ledger,
            dataset=replace(self.dataset, budgets=priced.facts.roster, roster_only=True),
            source=self._source,
            finish=_remember,
        )
        return Stored(reservation) if done is None else Released(done, self.name)

    def _request(self, kind: str, given: dict[str, Any]) -> Request:
        asked = {"name": kind, "kind": kind} | {k: v for k, v in given.items() if v is not None}
        return parse_request(asked, option_keys(), "the request")

    def __repr__(self) -> str:
        return f"Table({self.name!r}, columns {', '.join(self.schema.names)})"


def _remember(result: Result, _reservation: Reservation, _fingerprint: str) -> dict[str, Any]:
    return {"result": result.to_dict()}


def open(
    source: Any,
    *,
    schema: Schema | str | Path,
    table: str | tuple[str, str] | None = None,
    budgets: Roster | str | None = None,
    epsilon: Epsilon | None = None,
    ledger: str | Path | None = None,
    name: str | None = None,
    rows: int | None = None,
    noise: Source = SECURE,
) -> Table:
    """Open a private table for previews and releases. Nothing private is read until a release was charged.

    Parameters
    ----------
    source
        A Parquet or CSV file (or glob), a ``duckdb:///`` or ``postgresql://`` URL, a Spark session or DataFrame, a pandas,
        Polars or Arrow frame, or an Ibis table.
    schema : Schema or path
        The public schema, or the TOML file that holds it.
    table : str, optional
        The table in a database.
    budgets : Roster, optional
        Where each person's own budget is written.
    epsilon : optional
        The most that all releases of this table may cost together.
    ledger : path or URL, optional
        Where spending is recorded: by default ``NAME.ledger`` beside a file; for anything else a ledger that lasts as long
        as this object.
    name : str, optional
        The table's name in the ledger; by default the file's name without its ending.
    rows : int, optional
        A public head count.
    noise : Source
        Secure by default; `sf.Seeded(seed)` for experiments, which are marked not private.
    """
    from sfumato.tables import open as describe

    dataset = describe(source, schema=schema, table=table, budgets=budgets)
    is_file = isinstance(source, Path) or (isinstance(source, str) and "://" not in source)
    if name is None:
        if ledger is not None and not is_file and not isinstance(table, str):
            raise InputError("say what this table is called in the ledger: sf.open(..., name='patients')")
        name = Path(source).stem if is_file else (table if isinstance(table, str) else "table")
    if ledger is None and is_file and "*" not in str(source):
        ledger = Path(source).with_name(f"{name}.ledger")
    return Table(dataset, name=name, ledger=ledger, epsilon=epsilon, rows=rows, source=noise)
