"""The Ledger: a durable record of what has been spent on each dataset, by whom, for what.

The databases behind it load when a ledger is opened, not when Sfumato is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.ledger.allowing import Allowing
from sfumato.ledger.logged import Logged
from sfumato.ledger.reading import Reading
from sfumato.ledger.records import Reservation
from sfumato.privacy.units import Epsilon

if TYPE_CHECKING:
    from sfumato.ledger.bridging import Bridged
    from sfumato.ledger.database import Store
    from sfumato.ledger.life import Life
    from sfumato.ledger.standing import Standing
    from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
    from sfumato.privacy.charge import Charge
    from sfumato.privacy.statement import Statement


class Ledger(Allowing, Reading, Logged):
    """What has been spent, in a SQLite file or a PostgreSQL database. Open one with `Ledger.open`.

    A Ledger holds no connection between calls: it may be shared by threads and used after a fork.

    Parameters
    ----------
    store : Store
        The database, as `Ledger.open` opens it.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato.privacy.charge import Charge
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(Path(folder.name) / "clinic.ledger")
    >>> ledger.register("clinic", epsilon=1)
    >>> first = ledger.reserve("clinic", Charge.of("0.9"), request={"count": "age >= 65"})
    >>> ledger.commit(first.id, {"folder": "over65"})
    >>> ledger.reserve("clinic", Charge.of("0.9"), request={"count": "age >= 65"}).artefact
    {'folder': 'over65'}
    >>> ledger.reserve("clinic", Charge.of("0.4"), request={"count": "age >= 80"})
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: asked ε 0.4, 0.1 of 1 left for 'clinic'; lower its epsilon or share, or open a
    new ledger period. Nothing was spent
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        create: bool = True,
        key: str | Path | None = None,
        keys: str | Path | None = None,
    ) -> Ledger:
        """Open a ledger; make it first if there is none, and bring it up to date if its format is an older one.

        Parameters
        ----------
        location : str or Path
            A file name, or ``postgresql://user@host/database``.
        create : bool
            Whether a missing ledger is made or is an error.
        key : str or Path, optional
            The file with the key under which people are hashed. If it is not given, the environment's
            ``SFUMATO_PEOPLE_KEY`` or, for a ledger in a file, the same name with ``.key`` added. It is made with the first
            person and cannot be replaced: keep a copy, and keep it apart from copies of the ledger.
        keys : str or Path, optional
            The folder with the keys that sign checkpoints and certificates (see `sfumato.ledger.signing`), or else the
            environment's ``SFUMATO_SIGNING_KEYS``. Without it nothing is signed.
        """
        from sfumato.ledger.database import Store
        from sfumato.ledger.signing import keys_at

        ledger = cls(Store.opened(location, create=create, key=key))
        ledger.keys = keys_at(keys)
        return ledger

    @property
    def location(self) -> str:
        """The file or the address (without a password)."""
        return str(self._store.name)

    @property
    def created(self) -> bool:
        """Whether there was no ledger here before: a mistyped name would start with fresh budgets."""
        return self._store.created

    def __repr__(self) -> str:
        return f"Ledger({self.location!r})"

    def __deepcopy__(self, _memo: Any) -> Ledger:
        """Itself: a copy of what holds a ledger writes into the same book."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """By its place: in another process the same ledger is opened again, and never a new one made."""
        return _opened_again, (self.location,)

    def register(
        self,
        dataset: str,
        *,
        epsilon: Epsilon | None = None,
        people: PersonBudgets | None = None,
        attributes: AttributeBudgets | None = None,
        recipients: RecipientBudgets | None = None,
        living: bool = False,
        period: str | None = None,
        per_period: Mapping[str, Epsilon] | None = None,
        private: bool = False,
    ) -> None:
        """Write down a dataset's caps; the same numbers again change nothing, other numbers are refused.

        Parameters
        ----------
        dataset : str
            Its name in this ledger.
        epsilon : optional
            Cap on the sum of all releases.
        people : PersonBudgets, optional
            The public roster: what each person may lose over all releases.
        attributes : AttributeBudgets, optional
            What each attribute may lose over all releases.
        recipients : RecipientBudgets, optional
            What each recipient may learn, and what all may learn together.
        living : bool
            Whether people join, change and withdraw (see `people`); then `people` is the menu and its head counts do not
            matter.
        period : str, optional
            ``"year"``, ``"quarter"`` or ``"month"`` (calendar, UTC), for a living roster whose caps renew.
        per_period : mapping, optional
            Tier -> what each of its people may lose in one period, beside what they granted for life.
        private : bool
            Whether the roster is private: of `people` only the menu is kept, levels and names, and no message counts heads.
            Where it is a living one too, charges are by tier of the menu, and who has too little left takes no part
            without anybody being told.
        """
        from sfumato.ledger import register
        from sfumato.ledger.caps import Caps

        caps = Caps.of(
            dataset,
            epsilon=epsilon,
            people=people,
            attributes=attributes,
            recipients=recipients,
            living=living,
            period=period,
            per_period=per_period,
            private=private,
        )
        register.register(self._store, caps)

    def reserve(
        self,
        dataset: str,
        charge: Charge,
        *,
        request: str | Mapping[str, Any],
        recipient: str | None = None,
        name: str | None = None,
        by: str | None = None,
        standing: Standing | int | None = None,
        analyst: str | None = None,
        purpose: str | None = None,
    ) -> Reservation:
        """Charge a release before it reads anything; on disk when this returns.

        An identical request that was *committed* earlier, for the same recipient or for everybody, is returned with
        its artefact at no cost. One that is only reserved (it is running, or it crashed) does not count: the new
        request is charged again, because nobody can tell whether the other one's noise was seen.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        charge : Charge
            What the release will cost at most. Where it names no person groups or no attributes, each of them is
            charged the total.
        request : str or mapping
            What is asked, as canonical JSON or as a mapping that is written as such.
        recipient : str, optional
            Who will see the result; ``None`` is everybody, and is charged to every recipient.
        name : str, optional
            What the release is called. It is kept for whoever reads the history; the request alone says whether two
            releases are the same.
        by : str, optional
            Who asks. Nothing is kept if it is not given: not even the name of the operating system's user.
        standing : Standing or int, optional
            For a living public roster and a charge per person group: the standing (or its version) whose cohorts the groups
            are. The charge is refused if people changed since.
        analyst, purpose : str, optional
            Whose allowance is charged the total, and for what: both or neither. What is returned at no cost is not charged.

        Raises
        ------
        BudgetError
            A cap would be passed; the message names the tightest one and nothing was spent.
        InputError
            The charge is not one for the registered caps; nothing was spent.
        """
        from sfumato.ledger import reserve

        said: dict[str, Any] = {"recipient": recipient, "name": name, "by": by, "analyst": analyst, "purpose": purpose}
        made = reserve.reserve(self._store, dataset, charge, request=request, standing=standing, **said)
        if not made.repeated:
            self._witnessed(dataset)
        return made

    def people(self, dataset: str) -> Life:
        """The people of a `dataset`: who joins, changes, withdraws, what was spent on each of them."""
        from sfumato.ledger.life import Life

        return Life(self._store, dataset, after=self._witnessed)

    def commit(self, reservation_id: int, artefact: Mapping[str, Any] | str | Path) -> None:
        """Record that the release `reservation_id` is finished; the `artefact` is a mapping, or the path of its folder."""
        from sfumato.ledger import reserve

        made = dict(artefact) if isinstance(artefact, Mapping) else {"path": str(artefact)}
        try:
            written = json.dumps(made, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"an artefact is recorded as JSON: {error}") from None
        reserve.finish(self._store, reservation_id, state="committed", artefact=written)

    def fail(self, reservation_id: int) -> None:
        """Record that the release `reservation_id` failed; its budget stays spent.

        Why is not kept: whether it was the engine, the disk or a refusal may depend on the private table.
        """
        from sfumato.ledger import reserve

        reserve.finish(self._store, reservation_id, state="failed", artefact=None)

    def find(self, dataset: str, request: str | Mapping[str, Any], *, recipient: str | None = None) -> Reservation | None:
        """The committed release that `reserve` would return at no cost, or ``None``. Nothing is written.

        `dataset`, `request` and `recipient` are as in `reserve`.
        """
        from sfumato.ledger import queries

        return queries.find(self._store, dataset, request, recipient)

    def bridge(self, dataset: str, statement: Statement, *, person: object, items: int) -> Bridged:
        """Count what somebody's own device has told recipients, so that caps see both; never more than once.

        What the device spent is spent: no cap refuses this. One that is passed is used up and lets nothing more through.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        statement : Statement
            What the device's ledger wrote, as `Statement.from_json` reads it.
        person : int or str
            Whose device it is; kept as a keyed hash, as all people are.
        items : int
            How many items of a history the promise of this ledger covers together: the rows that a person may own, where
            rows are items. A device's own promise is for one.

        Returns
        -------
        Bridged
            What was charged to each cap, and by how much any of them is passed.
        """
        from sfumato.ledger import bridging

        return bridging.bridge(self._store, dataset, statement, person=person, items=items)


def _opened_again(location: str) -> Ledger:
    return Ledger.open(location, create=False)
