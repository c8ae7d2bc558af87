"""Does a release cost the person who leaves what that person is charged? Tried on random releases, end to end.

A plan is opened, priced, charged to a ledger and released, on a table and on the same table without one person, with the
same answers of the Meter. Then

- what reaches the noise may differ by no more than the person was charged, is promised, and granted for this release,
- all that is published (figures, details, warnings, certificate, report, files, pickle) must be the same: a function of the
  Meter's answers.

``python -m sfumato.testing --seconds 600`` tries as many as fit into ten minutes.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.loss import Loss
from sfumato.privacy.source import Generator, Seeded
from sfumato.releases.opening import open as open_table
from sfumato.results import Result
from sfumato.testing.price_plans import PricePlan, random_plan
from sfumato.testing.replaying import Replay, replay
from sfumato.testing.still import still
from sfumato.testing.tape import LeakError, Tape

if TYPE_CHECKING:
    import pandas as pd

_NAME = "fuzz"


@dataclass(frozen=True, eq=False)
class PriceFound:
    """What one release would have cost the person who left, in nano-ε.

    Attributes
    ----------
    plan : PricePlan
        What was tried.
    mechanism : str
        How it was answered.
    loss : float
        By how much the answers tell the two tables apart at most.
    charged : int
        What the ledger charged that person.
    promised : int
        What the guarantee says that person loses.
    """

    plan: PricePlan
    mechanism: str
    loss: float
    charged: int
    promised: int


def check_price(plan: PricePlan, *, mechanism: str = "auto", seed: int = 0, files: bool = True) -> PriceFound:
    """Release `plan` on the table and on its neighbour, and compare.

    Parameters
    ----------
    plan : PricePlan
        What to try.
    mechanism : str
        Which mechanism is asked for.
    seed : int
        Of the noise.
    files : bool
        Whether the artefact folder is written and compared as well, which takes longer.

    Returns
    -------
    PriceFound

    Raises
    ------
    LeakError
        If the loss is larger than what was charged, promised or granted, or if what is published differs.

    Examples
    --------
    >>> plan = random_plan(Seeded(4).generator(), "count")
    >>> found = check_price(plan, files=False)
    >>> found.loss <= found.charged <= plan.allowed
    True
    """
    made: list[tuple[int, int, str]] = []

    def run(table: pd.DataFrame, tape: Tape) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="sfumato-fuzz-") as folder:
            return _release(plan, table, tape, mechanism, Path(folder), made, files=files)

    with still():
        found = replay(run, plan.table, plan.without, source=seed)
    (charged, promised, chosen), _ = made
    loss = _loss(plan, found)
    place = f"{plan.kind} by {chosen}, {plan.schema.terms.rows_per_person} rows a person, {dict(plan.asked)}"
    for what, most in (("was charged", charged), ("was promised", promised), ("granted", plan.allowed)):
        if loss > most:
            raise LeakError(f"{place}: a person loses {loss} nano-ε who {what} {float(most)}")
    if charged > plan.allowed:
        raise LeakError(f"{place}: a person is charged {charged} nano-ε who granted {float(plan.allowed)}")
    here, there = found.published
    if here != there:
        parts = ", ".join(sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key)))
        raise LeakError(f"{place}: published differently for the neighbour after the same answers: {parts}")
    return PriceFound(plan, chosen, loss, charged, promised)


def price_fuzz(
    *, seconds: float = 60.0, trials: int | None = None, seed: int = 0, kind: str | None = None
) -> list[PriceFound]:
    """Random releases, by mechanisms drawn from their own previews.

    Parameters
    ----------
    seconds : float
        How long to go on, if `trials` does not say how often.
    trials : int, optional
        How many releases to make, however long it takes.
    seed : int
        Decides what is tried.
    kind : str, optional
        Only this kind of release.

    Returns
    -------
    list of PriceFound
        One for each release that public facts allowed.

    Raises
    ------
    LeakError
        At the first release that costs more than its price, or publishes something else for the neighbour.
    """
    draw = Seeded(seed).generator()
    found: list[PriceFound] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end if trials is None else len(found) < trials:
        plan = random_plan(draw, kind)
        try:
            mechanism = _named(plan, draw)
        except (InputError, BudgetError):  # refused by the preview, from public facts
            continue
        found.append(check_price(plan, mechanism=mechanism, seed=seed, files=len(found) % 8 == 0))
    return found


def _named(plan: PricePlan, draw: Generator) -> str:
    """Any mechanism that the preview offers."""
    with tempfile.TemporaryDirectory(prefix="sfumato-fuzz-") as folder:
        offers = _open(plan, plan.table, Tape(0), Path(folder)).preview(plan.kind, **plan.asked)
    return str(draw.choice([offer.mechanism for offer in offers]))


def _open(plan: PricePlan, table: pd.DataFrame, tape: Tape, folder: Path) -> Any:
    about: dict[str, Any] = {"schema": plan.schema, "budgets": plan.roster, "rows": plan.people}
    cap = 1000 if plan.roster is None else None
    return open_table(table, ledger=folder / "fuzz.ledger", name=_NAME, epsilon=cap, noise=tape, **about)


def _release(
    plan: PricePlan, table: pd.DataFrame, tape: Tape, mechanism: str, folder: Path, made: list[Any], *, files: bool
) -> dict[str, Any]:
    """Make the release; returns all that is published of it, without the minute in which it was made."""
    opened = _open(plan, table, tape, folder)
    result: Result = opened.release(plan.kind, mechanism=mechanism, **plan.asked)
    assert result.receipt is not None
    minute = str(result.receipt.certificate["created"]).encode()
    balance = opened.balance()
    made.append((_charged(plan, balance), _promised(plan, result), result.mechanism))
    out: dict[str, Any] = {
        "result": repr(result.to_dict()),
        "certificate": repr({k: v for k, v in result.receipt.certificate.items() if k != "created"}),
        "ledger": repr([(r.total, r.charges, r.people, r.request, r.state) for r in balance.releases]),
        "pickle": _pickle(result).replace(minute, b""),
    }
    if files:
        written = result.save(folder / "saved")
        out |= {path.name: path.read_bytes().replace(minute, b"") for path in sorted(written.iterdir())}
    return out


def _pickle(result: Result) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception:  # what cannot be stored is not published
        return b""


def _group(plan: PricePlan, levels: Any) -> int | None:
    """The person group of whoever leaves: the largest budget that is not above theirs; None if they granted nothing."""
    nano = int(plan.granted[plan.person] * 10**9 + Fraction(1, 10**6))
    below = [i for i, level in enumerate(levels) if 0 < level <= nano]
    return max(below, key=lambda i: levels[i]) if below else None


def _charged(plan: PricePlan, balance: Any) -> int:
    if balance.people is None:
        return int(balance.total.spent)
    group = _group(plan, balance.people.levels.tolist())
    return 0 if group is None else int(balance.people.spent[group])


def _promised(plan: PricePlan, result: Result) -> int:
    rows = result.guarantee.groups
    if rows is None:
        return int(result.guarantee.nano)
    group = _group(plan, rows.granted[1].tolist())
    return 0 if group is None else int(rows.used[1][group])


def _loss(plan: PricePlan, found: Replay[Any]) -> float:
    """The loss of all calls; inside a sample, of somebody who is in it only with a chance."""
    samples = [call.here for call in found.calls if call.here.kind == "sample"]
    if not samples or plan.roster is None:
        return found.loss
    group = _group(plan, plan.roster.head_counts().levels.tolist())
    if group is None:
        return found.loss
    chance = np.asarray(samples[0].public["thresholds"]).reshape(-1)[group] / 2.0**63
    return float(Loss(np.array([int(found.loss)])).in_sample(np.array([chance])).nano[0])
