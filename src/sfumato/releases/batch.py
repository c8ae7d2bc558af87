"""Carry out a plan: preview it, or release it into artefact folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.ledger import Caps, Ledger, Reservation, foresee
from sfumato.privacy.source import SECURE, Source
from sfumato.releases import folder as folders
from sfumato.releases.certificate import certificate, minute
from sfumato.releases.heads import seen_beforehand
from sfumato.releases.keeping import fresh_budgets, warn_of
from sfumato.releases.mistakes import at_release
from sfumato.releases.outcomes import Outcome as Outcome
from sfumato.releases.outcomes import StoppedError as StoppedError
from sfumato.releases.pipeline import (
    HEAD_COUNTS,
    Priced,
    at_once,
    charge_and_run,
    default_shares,
    fingerprint_of,
    request_text,
)
from sfumato.releases.plan import Plan, read_plan
from sfumato.releases.plan_facts import asks_of, draws_on_people, facts_of, granted_in
from sfumato.releases.plan_people import again_priced, bind, folder_of, ledger_of, only_this, preview_living
from sfumato.releases.repeated import again, settle
from sfumato.results import Result
from sfumato.tables.engine_list import notes_of
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.offers import Facts
    from sfumato.tables import Roster

Progress = Callable[[str, str], None]


def _quiet(_name: str, _step: str) -> None:
    """No progress shown."""


def load(path: str | Path) -> Plan:
    """Read and check a plan file. Nothing private is opened.

    Parameters
    ----------
    path : path
        The TOML file.

    Returns
    -------
    Plan
    """
    return read_plan(path)


class PlanPreview(Sequence[Priced]):
    """The releases of a plan with their prices, and what was found about the plan as a whole.

    Parameters
    ----------
    priced : sequence of Priced
        The releases in the order of the plan.

    Attributes
    ----------
    findings : tuple of str
        What is odd about the roster, in sentences with head counts, and what `fresh` says.
    fresh : tuple of str
        Why the dataset would start with a fresh budget; empty if the ledger knows it.
    """

    def __init__(self, priced: Sequence[Priced], findings: tuple[str, ...], fresh: tuple[str, ...] = ()) -> None:
        self._priced = tuple(priced)
        self.findings = (*findings, *fresh)
        self.fresh = fresh

    def __len__(self) -> int:
        return len(self._priced)

    def __getitem__(self, index: Any) -> Any:
        return self._priced[index]

    @property
    def counting(self) -> Priced | None:
        """The counting of a private roster's heads, where it has still to be made."""
        first = next(iter(self._priced), None)
        return first if first is not None and first.request.kind == HEAD_COUNTS else None

    @property
    def refused(self) -> Priced | None:
        """The first release that the ledger would refuse."""
        return next((p for p in self._priced if p.foreseen is not None and p.foreseen.refusal is not None), None)


def preview(plan: Plan, *, source: Source = SECURE, analyst: str | None = None, purpose: str | None = None) -> PlanPreview:
    """Price and expected error of every applicable mechanism, against all caps, for the plan as a whole.

    Opens the schema, the roster and, if there is one, the ledger; never the table. Nothing is written.

    Parameters
    ----------
    plan : Plan
        What `load` read.
    source : Source
        Random bits of the release to come: what an experiment paid for does not pay for a private release.
    analyst, purpose : str, optional
        Whose allowance would be charged, and for what: both or neither.

    Returns
    -------
    PlanPreview
        A sequence of `Priced`, one for each release.
    """
    whose = {"analyst": analyst, "purpose": purpose}
    roster = plan.roster()
    facts, counting = facts_of(plan, roster, source)
    requests = default_shares(plan.releases, roster is not None)
    engine = notes_of(plan.source, plan.table)
    if isinstance(roster, LivingRoster):
        shown, said_of_people = preview_living(plan, facts, requests, source, counting, **whose)
        return PlanPreview(shown, (*engine, *said_of_people))
    found = (*engine, *(() if facts.roster is None else facts.roster.findings()))
    priced = [] if counting is None else [counting]
    for request in requests:
        with at_release(request.name):
            item, notes = seen_beforehand(request, facts, counting)
        found = (*found, *(note for note in notes if note not in found))
        priced += [] if item is None else [item]
    said = foresee(plan.ledger, _caps(plan, roster, facts), asks_of(plan, priced, facts, source, **whose))
    fresh = fresh_budgets(plan.ledger, plan.dataset, [plan.home, plan.folder])
    return PlanPreview([replace(p, foreseen=f) for p, f in zip(priced, said, strict=True)], found, fresh)


