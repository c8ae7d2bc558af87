"""What a person lets their device tell, set once and kept anywhere: an ε and a t_j per attribute for each recipient.

It is text that says nothing about the person but their wishes: a service may keep it for them, and the device reads it back.
The device trusts where it came from no further than that: every release is priced against it in exact integers, and charged
to the device's own ledger (`sfumato.attributes.profile`). A policy from elsewhere can be useless, but it grants no more than
it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.attributes.device_ledger import DeviceLedger, Limits
from sfumato.attributes.profile import Profile
from sfumato.attributes.recipients import Recipients
from sfumato.errors import InputError
from sfumato.privacy.budgets import AttributeBudgets, RecipientBudgets
from sfumato.privacy.units import Epsilon, Nano, epsilon_text, positive_nano

VERSION = 1
_KIND = "sfumato device policy"
_FIELDS = {"kind", "version", "recipients", "together", "attributes_together"}


@dataclass(frozen=True)
class Towards:
    """What one recipient may learn.

    Attributes
    ----------
    overall : Nano
        Over all releases to it, in nano-ε.
    attributes : mapping of str to Nano
        The same for each attribute; one that is not listed is never told.
    """

    overall: Nano
    attributes: Mapping[str, Nano]


@dataclass(frozen=True)
class DevicePolicy:
    """What each recipient may learn from a device, and all of them together.

    Parameters
    ----------
    recipients : mapping of str to Towards
        By name; one that is not listed learns nothing.
    together : Nano, optional
        What all recipients may learn together, in nano-ε.
    attributes_together : mapping of str to Nano
        The same for each attribute.

    Examples
    --------
    >>> given = {"adnet": {"epsilon": "0.1", "attributes": {"comedy": "0.05", "drama": "0.1"}}}
    >>> mine = DevicePolicy.of(given, together="0.2")
    >>> DevicePolicy.from_json(mine.to_json()) == mine
    True
    >>> films = {"It": ["drama"], "Up": ["comedy", "drama"]}
    >>> profile = mine.profile(films, to="adnet")
    >>> profile.release(["Up"], to="adnet").guarantee.epsilon <= 0.1
    True
    """

    recipients: Mapping[str, Towards]
    together: Nano | None = None
    attributes_together: Mapping[str, Nano] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        recipients: Mapping[str, Mapping[str, Any]],
        *,
        together: Epsilon | None = None,
        attributes_together: Mapping[str, Epsilon] | None = None,
    ) -> DevicePolicy:
        """From amounts in ε.

        Parameters
        ----------
        recipients : mapping
            Recipient -> ``{"epsilon": ε, "attributes": {attribute: ε}}``.
        together : ε, optional
            What all recipients may learn together.
        attributes_together : mapping of str to ε, optional
            The same for each attribute.

        Returns
        -------
        DevicePolicy
        """
        made = {}
        for name, said in recipients.items():
            if not isinstance(said, Mapping) or set(said) != {"epsilon", "attributes"}:
                raise InputError("a recipient of a device policy has an epsilon and attributes, each with their ε")
            overall = positive_nano(said["epsilon"], f"epsilon of recipient {name!r}")
            made[_name(name, "a recipient")] = Towards(overall, _amounts(said["attributes"], f" towards {name!r}"))
            if not made[name].attributes:
                raise InputError(f"recipient {name!r} is given no attribute; leave it out, and it learns nothing")
        cap = None if together is None else positive_nano(together, "the cap over colluding recipients")
        return cls(made, cap, _amounts(attributes_together or {}, " towards all recipients together"))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that it speaks of, in order."""
        named = [name for said in self.recipients.values() for name in said.attributes]
        return tuple(sorted({*named, *self.attributes_together}))

    def limits(self, to: str) -> Limits:
        """The caps of the person's ledger towards the recipient `to`."""
        said = self._towards(to)
        return Limits(said.overall, said.attributes, self.together, self.attributes_together)

    def profile(self, items: Any, *, to: str, ledger: DeviceLedger | None = None, **options: Any) -> Profile:
        """A profile that keeps to what this policy says about one recipient.

        Parameters
        ----------
        items : Catalogue, mapping or None
            The public catalogue, as for `Profile`.
        to : str
            The recipient; give `release` the same.
        ledger : DeviceLedger, optional
            Where charges to all recipients are kept. Use one for all of them: their caps together rest on it.
        **options
            More of what `Profile` takes, such as `policies` or `releases`.

        Returns
        -------
        Profile
        """
        said = self._towards(to)
        rule = Recipients.fixed(RecipientBudgets({to: said.overall}, self.together))
        budgets, everybody = AttributeBudgets(said.attributes), AttributeBudgets(self.attributes_together)
        together = {name: everybody[name] for name in everybody.names} or None
        return Profile(items, budgets=budgets, recipients=rule, together=together, ledger=ledger, **options)

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text, ready for JSON."""
        return {
            "kind": _KIND,
            "version": VERSION,
            "recipients": {
                name: {"epsilon": epsilon_text(said.overall), "attributes": _texts(said.attributes)}
                for name, said in self.recipients.items()
            },
            "together": None if self.together is None else epsilon_text(self.together),
            "attributes_together": _texts(self.attributes_together),
        }

    def to_json(self) -> str:
        """The policy as text, the same for the same policy."""
        return json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> DevicePolicy:
        """Read `text` that `to_json` wrote; what is not a policy, or is of another version, is refused."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError("this is not a device policy: it does not parse as JSON") from None
        return cls.from_dict(body)

    @classmethod
    def from_dict(cls, body: Any) -> DevicePolicy:
        """Read `body` that `to_dict` gave."""
        if not isinstance(body, dict) or body.get("kind") != _KIND:
            raise InputError(f"this is not a device policy: its kind is not {_KIND!r}")
        if body.get("version") != VERSION:
            raise InputError(f"device policy version {body.get('version')!r}, this software reads {VERSION}; update it")
        if set(body) != _FIELDS or not all(isinstance(body[part], dict) for part in ("recipients", "attributes_together")):
            raise InputError(f"a device policy has the fields {', '.join(sorted(_FIELDS))}")
        return cls.of(body["recipients"], together=body["together"], attributes_together=body["attributes_together"])

    def _towards(self, to: str) -> Towards:
        if to not in self.recipients:
            known = ", ".join(map(repr, self.recipients)) or "nobody"
            raise InputError(f"this policy lets {to!r} learn nothing; it names {known}")
        return self.recipients[to]


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"{what} of a device policy has a name of printable characters")
    return name


def _amounts(given: Any, where: str) -> dict[str, Nano]:
    if not isinstance(given, Mapping):
        raise InputError(f"the attributes{where} are names with an ε each, for example {{'location': '0.05'}}")
    return {_name(n, "an attribute"): positive_nano(e, f"budget of attribute {n!r}{where}") for n, e in given.items()}


def _texts(amounts: Mapping[str, Nano]) -> dict[str, str]:
    return {name: epsilon_text(nano) for name, nano in amounts.items()}
