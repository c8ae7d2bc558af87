"""The `where` language: a small, total language over the schema's columns.

    age >= 65 and (sex = 'F' or region in ('north', 'south')) and not (stay between 0 and 3)

Left of an operator stands a column, right of it a literal. Operators: ``= == != <> < <= > >=``, ``between a and b``,
``in (...)``, ``is missing``, ``is not missing``; ``and``, ``or``, ``not``, parentheses. A column whose name is not
a plain word is written in double quotes or backticks; text literals in single or double quotes, doubled inside.

What it means: a comparison looks at the *cleaned* value (clamped to the schema's bounds, rounded down in an integer
column). With a missing value, that is one outside the domain, no comparison is true, and neither is its negation;
`is missing` finds those rows, and so does the label of the other cell where a categorical column has one. There is
no arithmetic and no function, so no row can make a predicate fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from sfumato.errors import SchemaError
from sfumato.tables.domains import Domain
from sfumato.tables.predicate_tree import (
    Both,
    Compare,
    Either,
    InCells,
    Missing,
    Not,
    Predicate,
    atoms,
    columns_of,
    depth,
    terms,
)
from sfumato.tables.schema import Schema
from sfumato.tables.taxonomy import Leaf
from sfumato.tables.words import did_you_mean

__all__ = [
    "MAX_TERMS",
    "Both",
    "Compare",
    "Either",
    "InCells",
    "Missing",
    "Not",
    "Predicate",
    "Where",
    "columns_of",
    "is_empty",
    "parse_where",
    "terms",
]

Where: TypeAlias = str | Mapping[str, Any] | Predicate | None
MAX_TERMS = 500  # comparisons; engines read a condition before they run it, and slow down with its length
MAX_DEPTH = 100  # parts inside one another

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<tick>`(?:[^`]|``)*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<op><=|>=|==|!=|<>|=|<|>)
    | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)
UNREADABLE = "cannot read this; a condition looks like age >= 65 and ward = 'A'"
MAX_TEXT = 100_000
_SHOWN = 200  # characters of the text around a mistake


def parse_where(where: Where, schema: Schema) -> Predicate:
    """Read a predicate and check it against the schema.

    Parameters
    ----------
    where : str, mapping, Predicate or None
        Text in the `where` language, a mapping of column to value (or list of values), or nothing: everyone.
    schema : Schema
        The public columns it may speak of.

    Returns
    -------
    Predicate

    Raises
    ------
    SchemaError
        It cannot be read, or does not fit the schema; the message points to the place.

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 119, bins=12), "sex": Categorical(["F", "M"])})
    >>> print(parse_where("age >= 65 and sex = 'F'", schema))
    (age >= 65) and (sex in ('F'))
    >>> print(parse_where({"sex": ["F", "M"]}, schema))
    (sex in ('F', 'M'))
    >>> parse_where("age >= 65 and sx = 'F'", schema)
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: where: no column 'sx' in the schema; did you mean 'sex'? Known: age, sex
        age >= 65 and sx = 'F'
                      ^
    """
    found = _read(where, schema)
    if (count := terms(found)) > MAX_TERMS:
        raise SchemaError(
            f"where: {count} comparisons, at most {MAX_TERMS}: use ranges (`between`), a list of categories (`in`), or a "
            "column of the table that says it in one"
        )
    if depth(found) > MAX_DEPTH:
        raise SchemaError(f"where: parts lie more than {MAX_DEPTH} deep inside one another; leave out parentheses")
    return found


def _read(where: Where, schema: Schema) -> Predicate:
    if where is None:
        return Both(())
    if isinstance(where, str) and len(where) > MAX_TEXT:
        raise SchemaError(f"where: {len(where):,} characters, at most {MAX_TEXT:,}: use ranges (`between`) or lists (`in`)")
    if isinstance(where, str):
        return _Parser(where, schema).parse()
    if isinstance(where, Mapping):
        lists = {k: v if isinstance(v, list | tuple | set | frozenset) else [v] for k, v in where.items()}
        return Both(tuple(schema[name].one_of(name, list(values)) for name, values in lists.items()))
    if isinstance(where, Compare | InCells | Missing | Not | Both | Either):
        for atom in atoms(where):
            schema[atom.column].check_atom(atom)
        return where
    raise SchemaError(f"where must be text such as \"age >= 65\" or a mapping such as {{'sex': 'F'}}, got {where!r}")


def is_empty(predicate: Predicate, schema: Schema) -> bool:
    """Whether the schema alone says that no row can satisfy a predicate. Never true where some row could.

    Parameters
    ----------
    predicate : Predicate
        What `parse_where` made.
    schema : Schema
        The public columns.

    Returns
    -------
    bool

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 119, bins=12, integer=True), "sex": Categorical(["F", "M"])})
    >>> [is_empty(parse_where(w, schema), schema) for w in ("age < 0", "age > 30 and age < 31", "age > 30 and sex = 'F'")]
    [True, True, False]
    """
    return not _may_hold(predicate, schema, negate=False)


def _may_hold(predicate: Predicate, schema: Schema, *, negate: bool) -> bool:
    parts = list(_joined(predicate, negate))
    if len(parts) == 1 and isinstance(parts[0][0], Both | Either):  # alternatives
        part, negate = parts[0]
        assert isinstance(part, Both | Either)
        return any(_may_hold(p, schema, negate=negate) for p in part.parts)
    by_column: dict[str, list[tuple[Predicate, bool]]] = {}
    for part, opposite in parts:
        columns = columns_of(part)
        if len(columns) == 1:
            by_column.setdefault(columns.pop(), []).append((part, opposite))
        elif not _may_hold(part, schema, negate=opposite):
            return False
    return all(_may_hold_together(found, schema[name]) for name, found in by_column.items())


def _joined(predicate: Predicate, negate: bool) -> Iterator[tuple[Predicate, bool]]:
    """The parts that must hold at once, each with whether it is negated."""
    if isinstance(predicate, Not):
        yield from _joined(predicate.part, not negate)
    elif isinstance(predicate, Both | Either) and isinstance(predicate, Both) != negate:
        for part in predicate.parts:
            yield from _joined(part, negate)
    else:
        yield predicate, negate


def _may_hold_together(parts: Sequence[tuple[Predicate, bool]], domain: Domain) -> bool:
    """Whether some value of one column, or a missing one, may satisfy all parts."""
    values = [*domain.outsiders, *domain.witnesses([atom for part, _ in parts for atom in atoms(part)])]
    return any(all(_may_hold_at(part, value, domain, negate) for part, negate in parts) for value in values)


def _may_hold_at(predicate: Predicate, value: Any, domain: Domain, negate: bool) -> bool:
    if isinstance(predicate, Not):
        return _may_hold_at(predicate.part, value, domain, not negate)
    if isinstance(predicate, Both | Either):
        found = (_may_hold_at(part, value, domain, negate) for part in predicate.parts)
        return all(found) if isinstance(predicate, Both) != negate else any(found)
    return domain.may_hold(predicate, value, negate=negate)


class _Parser:
    """Recursive descent: or > and > not > comparison. Errors point to the place."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.tokens: list[tuple[str, str, int]] = []
        self.nested = 0
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                start = end - len(text[place:end].lstrip())
                quote = text[start] in "'\"`"
                self.fail("this quote is never closed" if quote else UNREADABLE, start)
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            place = match.end()
        self.tokens.append(("end", "", end))
        self.at = 0

    def fail(self, message: str, place: int) -> NoReturn:
        line = self.text[:place].count("\n")
        column = place - (self.text.rfind("\n", 0, place) + 1)
        first = max(0, column - _SHOWN)  # of a long line, what stands around the place
        shown = self.text.split("\n")[line][first : column + _SHOWN]
        raise SchemaError(f"where: {message}\n    {shown}\n    {' ' * (column - first)}^")

    def peek(self, word: str) -> bool:
        kind, text, _ = self.tokens[self.at]
        return (kind in ("word", "mark", "op")) and text.lower() == word

    def take(self, word: str) -> bool:
        found = self.peek(word)
        self.at += found
        return found

    def need(self, word: str, why: str) -> None:
        if not self.take(word):
            self.fail(f"expected {word!r} {why}", self.tokens[self.at][2])

    def parse(self) -> Predicate:
        if self.tokens[0][0] == "end":
            self.fail(f"empty; write a comparison. Columns: {', '.join(self.schema.names)}", 0)
        found = self.alternatives()
        kind, text, place = self.tokens[self.at]
        if kind != "end":
            date = "; a date goes in quotes: '2024-01-31'" if re.fullmatch(r"-\d\d?", text) else ""
            self.fail(f"expected 'and', 'or' or the end, not {text!r}{date}", place)
        return found

    def alternatives(self) -> Predicate:
        parts = [self.conjunction()]
        while self.take("or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def negation(self) -> Predicate:
        place = self.tokens[self.at][2]
        if not (self.peek("not") or self.peek("(")):
            return self.comparison()
        self.nested += 1
        if self.nested > MAX_DEPTH:
            self.fail(f"parts lie more than {MAX_DEPTH} deep inside one another; leave out parentheses", place)
        if self.take("not"):
            inside: Predicate = Not(self.negation())
        else:
            self.need("(", "")
            inside = self.alternatives()
            self.need(")", "to close the parenthesis")
        self.nested -= 1
        return inside

    def comparison(self) -> Predicate:
        place = self.tokens[self.at][2]
        column = self.column()
        try:
            return self.rest(column)
        except SchemaError as error:
            if str(error).startswith("where:"):
                raise
            self.fail(str(error), place)

    def column(self) -> str:
        kind, text, place = self.tokens[self.at]
        if kind in ("quoted", "tick"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        elif kind != "word":
            known = ", ".join(self.schema.names)
            self.fail(f"expected a column name (a comparison is column, operator, value). Columns: {known}", place)
        if text not in self.schema:
            self.fail(f"no column {text!r} in the schema; {did_you_mean(text, self.schema)}", place)
        self.at += 1
        return text

    def rest(self, column: str) -> Predicate:
        kind, text, place = self.tokens[self.at]
        if kind == "op":
            self.at += 1
            op: Any = {"==": "=", "<>": "!="}.get(text, text)
            return self.schema[column].compare(column, op, self.literal())
        if self.take("is"):
            negated = self.take("not")
            self.need("missing", "after 'is'")
            return Not(Missing(column)) if negated else Missing(column)
        negated = self.take("not")
        found: Predicate | None = None
        if self.take("in"):
            self.need("(", "after 'in'")
            values = [self.literal()]
            while self.take(","):
                values.append(self.literal())
            self.need(")", "after the list of values")
            found = self.schema[column].one_of(column, values)
        elif self.take("between"):
            low = self.literal()
            self.need("and", "between the two limits")
            high = self.literal()
            found = Both((self.schema[column].compare(column, ">=", low), self.schema[column].compare(column, "<=", high)))
        if found is None:
            self.fail(f"expected an operator after column {column!r}: = != < <= > >= in between, is missing", place)
        return Not(found) if negated else found

    def literal(self) -> Leaf | float:
        kind, text, place = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            if len(text) > 300:
                self.fail("a number has at most 300 digits", place)
            number = float(text)
            if math.isinf(number):
                self.fail("this number is too large to compare with; write a smaller one", place)
            return number if any(c in text for c in ".eE") else int(text)
        if kind in ("string", "quoted"):
            return text[1:-1].replace(text[0] * 2, text[0])
        if kind == "word" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        hint = f"; text goes in quotes: '{text}'" if kind == "word" else ""
        return self.fail(f"expected a number, a text in quotes, true or false{hint}", place)
