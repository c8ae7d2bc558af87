"""The policy: which noise each attribute gets, as a small file that a device checks before it trusts it.

A policy lists integer noise rates r_j (nano-ε per lattice unit) and the maximal rows of the catalogue it was made for. It
keeps its promises when, in exact integers,

    Σ_j a_ij r_j <= ε   for every row i        (what one item can cost altogether)
    max_i a_ij r_j <= t_j   for every attribute j  (what one item can cost attribute j)

Whoever computed it, the device verifies both before use, against its own budgets and its own catalogue (or by fitting
every item under one of the rows, see `Policy.fit`): a policy can be useless, but it cannot be unsafe. The checksum catches
accidents; a shared key (`key=`) also tells who made the file.
"""

from __future__ import annotations

import hmac
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.lattice import MOST, lattice
from sfumato.attributes.policy_file import dense_rows, fraction, typed
from sfumato.attributes.sums import EACH_TIME, History, ItemSums, held
from sfumato.errors import InputError, PrivacyError
from sfumato.privacy.charge import Charge
from sfumato.privacy.integers import read_only
from sfumato.privacy.sealed import checksum
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import NANO, Epsilon, Nano, NanoArray, as_epsilon

VERSION = 1
_CHUNK = 1 << 15
_FEW = 2000
_KIND = "sfumato attribute policy"
_FIELDS = {"kind", "version", "attributes", "unit", "epsilon", "budgets", "rates", "rows", "utility", "gap", "catalogue"}


def exact_loads(rows: NDArray[Any], rates: NDArray[np.int64]) -> NDArray[Any]:
    """``rows @ rates`` in exact integers, whatever their size.

    >>> exact_loads(np.array([[2**31, 1]]), np.array([10**15, 1])).tolist()
    [2147483648000000000000001]
    """
    top = int(rows.max(initial=0)) * int(rates.max(initial=0)) * max(1, rates.size)
    kind: Any = np.int64 if top < 1 << 62 else object
    loads = np.empty(rows.shape[0], dtype=kind)
    for start in range(0, rows.shape[0], _CHUNK):  # narrow rows are widened a part at a time
        loads[start : start + _CHUNK] = rows[start : start + _CHUNK].astype(kind) @ rates.astype(kind)
    return loads


