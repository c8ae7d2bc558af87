"""A catalogue from a file: which attributes each item has. Public, so a mistake in it is quoted.

- JSON or TOML: a table of items and their attributes, ``Heat = ["action", "crime"]`` or ``Heat = { action = 2 }``;
  in a file that holds more than the items, under the name ``items``.
- CSV: one row per item, its name in the first column, then one column per attribute with the weight (empty for none).
"""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from sfumato.attributes.catalogue import Catalogue
from sfumato.errors import InputError
from sfumato.privacy.units import Epsilon


def read_catalogue(source: Any, *, step: Epsilon = 1) -> Catalogue:
    """A catalogue from whatever states one.

    Parameters
    ----------
    source : Catalogue, mapping of item to its attributes, or path
        The catalogue itself, its items, or the JSON, TOML or CSV file that holds them.
    step : number
        Weights are rounded up to multiples of this.

    Returns
    -------
    Catalogue

    Examples
    --------
    >>> read_catalogue({"novel": ["paper", "fiction"], "map": ["paper"]})
    Catalogue(2 items, 2 attributes)
    """
    if isinstance(source, Catalogue):
        return source
    if isinstance(source, Mapping):
        return _of_items(source, "the catalogue", step)
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"a catalogue is a file, or a table of items and their attributes; got {type(source).__name__}")
    path = os.fspath(source)
    if path.lower().endswith(".csv"):
        return _of_rows(path, step)
    found = read_table(path, "the catalogue")
    return _of_items(found.get("items", found), path, step)


def read_table(path: str, what: str) -> dict[str, Any]:
    """The table in a JSON or TOML file; `what` it is, in a message."""
    try:
        with open(path, "rb") as file:
            text = file.read()
        found = json.loads(text) if path.lower().endswith(".json") else tomllib.loads(text.decode("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {what} {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{what} {path} is not valid {'JSON' if path.lower().endswith('.json') else 'TOML'}: {error}"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{what} {path} is a table of names and values")
    return found


def _of_items(items: Any, where: str, step: Epsilon) -> Catalogue:
    if not isinstance(items, Mapping) or not items:
        raise InputError(f"{where} lists items and their attributes, for example Heat = ['action', 'crime']")
    for item, tags in items.items():
        names = list(tags) if isinstance(tags, Mapping | list | tuple) else [None]
        if not all(isinstance(name, str) and name for name in names):
            raise InputError(f"{where}: the attributes of {item!r} are a list of names, or a table of names and weights")
    return Catalogue.of(items, step=step)


def _of_rows(path: str, step: Epsilon) -> Catalogue:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except OSError as error:
        raise InputError(f"cannot read the catalogue {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the catalogue {path} is not a CSV file in UTF-8: {error}") from None
    if len(lines) < 2 or len(lines[0]) < 2:
        raise InputError(f"the catalogue {path} needs a header, item and attributes, and a row for each item")
    names = [name.strip() for name in lines[0][1:]]
    items: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names) + 1 or line[0] in items:
            wrong = "is listed twice" if line[0] in items else f"has {len(line) - 1} weights for {len(names)} attributes"
            raise InputError(f"the catalogue {path}, line {number}: item {line[0]!r} {wrong}")
        items[line[0]] = {name: weight.strip() for name, weight in zip(names, line[1:], strict=True) if weight.strip()}
    return Catalogue.of(items, names, step=step)
