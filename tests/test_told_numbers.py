"""Numbers that somebody states (rows per person, neighbours, limits) are carried by `Terms`; nobody passes them by hand.

Read off the source: outside `privacy` no Meter is made but by `Meter.under(terms)`, and the two words go as keywords only
into the objects that hold them. Each rule is first shown a source that breaks it.
"""

import ast
from pathlib import Path

import pytest

from support.architecture import part_of, sources_in

SOURCES = sources_in(Path(__file__).parents[1] / "src" / "sfumato")
# privacy is where the numbers are used; audits and benches try mechanisms on made-up tables, under Meters without a price.
EXEMPT = {"privacy", "audit", "bench"}
HOLDERS = {
    "rows_per_person": {
        "Terms",  # what a release is held to
        "PrivacyUnit",  # what the schema says of its table
        "Exact",  # how many rows of one person are in a value
        "reading",  # Exact.reading, the same
    },
    "neighbours": {"Terms"},
}
# Elsewhere by hand, each with its reason: (module, called).
STATED = {
    ("sfumato.classifiers.search", "replace"),  # the schema's Terms with the neighbours that the searched estimator states
}


def calls(source):
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]


def called(call):
    return (
        call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    )


def meters(source):
    """Lines in which a Meter is made without terms."""
    return [call.lineno for call in calls(source) if called(call) == "Meter"]


def by_hand(source):
    """What is called with a number that belongs into terms: (line, word, called)."""
    return [
        (call.lineno, word.arg, called(call))
        for call in calls(source)
        for word in call.keywords
        if word.arg in HOLDERS and called(call) not in HOLDERS[word.arg]
    ]


@pytest.mark.parametrize(
    "source", ["Meter()", "privacy.Meter(limit=x)", "def f():\n    return sf.Meter(limit=Charge(1), rows_per_person=3)"]
)
def test_a_meter_made_by_hand_is_noticed(source):
    assert len(meters(source)) == 1
    assert meters("Meter.under(terms, source=source)") == meters("meter: Meter") == meters("isinstance(x, Meter)") == []


@pytest.mark.parametrize(
    "source", ["plan(roster, rows_per_person=3)", "self.made.plan(rows_per_person=rows)", "price(neighbours='replacement')"]
)
def test_a_number_passed_by_hand_is_noticed(source):
    assert len(by_hand(source)) == 1
    assert by_hand("Terms(rows_per_person=rows, neighbours=n)\nExact.reading(f, rows_per_person=2)") == []


def test_every_meter_is_made_under_terms():
    assert {m: lines for m, s in SOURCES.items() if part_of(m) not in EXEMPT and (lines := meters(s))} == {}


def test_nobody_passes_a_told_number_by_hand():
    found = {(m, name) for m, s in SOURCES.items() if part_of(m) not in EXEMPT for _, _, name in by_hand(s)}
    assert found == STATED