def _caps(plan: Plan, roster: Roster | None, facts: Facts) -> Caps:
    given: dict[str, Any] = {"attributes": plan.attributes, "recipients": plan.recipients}
    private = roster is not None and roster.private
    return Caps.of(plan.dataset, epsilon=plan.epsilon, people=granted_in(roster, facts), private=private, **given)


def release(
    plan: Plan,
    *,
    only: str | None = None,
    source: Source = SECURE,
    progress: Progress = _quiet,
    notice: Callable[[str], None] | None = None,
    by: str | None = None,
    analyst: str | None = None,
    purpose: str | None = None,
    ending: Callable[[], None] = at_once,
    ledger: Ledger | None = None,
) -> list[Outcome]:
    """Run the releases of a plan, each charged before it reads anything.

    A plan that cannot be paid as a whole, or whose folders are taken, is refused before anything is charged. If a release
    fails after others were made, `StoppedError` says which were.

    Parameters
    ----------
    plan : Plan
        What `load` read.
    only : str, optional
        Make only the release of this name.
    source : Source
        Random bits.
    progress : callable
        Hears the name of a release and the step it is at.
    notice : callable, optional
        Hears what a person should know: what is odd about the roster, and why the dataset starts with a fresh budget.
        Without one the latter is a `PrivacyWarning`, before anything is charged.
    by : str, optional
        Who asks, for the ledger.
    analyst, purpose : str, optional
        Whose allowance is charged, and for what: both or neither.
    ending : callable
        Called when a release that was charged is over, however it ended, before the ledger hears of it.
    ledger : Ledger, optional
        The plan's ledger, where it is open already and knows the dataset.

    Returns
    -------
    list of Outcome
    """
    charged: dict[str, Any] = {"by": by, "analyst": analyst, "purpose": purpose, "ending": ending}
    return _release(plan, [], only=only, source=source, progress=progress, notice=notice, charged=charged, opened=ledger)


def _release(
    plan: Plan,
    before: list[Outcome],
    *,
    only: str | None,
    source: Source,
    progress: Progress,
    notice: Callable[[str], None] | None,
    charged: dict[str, Any],
    opened: Ledger | None,
) -> list[Outcome]:
    """`release`, once `before` was made: nothing, or the head counts that everything else is priced from."""
    roster = plan.roster()
    facts, _ = facts_of(plan, roster, source)
    if only is not None and only not in [r.name for r in plan.releases]:
        raise InputError(f"the plan has no release {only!r}; it has {', '.join(r.name for r in plan.releases)}")
    living = isinstance(roster, LivingRoster)
    if living:
        bind(plan)
    # What people have left depends on what was released before: on a living roster nothing else is priced beside it.
    try:
        whose = {"analyst": charged["analyst"], "purpose": charged["purpose"]}
        seen = preview(only_this(plan, only) if living and only is not None else plan, source=source, **whose)
    except SfumatoError as error:
        _stop(error, None, before)
    outcomes = [*before]
    counting = seen.counting if draws_on_people(plan, only) else None
    asked = [p for p in seen if only in (None, p.request.name)]
    priced = asked if counting is None else [counting]
    if only is None and seen.refused is not None and seen.refused.foreseen is not None:
        refusal = BudgetError(
            f"the plan as a whole cannot be paid: release {seen.refused.request.name!r} would be refused. "
            f"{seen.refused.foreseen.refusal}. Change the plan, or make some of its releases with --only (only=...)"
        )
        _stop(refusal, seen.refused.request.name, before)
    _folders_are_free(plan, asked, only, source, counted=counting is None)
    tables = [plan.described(item.facts.schema, item.facts.roster) for item in priced]
    if seen.fresh:
        for table in tables:
            table.check()  # a typo in a path is no fresh budget yet
    _say(seen, notice, private=source.private)
    ledger = opened or ledger_of(plan, granted_in(roster, facts))
    for item, table in zip(priced, tables, strict=True):
        try:
            current = again_priced(item, facts, ledger, plan.dataset)  # people stand where the release before left them
            outcomes.append(carry_out(plan, current, table, ledger, source, progress, **charged))
        except (SfumatoError, KeyboardInterrupt) as error:
            _stop(error, item.request.name, outcomes)
    if counting is None:
        return outcomes
    # The heads are counted now: price everything anew from them.
    return _release(
        plan, outcomes, only=only, source=source, progress=progress, notice=notice, charged=charged, opened=opened
    )


