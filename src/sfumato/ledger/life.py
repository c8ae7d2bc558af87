"""People of a dataset through time: they join, change what they grant, withdraw, and ask what was spent on them.

A choice is durable when the call returns and comes into force at the next *epoch*; what it takes away binds before the next
release already (`Life.bind`). Nobody's spending is ever reset: it follows the person through tiers, out of the roster and
back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.ledger.life_records import Epoch, Pending, Receipt
from sfumato.ledger.standing import Menu, Standing
from sfumato.privacy.units import Epsilon

if TYPE_CHECKING:
    from sfumato.ledger.database import Store
    from sfumato.privacy.exact import Exact


class Life:
    """The people of one dataset. Get it from `sfumato.ledger.Ledger.people`.

    A person is named by text or a whole number; 7 and "7" are the same person, and text is brought to Unicode's NFC. Only
    keyed hashes are kept.

    Parameters
    ----------
    store : Store
        The ledger's database.
    dataset : str
        A registered dataset.
    after : callable, optional
        Called with the dataset when something was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfumato.ledger import Ledger
    >>> from sfumato.privacy.budgets import PersonBudgets
    >>> from sfumato.privacy.charge import Charge
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(Path(folder.name) / "clinic.ledger")
    >>> ledger.register("clinic", people=PersonBudgets.from_tiers({"open": (1, 0), "strict": ("0.1", 0)}), living=True)
    >>> clinic = ledger.people("clinic")
    >>> clinic.join("ann", "open"); clinic.join("ben", "strict")
    >>> clinic.epoch().joined
    2
    >>> now = clinic.standing()
    >>> now.tiers, now.left.tolist()
    (('strict', 'open'), [100000000, 1000000000])
    >>> _ = ledger.reserve("clinic", Charge.of_people([10**7, 10**8]), request="a", standing=now)
    >>> clinic.change("ann", "strict")
    >>> _ = clinic.bind()
    >>> clinic.receipt("ann").spent, clinic.receipt("ann").left
    (100000000, 0)
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, dataset: str, *, after: Callable[[str], None] | None = None) -> None:
        from sfumato.ledger.lives import Lives

        self._lives = Lives(store, dataset, after)
        self._where = f"{dataset!r} in {store.name!r}"

    def __repr__(self) -> str:
        return f"Life({self._where})"

    def join(self, person: Any, grant: str | Epsilon) -> None:
        """Take a `person` in at the next epoch, with a `grant`: a tier of the menu or an ε of their own.

        Who is there already changes what they grant; who withdrew comes back with what was spent on them before. What they
        have already, or wait for already, changes nothing.
        """
        self._lives.join(person, grant)

    def change(self, person: Any, grant: str | Epsilon) -> None:
        """Let a `person` who is there grant something else; a lower `grant` binds at the next release already."""
        self._lives.change(person, grant)

    def withdraw(self, person: Any) -> None:
        """Take a `person` out, at the next release already. What was spent on them cannot be undone."""
        self._lives.withdraw(person)

    def choose(self, person: Any, grant: str | Epsilon | None) -> Receipt | None:
        """What a `person` chooses for themselves, and where they stand after it, in one transaction.

        Parameters
        ----------
        person : int or str
            Their identifier.
        grant : str, ε or None
            A tier of the menu by its name, an ε (not as text), or ``None`` to withdraw.

        Returns
        -------
        Receipt or None
            Without lines; ``None`` for somebody who withdraws and whom the dataset does not know.
        """
        return self._lives.choose(person, grant)

    def summary(self, person: Any) -> Receipt | None:
        """The receipt of a `person` without its lines, quickly; ``None`` for somebody whom the dataset does not know."""
        return self._lives.summary(person)

    def bring(self, people: Sequence[Any] | NDArray[Any], grants: Any, *, missing: str = "stay") -> Pending:
        """Bring many people at once: new ones join, others change what they grant, both at the next epoch.

        Who withdrew stays out: only their own `join` brings them back. A dataset with a fixed roster gets persons by this,
        at once, if those brought are as many in each tier as it was registered with; each takes their tier's history.

        Parameters
        ----------
        people : sequence
            Identifiers, each once: a list, an array or a pyarrow column.
        grants : sequence, str or ε
            A tier or an ε for each person, or one for all.
        missing : str
            What becomes of people who are there and are not brought: ``"stay"`` or ``"withdraw"``.

        Returns
        -------
        Pending
            What these choices ask for, by kind.
        """
        return self._lives.bring(people, grants, missing=missing)

    def pending(self) -> Pending:
        """What waits for the next epoch, by kind; of a private roster no numbers are told."""
        return self._lives.pending()

    def epoch(self, at: datetime | None = None) -> Epoch:
        """Close an epoch: everything that waits comes into force, in one transaction.

        Parameters
        ----------
        at : datetime, optional
            The moment to write down, with its time zone; now if not given.
        """
        return self._lives.epoch(at)

    def bind(self) -> Epoch | None:
        """Bring into force what waits and takes something away; call it before a release is priced.

        Returns
        -------
        Epoch or None
            What came into force; ``None`` if there was nothing, and then nothing is written. Of a private roster always
            the same, and always an entry in the log: whether anything waited is not told.
        """
        return self._lives.bind()

    def standing(self) -> Standing:
        """Who has what left, in cohorts of people alike; of a private roster only the menu."""
        return self._lives.standing()

    def menu(self) -> Menu | None:
        """What people may choose from, ``None`` where the roster is a fixed one; nobody is looked at."""
        return self._lives.menu()

    def knows(self, person: Any) -> bool:
        """Whether this `person` is or was in the roster, or waits to join."""
        return self._lives.knows(person)

    def receipt(self, person: Any, *, limit: int | None = None, before: int | None = None) -> Receipt:
        """What was spent on a person, by which release, for whom, under which grant, and what is left.

        Parameters
        ----------
        person : int or str
            Their identifier.
        limit : int, optional
            The most lines, the newest ones; 1,000 if it is not given.
        before : int, optional
            Only lines of releases before the one of this number, as `Receipt.older` says.
        """
        return self._lives.receipt(person, limit=limit, before=before)

    def taking_part(self, release_id: int, people: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        """In which group of a release's charge each person was charged, -1 for none.

        Parameters
        ----------
        release_id : int
            A release that was charged to the people of this dataset.
        people : sequence
            Identifiers, as the private table has them; repeated ones are fine.

        Returns
        -------
        int64 array
            The cohort of the standing that the charge was for, or the tier of the menu where the roster is private.
        """
        return self._lives.taking_part(release_id, people)

    def heads_charged(self, release_id: int) -> Exact[NDArray[np.int64]]:
        """How many people of each tier of a private roster a release was charged to, as a private value.

        Parameters
        ----------
        release_id : int
            A release that was charged to the people of this dataset.

        Returns
        -------
        Exact of an int64 array
            In the order of the menu. One person is one head in one tier; only a Meter opens it.
        """
        return self._lives.heads_charged(release_id)
