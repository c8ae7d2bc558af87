"""A constant is set again without one set and measured there."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sfumato
from sfumato.bench.leave_one_out import OF_CLASSIFIERS, OF_HISTOGRAMS, Constant, left_out


@pytest.fixture
def module(monkeypatch):
    made = ModuleType("made_up_constants")
    made.SIZE = 2
    monkeypatch.setitem(sys.modules, "made_up_constants", made)
    return made


def test_what_a_constant_owes_to_a_set_is_the_difference_without_it(module):
    best = {"a": 1, "b": 1, "c": 3}  # the error on a set is the distance from its own best value
    sets = dict.fromkeys(best)
    constant = Constant(
        "size",
        "made_up_constants",
        "SIZE",
        (1, 2, 3),
        lambda name, draw: abs(module.SIZE - best[name]) + 0.125 * draw,
        lambda data, quick: {name: name for name in sets},
        "distance",
    )
    found = left_out([constant], data=None, quick=False, progress=lambda _: None)["size"]
    assert module.SIZE == 2  # as it was
    # Without c the others choose 1, which is worse on c; without a there is a tie, and the value in use stays.
    assert found["c"] == {
        "in use": 2,
        "set without it": 1,
        "figure": pytest.approx(1.125),
        "difference": pytest.approx(1.0),
        "difference_se": pytest.approx(0.0),
        "draws": 3,
        "unit": "distance",
    }
    assert found["a"]["set without it"] == 2
    assert found["a"]["difference"] == 0


def test_a_failure_leaves_the_constant_as_it_was(module):
    constant = Constant("size", "made_up_constants", "SIZE", (5,), lambda *_: 1 / 0, lambda *_: {"a": 0}, "")
    with pytest.raises(ZeroDivisionError):
        left_out([constant], data=None, quick=True, progress=lambda _: None)
    assert module.SIZE == 2


@pytest.mark.parametrize("constant", [*OF_CLASSIFIERS, *OF_HISTOGRAMS], ids=lambda c: c.attribute)
def test_every_listed_constant_is_there(constant):
    assert constant.in_use in constant.values
    assert len(set(constant.values)) > 2
    home = Path(sfumato.__file__).parent
    importing = re.compile(rf"from {re.escape(constant.module)} import (\([^)]*|.*)\b{constant.attribute}\b")
    found = {
        "sfumato." + ".".join(path.relative_to(home).with_suffix("").parts)
        for path in home.rglob("*.py")
        if importing.search(path.read_text(encoding="utf-8"))
    }
    assert found <= set(constant.also)  # otherwise a part of the library keeps the old value


def test_a_constant_of_the_histograms_matters():
    for constant in OF_HISTOGRAMS:
        data_set = next(iter(constant.sets(None, True).values()))
        figures = set()
        for value in constant.values:
            with constant.set_to(value):
                figures.add(constant.measure(data_set, 0))
        assert len(figures) > 1
