"""What every published table has in common: its public columns, drawn rows, and how both are written down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.source import SECURE, Generator, Seeded
from sfumato.records.attributes import Attribute, attribute_of
from sfumato.results import Result
from sfumato.tables.domains import Domain
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Section = tuple[str, "str | pd.DataFrame"]
Draws = Callable[[], Generator]
MOST_SYNTHETIC = 1_000_000


class Published(Result):
    """What a publisher gives back. Everything made of it is post-processing.

    Attributes
    ----------
    attributes : tuple of Attribute
        All predictors with their public domains.
    target : str
        The column to be predicted.
    target_domain : Domain
        Its public domain.
    rate : int
        Nano-ε per unit of count: the noise.
    size : float or None
        The number of records, public or noisy; None if nobody asked for it.
    random : callable
        Gives a generator for drawing rows; never noise.
    """

    attributes: tuple[Attribute, ...]
    target: str
    target_domain: Domain
    rate: int
    size: float | None
    random: Draws

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> pd.DataFrame:
        """A synthetic table with the original columns, drawn anew at each call.

        Parameters
        ----------
        n : int, optional
            Rows; by default the estimated number of records.
        outside : "leave out" or "public"
            Columns about which the release says nothing: left out, or drawn from their public domain alone (they then
            carry no information about the data). Columns with noisy counts of their own are always there.

        Returns
        -------
        DataFrame
        """
        if outside not in ("leave out", "public"):
            raise InputError(f"outside must be 'leave out' or 'public', got {outside!r}")
        if n is not None and n < 0:
            raise InputError(f"cannot draw {n} rows")
        return self._draw(self._estimated_rows() if n is None else int(n), outside, self.random())

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The drawn table that a release stores and its report speaks of. At most a million rows.

        It is drawn by a stream made of the figures, so it is the same table whenever the release comes back.
        """
        rows = min(max(self._estimated_rows(), 0), MOST_SYNTHETIC)
        return self._draw(rows, "leave out", Seeded(seed_of(self._figures())).generator())

    def extra_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that a release stores beside its figures."""
        return {"synthetic": self.synthetic}

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: headings, each with a text or a small table."""
        raise TypeError(f"{type(self).__name__} does not say what its report adds")

    def to_dict(self) -> dict[str, Any]:
        """What all of them write down: the public columns, the noise and the promise."""
        return {
            **super().to_dict(),
            "mechanism": self.mechanism,
            "target": self.target,
            "rate": self.rate,
            "size": self.size,
            "attributes": [column_record(a.name, a.domain) for a in self.attributes],
            "target_domain": column_record(self.target, self.target_domain),
            "parameters": dict(self.parameters),
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @staticmethod
    def _fields_of(data: Mapping[str, Any], figures: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
        """The fields that all of them have, from what `to_dict` wrote down."""
        guarantee = Guarantee.from_dict(data["guarantee"])
        return {
            "mechanism": data["mechanism"],
            "target": data["target"],
            "rate": data["rate"],
            "size": data["size"],
            "attributes": tuple(attribute_of(a["name"], domain_of(a)) for a in data["attributes"]),
            "target_domain": domain_of(data["target_domain"]),
            "parameters": dict(data["parameters"]),
            "warnings": tuple(data["warnings"]),
            "guarantee": guarantee,
            "random": draws_of(guarantee.private, figures),
        }

    def _draw(self, rows: int, outside: str, random: Generator) -> pd.DataFrame:
        raise TypeError(f"{type(self).__name__} does not say how rows are drawn from it")

    def _estimated_rows(self) -> int:
        raise TypeError(f"{type(self).__name__} does not say how many records it estimates")

    def _figures(self) -> Sequence[NDArray[np.int64]]:
        """The noisy figures as released."""
        raise TypeError(f"{type(self).__name__} does not say what was released")

    def __getstate__(self) -> dict[str, Any]:
        # The draws come from the Meter of the release, which is not stored.
        return {**self.__dict__, "random": draws_of(self.guarantee.private, self._figures())}


def draws_of(private: bool, figures: Sequence[NDArray[np.int64]]) -> Draws:
    """Draws for a result that came back: fresh ones, or for an experiment a stream that starts anew from its figures."""
    return fresh_draws if private else Seeded(seed_of(figures) + 1).generator


def fresh_draws() -> Generator:
    """A generator that nobody can foresee."""
    return SECURE.generator()


def seed_of(figures: Sequence[NDArray[np.int64]]) -> int:
    """A number that follows from released figures.

    >>> seed_of([np.array([3, -1])]) == seed_of([np.array([3, -1])]) != seed_of([np.array([3, 1])])
    True
    """
    digest = hashlib.sha256()
    for array in figures:
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return int.from_bytes(digest.digest()[:16], "little")


# --- public columns, written down ------------------------------------------------------------------------------------


def column_record(name: str, domain: Domain) -> dict[str, Any]:
    """A column with its public domain, in the words of a schema file; a tree as lists, whose order nobody changes.

    >>> from sfumato.tables.domains import Categorical
    >>> column_record("ill", Categorical(["no", "yes"]))
    {'name': 'ill', 'domain': {'type': 'categorical', 'values': ['no', 'yes']}}
    """
    plain = Schema({name: domain}).to_mapping()["columns"][name]
    if "taxonomy" in plain:
        plain["taxonomy"] = _tree_record(plain["taxonomy"])
    return {"name": name, "domain": plain}


def domain_of(record: Mapping[str, Any]) -> Domain:
    """The domain that `column_record` wrote down.

    >>> from sfumato.tables.domains import Categorical
    >>> place = Categorical(["oslo", "bern"], taxonomy={"south": ["bern"], "north": ["oslo"]})
    >>> domain_of(column_record("place", place)) == place
    True
    """
    name, plain = record["name"], dict(record["domain"])
    if "taxonomy" in plain:
        plain["taxonomy"] = _tree(plain["taxonomy"])
    return Schema.from_mapping({"columns": {name: plain}}, what="the stored release")[name]


def _tree_record(tree: Any) -> dict[str, Any]:
    if isinstance(tree, Mapping):
        return {"branches": [[name, _tree_record(branch)] for name, branch in tree.items()]}
    return {"values": list(tree)}


def _tree(record: Mapping[str, Any]) -> Any:
    if "branches" in record:
        return {name: _tree(branch) for name, branch in record["branches"]}
    return record["values"]
