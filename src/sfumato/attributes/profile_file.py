"""A person's profile as a file, a history as a file, and a release as the file that its recipient reads.

A profile is TOML or JSON, and names other files from its own folder::

    items = "films.csv"            # the catalogue: a file, or a table [items]
    ledger = "me.ledger.json"      # where charges are kept; NAME.ledger.json beside the profile if left out
    releases = 2                   # how many releases to one recipient the budgets must last
    together = 0.45                # what all recipients together may learn

    [budgets]                      # what each attribute may lose towards one recipient
    romance = 0.05
    comedy = 0.5

    [recipients]                   # what each recipient may learn; or [reputations] and [rule]
    cinema = 0.4
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.attributes.catalogue_file import read_catalogue, read_table
from sfumato.attributes.device_ledger import DeviceLedger
from sfumato.attributes.policy import Policy
from sfumato.attributes.profile import Profile
from sfumato.attributes.recipients import Recipients
from sfumato.attributes.release import AttributeRelease
from sfumato.errors import InputError
from sfumato.privacy.budgets import RecipientBudgets
from sfumato.privacy.source import SECURE, Source

_KEYS = {
    "items": (str, Mapping),
    "attributes": (list,),
    "step": (int, float, str),
    "budgets": (Mapping,),
    "attributes_together": (Mapping,),
    "recipients": (Mapping,),
    "reputations": (Mapping,),
    "rule": (Mapping,),
    "stranger": (int, float),
    "together": (int, float, str),
    "releases": (int,),
    "policy": (str,),
    "policies": (Mapping,),
    "utility": (str,),
    "once": (bool,),
    "ledger": (str,),
}


def read_profile(path: str | os.PathLike[str], *, source: Source = SECURE) -> Profile:
    """The profile in a TOML or JSON file, with its ledger.

    Parameters
    ----------
    path : path
        The file.
    source : Source
        Where the random bits come from.

    Returns
    -------
    Profile
    """
    name = os.fspath(path)
    given = read_table(name, "the profile")
    for key, value in given.items():
        if key not in _KEYS:
            raise InputError(f"the profile {name} has an unknown key {key!r}; known: {', '.join(_KEYS)}")
        wrong = isinstance(value, bool) and bool not in _KEYS[key]
        if wrong or not isinstance(value, _KEYS[key]):
            raise InputError(f"the profile {name}: `{key}` is not what it must be; see the example in the documentation")
    if "budgets" not in given:
        raise InputError(f"the profile {name} needs [budgets]: what each attribute may lose, for example romance = 0.05")
    home = os.path.dirname(name)

    def beside(file: str) -> str:
        return os.path.join(home, file)

    items = given.get("items")
    catalogue = None
    if items is not None:
        catalogue = read_catalogue(beside(items) if isinstance(items, str) else items, step=given.get("step", 1))
    stem = os.path.splitext(os.path.basename(name))[0]
    options = {key: given[key] for key in ("releases", "utility", "once") if key in given}
    return Profile(
        catalogue,
        budgets=given["budgets"],
        recipients=_recipients(given, name),
        together=given.get("attributes_together"),
        policies=_policies(given, beside),
        ledger=DeviceLedger(beside(given.get("ledger", f"{stem}.ledger.json"))),
        source=source,
        **options,
    )


def _recipients(given: Mapping[str, Any], name: str) -> Recipients | None:
    together = given.get("together")
    if "rule" in given or "reputations" in given:
        if "recipients" in given:
            raise InputError(f"the profile {name} has [recipients] and [reputations]; keep one of them")
        try:
            rule = {float(step): epsilon for step, epsilon in given.get("rule", {}).items()}
        except ValueError:
            raise InputError(f"the profile {name}: [rule] gives an ε for each reputation, for example 5 = 0.4") from None
        return Recipients(given.get("reputations", {}), rule, together=together, stranger=given.get("stranger"))
    if "recipients" in given:
        return Recipients.fixed(RecipientBudgets.of(given["recipients"], together=together))
    if together is not None:
        raise InputError(f"the profile {name}: `together` caps recipients; name them under [recipients]")
    return None


def _policies(given: Mapping[str, Any], beside: Any) -> Policy | dict[str, Policy] | None:
    if "policy" in given:
        return _policy(beside(given["policy"]))
    if "policies" in given:
        return {to: _policy(beside(file)) for to, file in given["policies"].items()}
    return None


def _policy(path: str) -> Policy:
    try:
        return Policy.load(path)
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror}") from None


def read_history(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The items of a history, one after the other, from CSV (column `item`, or the first), JSON, JSON lines or plain lines.

    An item is its name, or on a device without a catalogue the list of its attributes.

    Parameters
    ----------
    path : path
        The file; it is private, so nothing of what is in it is ever quoted.

    Yields
    ------
    str or list
    """
    name = os.fspath(path)
    with open(name, encoding="utf-8-sig", newline="") as file:
        if name.lower().endswith(".csv"):
            lines = csv.reader(file)
            header = [column.strip().lower() for column in next(lines, [])]
            place = header.index("item") if "item" in header else 0
            yield from (line[place] for line in lines if len(line) > place)
        elif name.lower().endswith(".json"):
            yield from map(_item, json.load(file))
        elif name.lower().endswith((".jsonl", ".ndjson")):
            yield from (_item(json.loads(line)) for line in file if line.strip())
        else:
            yield from (line.strip() for line in file if line.strip())


def check_history(path: str | os.PathLike[str]) -> None:
    """Refuse a history that is not there, before anything is charged; what is in it is not looked at."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot read the history {os.fspath(path)}: {error.strerror}; nothing was spent") from None


def _item(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = value.get("item", value.get("attributes"))
    return str(value) if isinstance(value, int) else value


def read_release(path: str | os.PathLike[str]) -> AttributeRelease:
    """The release in a file that a profile wrote, for whoever received it.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    AttributeRelease
    """
    try:
        with open(path, encoding="utf-8") as file:
            return AttributeRelease.from_dict(json.load(file))
    except OSError as error:
        raise InputError(f"cannot read the release {os.fspath(path)}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{os.fspath(path)} is not a release that a profile wrote") from None