def _folders_are_free(plan: Plan, asked: Sequence[Priced], only: str | None, source: Source, *, counted: bool) -> None:
    """Refuse a plan whose folders hold something else, before anything is charged."""
    folders.check_place(plan.folder)
    known = {p.request.name: p for p in asked if counted or p.request.epsilon is not None}
    for request in plan.releases:
        if only not in (None, request.name):
            continue
        if request.name in known:
            text = request_text(known[request.name], dataset_name=plan.dataset, source=source)
            folders.prepare(folder_of(plan, known[request.name]), fingerprint_of(text))
        else:  # what it asks rests on head counts that nobody has seen: no folder can hold its answer
            folders.prepare(plan.folder / request.name, "")


def _say(seen: PlanPreview, notice: Callable[[str], None] | None, *, private: bool) -> None:
    """Tell whoever listens what was found; if nobody does, warn of fresh budgets all the same."""
    if notice is not None:
        for sentence in seen.findings:
            notice(sentence)
    elif private:
        warn_of(seen.fresh)


def _stop(error: BaseException, name: str | None, outcomes: list[Outcome]) -> NoReturn:
    """Say what was released before a plan stopped: the ledger has charged it."""
    interrupted = isinstance(error, KeyboardInterrupt)
    if not outcomes and not interrupted:
        raise error
    why = f"stopped during release {name!r}; if it was charged, that stays spent" if interrupted else str(error)
    raise StoppedError(why, outcomes, name) from None


def carry_out(
    plan: Plan, priced: Priced, dataset: Any, ledger: Ledger, source: Source, progress: Progress, **charged: Any
) -> Outcome:
    """Charge and make one release that was priced, into its folder; or bring back what was made before.

    `charged` is what `charge_and_run` hears of who asks.
    """
    name = priced.request.name
    folder = folder_of(plan, priced)
    asked = request_text(priced, dataset_name=plan.dataset, source=source)
    earlier = folders.prepare(folder, fingerprint_of(asked))
    if earlier is not None:
        settle(ledger, plan.dataset, priced.request.recipient, asked, earlier, folder)
        return Outcome(name, folder, earlier, repeated=True)

    begun = minute()

    def finish(result: Result, reservation: Reservation, fingerprint: str) -> dict[str, Any]:
        about: dict[str, Any] = {"reservation": reservation.id, "fingerprint": fingerprint, "said_by": "the plan"}
        about |= {"log": ledger.proof(plan.dataset, reservation.id), "created": begun}
        made = certificate(priced, result, dataset=plan.dataset, notes=notes_of(plan.source, plan.table), **about)
        return {**folders.stored(result, folders.write(folder, result, made, keys=ledger.keys)), "folder": str(folder)}

    done, reservation = charge_and_run(
        priced,
        dataset_name=plan.dataset,
        ledger=ledger,
        dataset=dataset,
        source=source,
        finish=finish,
        progress=lambda step: progress(name, step),
        **charged,
    )
    if done is None:
        return Outcome(name, *again(name, folder, dict(reservation.artefact or {}), keys=ledger.keys), repeated=True)
    return Outcome(name, folder, folders.read_certificate(folder) or {}, repeated=False)
