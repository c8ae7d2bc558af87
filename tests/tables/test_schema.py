"""Schemas: exact round trips, cells, and errors that say what to do."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema, Taxonomy
from support import plain_reference as plain

FULL = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "income": Numeric(-0.1, 1e16 / 4, bins=7, outside="other", other="elsewhere"),
        'a "b" \\ ünï.\x7f\n;--': Numeric(edges=[0, 0.1, 2, 1e5], taxonomy=Taxonomy.of({"low": [0, 1], "high": [2]})),
        "place": Categorical(
            ["oslo", "bern", "nice"], other=True, taxonomy={"north": ["oslo"], "south": {"hills": ["bern"], "sea": ["nice"]}}
        ),
        "ward": Categorical([3, 1]),
        "smoker": Categorical([True, False], other="unknown"),
    },
    PrivacyUnit(person="the patient", rows_per_person=3),
)

_names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=8)
_numerics = st.one_of(
    st.builds(
        lambda low, span, bins, outside, other: Numeric(low, low + span, bins=bins, outside=outside, other=other),
        st.floats(-1e6, 1e6),
        st.floats(1e-3, 1e6),
        st.integers(1, 50),
        st.sampled_from(["clamp", "other"]),
        st.sampled_from([True, False, "none of these"]),
    ),
    st.builds(
        lambda low, span, bins: Numeric(low, low + span, bins=min(bins, span + 1), integer=True),
        st.integers(-1000, 1000),
        st.integers(1, 300),
        st.integers(1, 100),
    ),
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=9, unique=True).map(lambda e: Numeric(edges=sorted(e))),
)
_categoricals = st.one_of(
    st.lists(_names, min_size=1, max_size=6, unique=True).map(lambda v: Categorical(v, other="*" * 9)),
    st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=6, unique=True).map(Categorical),
)


def test_round_trip_of_everything_at_once(tmp_path):
    again = Schema.from_toml(FULL.to_toml())
    assert again == FULL
    assert again.names == FULL.names
    assert again.to_toml() == FULL.to_toml()
    FULL.save(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml") == FULL == Schema.from_toml(str(tmp_path / "schema.toml"))
    assert pickle.loads(pickle.dumps(FULL)) == FULL


@given(st.dictionaries(_names, st.one_of(_numerics, _categoricals), min_size=1, max_size=4))
def test_round_trip(columns):
    if len({name.casefold() for name in columns}) < len(columns):
        with pytest.raises(SchemaError, match="differ in case only"):
            Schema(columns)
        return
    schema = Schema(columns)
    assert Schema.from_toml(schema.to_toml()) == schema


@given(_numerics)
def test_edges_increase_and_labels_name_every_cell(domain):
    inner, last = domain.edges[:-1], domain.edges[-2:]
    assert all(b > a for a, b in itertools.pairwise(inner))
    assert last[1] > last[0] or (domain.integer and last[1] == last[0])
    assert len(set(domain.labels())) == domain.size or not domain.integer
    assert (domain.edges[0], domain.edges[-1]) == (domain.low, domain.high)
    assert len(domain.labels()) == domain.size == len(domain.edges) - 1 + bool(domain.other)


def test_integer_bins_share_the_whole_numbers_evenly():
    domain = Numeric(-3, 13, bins=5, integer=True)
    held = np.bincount([plain.code(v, domain) for v in range(-3, 14)])
    assert held.sum() == 17
    assert set(held.tolist()) <= {3, 4}


def test_taxonomy_levels():
    place = FULL["place"]
    assert place.depth == 3
    assert [place.group_codes(level).tolist() for level in range(4)] == [
        [0, 0, 0, 0],
        [0, 1, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
    ]
    assert FULL.columns['a "b" \\ ünï.\x7f\n;--'].group_codes(1).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Numeric(0, 10), "needs bins"),
        (lambda: Numeric(0, bins=3), "give high"),
        (lambda: Numeric(10, 0, bins=3), "low must be less than high"),
        (lambda: Numeric(0, math.nan, bins=3), "finite number"),
        (lambda: Numeric(edges=[0, math.nan, 2]), "finite number"),
        (lambda: Numeric(edges=[0, 2, 2]), "increase strictly"),
        (lambda: Numeric(edges=[0]), "at least two"),
        (lambda: Numeric(0, 1, bins=2, edges=[0, 1]), "not both"),
        (lambda: Numeric(0, 10, bins=0), "bins must be"),
        (lambda: Numeric(0, 2, bins=9, integer=True), "use at most 3"),
        (lambda: Numeric(0, 2.5, bins=2, integer=True), "whole number"),
        (lambda: Numeric(0, 2**60, bins=2), "2\\^53"),
        (lambda: Numeric(1.0, 1.0 + 1e-14, bins=1000), "too fine"),
        (lambda: Numeric(0, 1, bins=2, outside="drop"), "'clamp' or 'other'"),
        (lambda: Categorical([]), "public values"),
        (lambda: Categorical("FM"), "must be a list"),
        (lambda: Categorical(["a", 1]), "all text"),
        (lambda: Categorical([1.5]), "all text"),
        (lambda: Categorical(["a", "a"]), "twice"),
        (lambda: Categorical(["a\x00"]), "cannot store"),
        (lambda: Categorical(["other"], other=True), "already a value"),
        (lambda: Categorical(["a", "b"], taxonomy={"x": ["a"]}), "does not cover 'b'"),
        (lambda: Categorical(["a"], taxonomy={"x": ["a"], "y": ["a"]}), "twice"),
        (lambda: Categorical(["a"], taxonomy={"x": ["a", "c"]}), "'c', which is not a value"),
        (lambda: Categorical(["a"], taxonomy={"x": []}), "empty list"),
        (lambda: PrivacyUnit(person="who"), "rows_per_person = 1"),
        (lambda: PrivacyUnit(rows_per_person=3), "needs person"),
        (lambda: PrivacyUnit(person="who", rows_per_person=0), "at least 1"),
        (lambda: Schema({}), "at least one column"),
        (lambda: Schema({"a": Numeric(0, 1, bins=2), "A": Numeric(0, 1, bins=2)}), "rename one"),
        (lambda: Schema({"a": 3}), "Numeric or Categorical"),
        (lambda: Schema.from_toml("[columns.age]\nlow = 0\nhihg = 3\nbins = 3"), "did you mean 'high'"),
        (lambda: Schema.from_toml("[colums.age]\nlow = 0"), "did you mean 'columns'"),
        (lambda: Schema.from_toml("[columns.age]\ntype = 'number'"), "no columns of type 'number'; did you mean 'numeric'"),
        (lambda: Schema.from_toml("[columns.age]\nlow = 0\nhigh = 9"), "column 'age': a numeric column needs bins"),
        (lambda: Schema.from_toml("[unit]\nperson = 'x'\n[columns.a]\nvalues = [1]"), "rows_per_person"),
        (lambda: Schema.from_toml("[columns\n"), "not valid TOML"),
        (lambda: Schema.from_toml("nowhere.toml"), "no schema file"),
    ],
)
def test_refusals_say_what_to_do(build, message):
    with pytest.raises(SchemaError, match=message):
        build()


def test_a_tree_of_lists_and_branches_keeps_its_order_in_toml():
    tree = {"south": {"coast": ["nice"], "inland": ["bern"]}, "north": ["oslo"], "far": {"east": ["tokyo"]}}
    schema = Schema({"place": Categorical(["oslo", "bern", "nice", "tokyo"], taxonomy=tree)})
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert again["place"].taxonomy.values == ("nice", "bern", "oslo", "tokyo")
    assert "[columns.place]\n" in schema.to_toml()
