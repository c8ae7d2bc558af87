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

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sfumato.errors import SchemaError
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema, did_you_mean
from sfumato.tables.taxonomy import Leaf

Op: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """A numeric column against a number."""

    column: str
    op: Op
    value: int | float

    def __str__(self) -> str:
        return f"{_quoted(self.column)} {self.op} {self.value!r}"


@dataclass(frozen=True)
class InCells:
    """A categorical column in some of its cells (the code after the values is the other cell).

    Its negation holds for the other *listed* values only, as with any comparison of a missing value.
    """

    column: str
    codes: tuple[int, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_quoted(self.column)} in ({', '.join(self.labels)})"


@dataclass(frozen=True)
class Missing:
    """A column whose value is outside its domain."""

    column: str

    def __str__(self) -> str:
        return f"{_quoted(self.column)} is missing"


@dataclass(frozen=True)
class Not:
    part: Predicate

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclass(frozen=True)
class Both:
    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" for p in self.parts) if self.parts else "everyone"


@dataclass(frozen=True)
class Either:
    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" for p in self.parts)


Predicate: TypeAlias = Compare | InCells | Missing | Not | Both | Either
Where: TypeAlias = str | Mapping[str, Any] | Predicate | None

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
_KEYWORDS = {"and", "or", "not", "in", "between", "is", "missing", "true", "false"}


def _quoted(name: str) -> str:
    if re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def columns_of(predicate: Predicate) -> set[str]:
    """The columns a predicate looks at."""
    if isinstance(predicate, Compare | InCells | Missing):
        return {predicate.column}
    if isinstance(predicate, Not):
        return columns_of(predicate.part)
    return {name for part in predicate.parts for name in columns_of(part)}


def parse_where(where: Where, schema: Schema) -> Predicate:
    """Read a predicate; text, a mapping of column to value (or list of values), or nothing (everyone).

    >>> from sfumato.tables.schema import Schema
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
    if where is None:
        return Both(())
    if isinstance(where, str):
        return _Parser(where, schema).parse()
    if isinstance(where, Mapping):
        parts = []
        for name, value in where.items():
            values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
            schema[name]
            parts.append(_one_of(schema, name, values))
        return Both(tuple(parts))
    if isinstance(where, Compare | InCells | Missing | Not | Both | Either):
        for name in columns_of(where):
            schema[name]
        return where
    raise SchemaError(f"where must be text such as \"age >= 65\" or a mapping such as {{'sex': 'F'}}, got {where!r}")


def _literal(value: Leaf) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _cells(column: str, domain: Categorical, codes: list[int]) -> InCells:
    names = [_literal(v) for v in domain.values] + [_literal(domain.other)] * bool(domain.other)
    unique = tuple(sorted(set(codes)))
    return InCells(column, unique, tuple(names[c] for c in unique))


def _code(domain: Categorical, column: str, value: Any) -> int:
    for code, known in enumerate(domain.values):
        if type(known) is type(value) and known == value:
            return code
    if domain.other and value == domain.other:
        return len(domain.values)
    hint = did_you_mean(str(value), domain.labels()[:20])
    if str(value) in domain.labels():
        hint = f"write it as {_literal(next(v for v in domain.values if str(v) == str(value)))}"
    raise SchemaError(f"{value!r} is not a value of column {column!r}; {hint}")


def _number(column: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise SchemaError(f"column {column!r} is numeric; compare it with a number, not {value!r}")
    return value


def _one_of(schema: Schema, column: str, values: list[Any]) -> Predicate:
    domain = schema[column]
    if isinstance(domain, Categorical):
        return _cells(column, domain, [_code(domain, column, v) for v in values])
    return Either(tuple(Compare(column, "=", _number(column, v)) for v in values))


def _compare(schema: Schema, column: str, op: Op, value: Any) -> Predicate:
    domain = schema[column]
    if isinstance(domain, Numeric):
        return Compare(column, op, _number(column, value))
    if op in ("=", "!="):
        cells = _cells(column, domain, [_code(domain, column, value)])
        return cells if op == "=" else Not(cells)
    if isinstance(domain.values[0], str | bool):
        raise SchemaError(f"the values of column {column!r} have no order; use = or in (...) instead of {op}")
    limit = _number(column, value)
    test = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[op]
    return _cells(column, domain, [c for c, v in enumerate(domain.values) if test(v, limit)])


class _Parser:
    """Recursive descent: or > and > not > comparison. Errors point to the place."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                start = place + len(text[place:]) - len(text[place:].lstrip())
                quote = text[start] in "'\"`"
                self.fail("this quote is never closed" if quote else "cannot read this", start)
            assert match is not None
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            place = match.end()
        self.tokens.append(("end", "", len(text.rstrip())))
        self.at = 0

    def fail(self, message: str, place: int) -> None:
        line = self.text[:place].count("\n")
        column = place - (self.text.rfind("\n", 0, place) + 1)
        shown = (self.text.split("\n") or [""])[line]
        raise SchemaError(f"where: {message}\n    {shown}\n    {' ' * column}^")

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
        try:
            found = self.alternatives()
        except RecursionError:
            raise SchemaError("where: too many nested parentheses") from None
        kind, text, place = self.tokens[self.at]
        if kind != "end":
            self.fail(f"expected 'and', 'or' or the end, not {text!r}", place)
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
        if self.take("not"):
            return Not(self.negation())
        if self.take("("):
            inside = self.alternatives()
            self.need(")", "to close the parenthesis")
            return inside
        return self.comparison()

    def comparison(self) -> Predicate:
        place = self.tokens[self.at][2]
        column = self.column()
        try:
            return self.rest(column)
        except SchemaError as error:
            if str(error).startswith("where:"):
                raise
            self.fail(str(error), place)
            raise

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
            return _compare(self.schema, column, op, self.literal())
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
            found = _one_of(self.schema, column, values)
        elif self.take("between"):
            low = self.literal()
            self.need("and", "between the two limits")
            high = self.literal()
            found = Both((_compare(self.schema, column, ">=", low), _compare(self.schema, column, "<=", high)))
        if found is None:
            self.fail(f"expected an operator after column {column!r}: = != < <= > >= in between, is missing", place)
        assert found is not None
        return Not(found) if negated else found

    def literal(self) -> Leaf | float:
        kind, text, place = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return float(text) if any(c in text for c in ".eE") else int(text)
        if kind in ("string", "quoted"):
            return text[1:-1].replace(text[0] * 2, text[0])
        if kind == "word" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        hint = f"; text goes in quotes: '{text}'" if kind == "word" else ""
        self.fail(f"expected a number, a text in quotes, true or false{hint}", place)
        raise AssertionError
