"""The part of the Ledger that looks ahead: allowances, and what a charge would be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.ledger.allowance import Allowance
    from sfumato.ledger.caps import Caps
    from sfumato.ledger.database import Store
    from sfumato.privacy.charge import Charge
    from sfumato.privacy.units import Epsilon


class Allowing:
    """What a `Ledger` does with allowances."""

    _store: Store

    def allow(
        self,
        dataset: str,
        *,
        analyst: str,
        purpose: str,
        epsilon: Epsilon,
        per_day: Epsilon | None = None,
        by: str | None = None,
    ) -> None:
        """Say what an analyst may spend for a purpose from now on. The newest word holds; what was spent stays spent.

        A charge that names an analyst is refused without an allowance for its purpose; one that names none is not bounded
        by allowances. Less than is spent already leaves nothing, and 0 ends an allowance.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        analyst : str
            Whose allowance it is.
        purpose : str
            What it is for.
        epsilon : optional
            The most that all their releases for this purpose may cost, each counted with what the person who loses most
            loses by it.
        per_day : optional
            The most in one day of the UTC calendar; without it, as much as there is.
        by : str, optional
            Who grants it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sfumato.ledger import Ledger
        >>> from sfumato.privacy.charge import Charge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.open(Path(folder) / "clinic.ledger")
        ...     ledger.register("clinic", epsilon=10)
        ...     ledger.allow("clinic", analyst="ann", purpose="planning", epsilon="0.5")
        ...     ledger.would_fit("clinic", Charge.of("0.6"), analyst="ann", purpose="planning")
        "asked ε 0.6, 0.5 of 0.5 left for analyst 'ann' and purpose 'planning' in 'clinic'; lower its epsilon or share, or
        ask for a larger allowance. Nothing was spent"
        """
        from sfumato.ledger import granting

        granting.allow(self._store, dataset, analyst=analyst, purpose=purpose, epsilon=epsilon, per_day=per_day, by=by)

    def allowances(self, dataset: str, analyst: str | None = None) -> tuple[Allowance, ...]:
        """What analysts may spend in a `dataset` and what they have, by name; of one `analyst`, or of all."""
        from sfumato.ledger import queries

        return queries.allowances(self._store, dataset, analyst)

    def would_fit(
        self,
        dataset: str,
        charge: Charge,
        *,
        recipient: str | None = None,
        analyst: str | None = None,
        purpose: str | None = None,
    ) -> str | None:
        """The sentence with which `reserve` would refuse a charge now, or ``None`` if it fits. Nothing is written.

        `dataset`, `charge`, `recipient`, `analyst` and `purpose` are as in `reserve`. For charges one after the other, see
        `caps` and `sfumato.ledger.foresee`.
        """
        caps = self.caps(dataset, analyst=analyst, purpose=purpose)
        return caps.refusal(charge, recipient, analyst=analyst, purpose=purpose)

    def caps(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Caps:
        """Every cap of a `dataset` and what it has carried: a copy to ask "what if" with.

        Of allowances only that of the `analyst` for the `purpose`, if both are given.

        >>> import tempfile
        >>> from pathlib import Path
        >>> from sfumato.ledger import Ledger
        >>> from sfumato.privacy.charge import Charge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.open(Path(folder) / "clinic.ledger")
        ...     ledger.register("clinic", epsilon=1)
        ...     ledger.caps("clinic").after(Charge.of("0.9")).refusal(Charge.of("0.4"))
        "asked ε 0.4, 0.1 of 1 left for 'clinic'; lower its epsilon or share, or open a new ledger period. Nothing was
        spent"
        """
        from sfumato.ledger import queries

        pairs = () if analyst is None or purpose is None else ((analyst, purpose),)
        return queries.caps(self._store, dataset, pairs)
