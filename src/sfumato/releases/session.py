"""What `sf.open(...)` gives: a table to preview and release from, with its ledger, in one object."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from sfumato.errors import InputError
from sfumato.ledger import Balance, Ledger, Life, Reservation, Standing
from sfumato.offers import Facts, Request
from sfumato.privacy.source import Source
from sfumato.privacy.units import Epsilon
from sfumato.releases import folder as folders
from sfumato.releases.asking import Asked, Preview
from sfumato.releases.asking_price import waits
from sfumato.releases.certificate import certificate
from sfumato.releases.heads import WithHeads, private_facts, seen_beforehand, try_out
from sfumato.releases.keeping import Kept, warn_of
from sfumato.releases.kinds import KindName
from sfumato.releases.pipeline import Priced, charge_and_run, living_text, price
from sfumato.releases.plan import parse_request
from sfumato.releases.plan_facts import granted_in
from sfumato.releases.plan_people import opened
from sfumato.releases.questions import Questions
from sfumato.releases.wanted import Needed, Unit, needed, wanted_error
from sfumato.results import Result
from sfumato.tables.engine_list import notes_of
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.privacy.budgets import PersonBudgets
    from sfumato.tables import Dataset, Schema


class Table(Questions, WithHeads):
    """A private table with its public schema, its people's budgets and its ledger. Made by `open`.

    Every method prices its request from public facts, charges the ledger, and only then reads the table. The same request
    again returns what was released the first time, at no cost, with ``repeated = True``.

    Every method that releases takes, beside its own, the same keywords: `epsilon` (one ε for everybody) or `share` (of
    everyone's own budget), `mechanism` ("auto" takes the best by preview) with its `parameters`, `independent` (True states
    that what people granted has nothing to do with their values: "auto" then takes the least expected error under that
    assumption instead of `adaptive`), `recipient` (who is to have it) and `name` (what it is called in the ledger).

    Parameters
    ----------
    dataset : Dataset
        The table with its schema and roster, as `sfumato.tables.open` describes it.
    kept : Kept
        What the table is called and where its ledger is.
    epsilon, rows
        As for `open`.
    source : Source
        Random bits: what `open` calls `noise`.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        kept: Kept,
        epsilon: Epsilon | None,
        rows: int | None,
        source: Source,
    ) -> None:
        self.dataset = dataset
        self.name = kept.name
        self._kept = kept
        self._epsilon = epsilon
        self._rows = rows
        self._source = source
        self._ledger: Ledger | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._facts: Facts | None = None

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self.dataset.schema

    @property
    def budgets(self) -> PersonBudgets | None:
        """The public roster, compressed, or a private one with noisy counts once there are any; None when one ε holds."""
        return self.facts.budgets

    @property
    def facts(self) -> Facts:
        """The public facts that prices come from. Reads a public roster, never the table or a private one."""
        if self._facts is None:
            roster = self.dataset.budgets
            if roster is None:
                self._facts = Facts(self.schema, rows=self._rows)
            elif isinstance(roster, LivingRoster) and not roster.private:
                self._facts = Facts(self.schema, roster=roster)  # who takes part, at what, is the ledger's to say
            elif roster.private:  # not kept: heads may be counted at any time
                return private_facts(self.schema, roster, self._rows, self._known_heads(roster))
            else:
                people = roster.head_counts()
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
            location = self._kept.ledger
            if location is None:
                self._folder = tempfile.TemporaryDirectory(prefix="sfumato-")
                location = Path(self._folder.name) / "session.ledger"
            elif self._source.private:
                warn_of(self._kept.fresh())  # before the charge: whoever makes this an error is stopped in time
            people = granted_in(self.dataset.budgets, self.facts)
            self._ledger = opened(location, self.name, self.dataset.budgets, epsilon=self._epsilon, people=people)
        return self._ledger

    @property
    def people(self) -> Life:
        """The people of a living roster: their choices, epochs and receipts."""
        if not isinstance(self.dataset.budgets, LivingRoster):
            raise InputError(
                "the people of this table do not change: open it with budgets=Roster.living({'open': 1.0, ...}) to let them "
                "join, change their grant and withdraw"
            )
        return self.ledger.people(self.name)

    def _notes(self) -> tuple[str, ...]:
        """What must be known of the engine and the ledger; an experiment is marked as one anyway."""
        return (*notes_of(self.dataset.source, self.dataset.table), *self._kept.notes) if self._source.private else ()

    def balance(self) -> Balance:
        """Who has what left."""
        return self.ledger.balance(self.name)

    def preview(self, kind: KindName, **asked: Unpack[Asked]) -> Preview:
        """Price and expected error of every applicable mechanism; nothing is read, nothing is spent.

        Parameters
        ----------
        kind : "count", "sum", "mean", "quantile", "histogram", ...
            What is asked.
        asked
            `where`, `column`, `columns`, `target` and the other keys of the kind, and what the class lists. Without
            `epsilon` or `share` the prices are for everyone's whole budget.

        Returns
        -------
        Preview
            Prints as a table; a sequence of `Offer`.
        """
        found = () if self.facts.roster is None else self.facts.roster.findings()
        standing = self._standing()
        counting = self._counting(self.dataset.budgets, standing)
        priced, notes = seen_beforehand(self._request(kind, asked), self.facts, counting, standing)
        found = (*found, *notes)
        # A ledger on a server is not asked: a preview works without it.
        fresh = self._kept.fresh() if self._source.private and self._kept.in_file else ()
        return Preview(cast("Priced", priced or counting), (*found, *self._notes(), *fresh), self._priced)

    def _priced(self, request: Request) -> Priced:
        """The preview of a request, without what is to be said of the roster."""
        standing = self._standing()
        found, _ = seen_beforehand(request, self.facts, self._counting(self.dataset.budgets, standing), standing)
        return found if found is not None else waits(request)

    def epsilon_for(
        self,
        kind: KindName,
        *,
        error: float | None = None,
        relative_error: float | None = None,
        size: float | None = None,
        confidence: float | None = None,
        any_data: bool = False,
        unit: Unit | None = None,
        **asked: Unpack[Asked],
    ) -> Needed:
        """The smallest ε, or share of everyone's budget, whose preview reaches a wanted error. Nothing is read or spent.

        Parameters
        ----------
        kind : str
            What is asked, as for `preview`.
        error : float, optional
            The wanted error (root mean square) in the unit of the answer.
        relative_error : float, optional
            The same relative to `size`: 0.05 for 5%.
        size : float, optional
            A public guess of the answer; a count of everybody knows its own.
        confidence : float, optional
            The error is then the half-width of an interval of this confidence.
        any_data : bool
            Whether the error must hold for any data, where budgets differ: the worst case of the preview.
        unit : "epsilon" or "share", optional
            What to look for: by default the share where people have budgets of their own, else ε.
        asked
            The other keys of the kind, as for `preview`; a price is not needed.

        Returns
        -------
        Needed
            Its `price` is what a release takes: ``table.count(**needed.price)``.

        Raises
        ------
        InputError
            If no price reaches the error, with the reason.
        """
        priced = [name for name in ("epsilon", "share") if asked.get(name) is not None]
        if priced:
            raise InputError(f"epsilon_for looks for the price: leave `{priced[0]}` out, or ask `preview` what it gives")
        unit = unit or ("epsilon" if self.dataset.budgets is None else "share")
        if unit == "share" and self.dataset.budgets is None:
            raise InputError("this table has no personal budgets to share; look for unit='epsilon'")
        given = {**asked, "epsilon": 1} if unit == "epsilon" else {**asked, "share": 1, "epsilon": None}
        request = self._request(kind, {**given, "share": given.get("share") if unit == "share" else None})
        wanted = wanted_error(error, relative_error, size, request, self.facts.rows)
        return needed(request, self._priced, error=wanted, unit=unit, confidence=confidence, any_data=any_data)

    def release(self, kind: KindName, **asked: Unpack[Asked]) -> Result:
        """Make a release of any `kind`; `asked` are the keys that a plan's ``[[release]]`` has. See `preview`."""
        return self._release(kind, {}, asked)

    def _release(self, kind: str, given: Mapping[str, Any], common: Mapping[str, Any]) -> Result:
        request = self._request(kind, {**given, **common})
        roster = self.dataset.budgets
        if request.epsilon is None and request.share is None and roster is not None:
            raise InputError(
                "say how much this may cost: share=0.1 for a tenth of everyone's own budget (share=1 for all of it), or "
                "epsilon=... for one ε for all"
            )
        standing = self._standing(binding=True)
        if roster is not None and roster.private and request.epsilon is None:
            try_out(request, self.schema, roster, standing)  # a typo must not cost the head counts
            self.head_counts()
        if standing is not None:
            about: dict[str, Any] = {"epoch": int(standing.epoch), "dataset_name": self.name, "source": self._source}
            paid = self.ledger.find(self.name, living_text(request, self.facts, **about), recipient=request.recipient)
            if paid is not None:  # before it is priced: perhaps nobody has anything left
                return folders.recalled(paid.artefact, request.name, keys=self.ledger.keys)
        return self._made(price(request, self.facts, standing))

    def _made(self, priced: Priced) -> Result:
        """Charge, run, remember; or bring back what was paid for."""

        def finish(result: Result, reservation: Reservation, fingerprint: str) -> dict[str, Any]:
            said: dict[str, Any] = {"reservation": reservation.id, "fingerprint": fingerprint, "notes": self._notes()}
            said["log"] = self.ledger.proof(self.name, reservation.id)
            made = certificate(priced, result, dataset=self.name, **said)
            result.with_receipt(folders.LedgerReceipt(made, keys=self.ledger.keys))
            return folders.stored(result, made)

        done, reservation = charge_and_run(
            priced,
            dataset_name=self.name,
            ledger=self.ledger,
            dataset=self.dataset.for_release(priced.facts.roster),
            source=self._source,
            finish=finish,
        )
        if done is not None:
            return done.result
        return folders.recalled(reservation.artefact, priced.request.name, keys=self.ledger.keys)

    def _standing(self, *, binding: bool = False) -> Standing | None:
        """Where the people of a living roster stand; `binding` first applies what they have lowered since."""
        if not isinstance(self.dataset.budgets, LivingRoster):
            return None
        life = self.people
        if binding:
            life.bind()
        return life.standing()

    def _request(self, kind: str, given: Mapping[str, Any]) -> Request:
        keys = {k: v for k, v in given.items() if k != "parameters"} | dict(given.get("parameters") or {})
        asked = {k: v for k, v in keys.items() if v is not None}
        return cast("Request", parse_request({"name": kind, "kind": kind, **asked}, "the request"))

    def __repr__(self) -> str:
        return f"Table({self.name!r}, columns {', '.join(self.schema.names)}, ledger {self._kept.words})"

    def _repr_html_(self) -> str:
        """For notebooks: the public domains of the columns. Nothing is read."""
        said = {n: self.schema.note(n).sentence(n, self.schema[n].told()) for n in self.schema.names}
        rows = (f"<tr><td>{escape(name)}</td><td>{escape(words)}</td></tr>" for name, words in said.items())
        caption = ": ".join(filter(None, (self.name, self.schema.about.title, self.schema.about.description)))
        return f"<table><caption>{escape(caption)}</caption>{''.join(rows)}</table>"