@dataclass(frozen=True, eq=False)
class Policy:
    """Noise rates for a catalogue, an overall ε and a budget per attribute.

    Parameters
    ----------
    attributes : tuple of str
    rates : int64 array
        Nano-ε per lattice unit; the noise on attribute j has scale ``unit * 1e9 / rates[j]``.
    rows : integer matrix
        The rows an item may have; any item's row must lie under one of them.
    overall : Nano
        Overall budget in nano-ε; `epsilon` gives it as a decimal.
    budgets : int64 array
        Budget of each attribute in nano-ε.
    unit : Fraction
        Worth of a lattice unit.
    utility : str
        What the rates were chosen for.
    gap : float
        Certified relative distance from the best possible utility; NaN where nothing was optimised.
    catalogue : str
        Fingerprint of the catalogue.

    Examples
    --------
    >>> two = Policy(("x", "y"), np.array([60, 40]), np.array([[1, 1]]), 100, np.array([60, 90]))
    >>> two.charge.total, dict(two.charge.attributes)
    (100, {'x': 60, 'y': 40})
    >>> Policy(("x", "y"), np.array([60, 41]), np.array([[1, 1]]), 100, np.array([60, 90]))
    Traceback (most recent call last):
    ...
    sfumato.errors.PrivacyError: this policy is infeasible: one item could cost ε 1.01E-7, more than the overall 1E-7...
    """

    attributes: tuple[str, ...]
    rates: NanoArray
    rows: NDArray[Any]
    overall: Nano
    budgets: NanoArray
    unit: Fraction = Fraction(1)
    utility: str = "mae"
    gap: float = 0.0
    catalogue: str = ""

    def __post_init__(self) -> None:
        m = len(self.attributes)
        object.__setattr__(self, "attributes", tuple(self.attributes))
        for name in ("rates", "rows", "budgets"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu":
                raise InputError(f"the {name} of a policy are whole numbers, got an array of {given.dtype}")
            object.__setattr__(self, name, read_only(given))
        if self.rates.shape != (m,) or self.budgets.shape != (m,) or self.rows.ndim != 2 or self.rows.shape[1] != m:
            raise InputError(f"a policy for {m} attributes needs {m} rates, {m} budgets and rows of {m} entries")
        if len(set(self.attributes)) != m or not m:
            raise InputError("a policy names at least one attribute, and each once")
        if int(self.rates.min()) < 1 or int(self.budgets.min()) < 1 or self.overall < 1 or self.unit <= 0:
            raise InputError("rates, budgets, epsilon and unit of a policy are greater than 0")
        # A negative entry would take the price of another attribute off the row's.
        if self.rows.size and not 0 <= int(self.rows.min()) <= int(self.rows.max()) <= MOST:
            raise InputError(f"the rows of a policy hold weights between 0 and {MOST} lattice units")
        if max(int(self.rates.max()), int(self.budgets.max())) >= 1 << 62:
            raise InputError("the rates and budgets of a policy lie below 2^62 nano-ε")
        self.verify(self.rows, budgets=self.budgets, overall=self.overall)

    @property
    def epsilon(self) -> Decimal:
        """Overall budget."""
        return as_epsilon(self.overall)

    # --- verification ----------------------------------------------------------------------------------------------

    def price(self, rows: NDArray[Any]) -> Charge:
        """The exact price of one item, overall and per attribute, if items have these `rows`."""
        total = Nano(int(exact_loads(rows, self.rates).max(initial=0)))
        reach = rows.max(axis=0, initial=0)
        each = {n: Nano(int(a) * int(r)) for n, a, r in zip(self.attributes, reach, self.rates, strict=True)}
        return Charge(total, attributes=each)

    @cached_property
    def charge(self) -> Charge:
        """The price of one release."""
        return self.price(self.rows)

    @property
    def terms(self) -> Terms:
        """What a release is held to: no item of a person's history can be told from its absence, at this price."""
        return Terms(neighbours="item", limit=self.charge, attributes=self.attributes)

    @cached_property
    def touches(self) -> NDArray[np.int64]:
        """Rows with the price of all of them: the heaviest, and for each attribute one that moves it most.

        The overall price is the largest load and an attribute's the largest entry of its column; both are attained here.
        """
        if self.rows.shape[0] <= _FEW:
            return self.rows.astype(np.int64)
        heaviest = int(exact_loads(self.rows, self.rates).argmax())
        few = np.unique([heaviest, *self.rows.argmax(axis=0).tolist()])
        return np.asarray(self.rows[few], dtype=np.int64)

    def verify(self, rows: NDArray[Any], *, budgets: NanoArray, overall: Nano) -> Charge:
        """Refuse the policy unless it keeps its promises exactly.

        Parameters
        ----------
        rows : integer matrix
            The rows an item may have.
        budgets : int64 array
            Nano-ε per attribute.
        overall : int
            Nano-ε overall.

        Returns
        -------
        Charge
            The price of one item.
        """
        price = self.price(rows)
        if price.total > overall:
            raise PrivacyError(
                f"this policy is infeasible: one item could cost ε {as_epsilon(price.total)}, more than the overall "
                f"{as_epsilon(overall)}; do not use it, ask for a new one"
            )
        for name, limit in zip(self.attributes, budgets.tolist(), strict=True):
            if price.attributes[name] > limit:
                raise PrivacyError(
                    f"this policy is infeasible: one item could cost attribute {name!r} ε "
                    f"{as_epsilon(price.attributes[name])}, more than its {as_epsilon(limit)}; ask for a new one"
                )
        return price

    def admit(self, attributes: tuple[str, ...], unit: Fraction, rows: NDArray[Any]) -> None:
        """Refuse items that could cost more than this policy was priced for.

        Parameters
        ----------
        attributes : tuple of str
        unit : Fraction
            Worth of a lattice unit.
        rows : integer matrix
            The rows an item may have: those of a catalogue, or those that come with sums.
        """
        self.require_same_columns(attributes, unit)
        if rows is not self.rows and not self.price(rows).within(self.charge):
            raise PrivacyError(
                "this policy was priced for lighter items: an item of this catalogue could cost more than the policy says; "
                "allocate a policy for this catalogue"
            )

    def require_same_columns(self, attributes: tuple[str, ...], unit: Fraction) -> None:
        """Refuse a catalogue with other `attributes`, another order of them or another `unit`."""
        if attributes != self.attributes or unit != self.unit:
            raise PrivacyError("this policy was made for another catalogue: its attributes or unit differ")

    # --- what an item may do -----------------------------------------------------------------------------------------

    def fit(self, item: Iterable[str] | Mapping[str, Epsilon]) -> NDArray[np.int64]:
        """The row of an `item` known only by its attributes, cut to lie under one of the policy's rows.

        A fixed rule per item, so it cannot leak; it keeps the guarantee even if the policy left heavy items out.

        >>> p = Policy(("x", "y"), np.array([50, 50]), np.array([[1, 0], [0, 1]]), 50, np.array([60, 90]))
        >>> p.fit(["y"]).tolist(), p.fit(["x", "y"]).tolist()
        ([0, 1], [1, 0])
        """
        most = int(self.rows.max(initial=0))
        try:
            tags = item if isinstance(item, Mapping) else dict.fromkeys(item, 1)
            units = [min(lattice(tags[n], self.unit), most) if n in tags else 0 for n in self.attributes]
        except Exception:  # an odd item counts nothing: an error would tell about the history
            units = [0] * len(self.attributes)
        row = np.array(units, dtype=np.int64)
        under = np.minimum(self.rows.astype(np.int64), row)
        return np.asarray(under[int(under.sum(axis=1).argmax())]) if under.size else row * 0

    def sums(self, history: History) -> ItemSums:
        """Add up a `history` whose items are known by their attributes, each cut as `fit` does.

        >>> p = Policy(("x", "y"), np.array([50, 50]), np.array([[1, 1]]), 100, np.array([60, 90]))
        >>> p.sums([["x"], ["x", "y"]]).exact
        <Exact: a private value>
        """
        exact = held(history).map(lambda items: sum(map(self.fit, items), np.zeros(len(self.attributes), dtype=np.int64)))
        return ItemSums(exact, self.rows, self.attributes, self.unit, notes=(EACH_TIME,))

    # --- expected error ------------------------------------------------------------------------------------------------

    @property
    def scales(self) -> NDArray[np.float64]:
        """Scale of the noise on each attribute, in its own unit."""
        return float(self.unit) * NANO / self.rates

    @property
    def given(self) -> NDArray[np.int64]:
        """What each attribute loses, in nano-ε."""
        return np.array(list(self.charge.attributes.values()), dtype=np.int64)

    # --- the file --------------------------------------------------------------------------------------------------------

    def to_json(self, *, key: bytes | None = None) -> str:
        """The policy as text: one line per field, checksum last; a `key` also seals it."""
        body: dict[str, Any] = {
            "kind": _KIND,
            "version": VERSION,
            "attributes": list(self.attributes),
            "unit": str(self.unit),
            "epsilon": self.overall,
            "budgets": self.budgets.tolist(),
            "rates": self.rates.tolist(),
            "rows": [[v for j in np.flatnonzero(row).tolist() for v in (j, int(row[j]))] for row in self.rows],
            "utility": self.utility,
            "gap": None if math.isnan(self.gap) else self.gap,
            "catalogue": self.catalogue,
        }
        body["checksum"] = checksum(body, key)
        return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in body.items()) + "\n}\n"

    @classmethod
    def from_json(cls, text: str, *, key: bytes | None = None) -> Policy:
        """Read `text` and verify it, its seal too if a `key` is given; a damaged, newer or infeasible policy is refused."""
        try:
            body = json.loads(text)
        except ValueError:
            raise InputError("this is not a policy file: it does not parse as JSON") from None
        if not isinstance(body, dict) or body.get("kind") != _KIND:
            raise InputError(f"this is not a policy file: its kind is not {_KIND!r}")
        if body.get("version") != VERSION:
            raise InputError(f"policy version {body.get('version')!r}, this software reads {VERSION}; update it or ask anew")
        seal = body.pop("checksum", None)
        if not isinstance(seal, str) or not hmac.compare_digest(seal, checksum(body, key)):
            raise PrivacyError("this policy was changed after it was made (or sealed with another key); ask for a new one")
        if set(body) != _FIELDS:
            raise InputError(f"a policy has the fields {', '.join(sorted(_FIELDS))}")
        return cls(
            attributes=tuple(typed(body["attributes"], str)),
            rates=np.array(typed(body["rates"], int), dtype=np.int64),
            rows=dense_rows(body["rows"], len(body["attributes"])),
            overall=Nano(typed([body["epsilon"]], int)[0]),
            budgets=np.array(typed(body["budgets"], int), dtype=np.int64),
            unit=fraction(typed([body["unit"]], str)[0]),
            utility=typed([body["utility"]], str)[0],
            gap=math.nan if body["gap"] is None else typed([body["gap"]], float)[0],
            catalogue=typed([body["catalogue"]], str)[0],
        )

    def save(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Write the policy to the file `path`; a `key` also seals it."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json(key=key))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: bytes | None = None) -> Policy:
        """Read the policy file `path` and verify it, its seal too if a `key` is given."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read(), key=key)
