"""What a Ledger shows: balances, history, and whether everything adds up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.ledger.records import Balance, Page, Release

if TYPE_CHECKING:
    from sfumato.ledger.database import Store


class Reading:
    """The part of `sfumato.ledger.Ledger` that only looks."""

    _store: Store

    def attributes(self, dataset: str) -> tuple[str, ...]:
        """The attributes of a `dataset` that have a cap, in order."""
        from sfumato.ledger import queries

        return queries.attributes(self._store, dataset)

    def balance(self, dataset: str, *, releases: int | None = None) -> Balance:
        """Who has what left in a `dataset`, and its newest `releases`: 100 if it is not said how many, or fewer where each
        of them is charged to many caps.
        """
        from sfumato.ledger import queries

        return queries.balance(self._store, dataset, releases)

    def history(
        self, dataset: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Page:
        """A page of the releases of a `dataset`, oldest first; the newest page if neither `before` nor `after` is given.

        What a page takes does not depend on how many releases there are; `releases` has all of them.

        Parameters
        ----------
        dataset : str
            A registered dataset.
        limit : int, optional
            The most releases on the page. If it is not given, 500, or fewer where each is charged to many caps.
        before, after : int, optional
            Releases before, or after, the one of this number; what `Page.older` and `Page.newer` of another page say.
        """
        from sfumato.ledger import queries

        return queries.history(self._store, dataset, limit, before, after)

    def releases(self, dataset: str) -> Iterator[Release]:
        """Every release of a `dataset`, oldest first, read a page at a time; those made meanwhile come last."""
        from sfumato.ledger import queries

        return queries.releases(self._store, dataset)

    def entry(self, dataset: str, reservation_id: int) -> Release | None:
        """The release `reservation_id` of a `dataset`, without reading all the others; ``None`` if it has no such."""
        from sfumato.ledger import queries

        return queries.entry(self._store, dataset, reservation_id)

    def datasets(self) -> list[str]:
        """Names of the registered datasets."""
        from sfumato.ledger import queries

        return queries.datasets(self._store)

    def verify(self, dataset: str) -> None:
        """Compare what is kept of a `dataset` with its log and add its totals up; raises LedgerError if they differ."""
        from sfumato.ledger import queries

        queries.verify(self._store, dataset)
