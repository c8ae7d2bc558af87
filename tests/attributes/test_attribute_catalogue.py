"""The lattice, duplicates and dominated rows, against brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from sfumato.attributes import Catalogue
from sfumato.attributes.policy import exact_loads
from sfumato.errors import InputError
from sfumato.testing import reveal

MATRICES = arrays(np.int64, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 3))


def names(m: int) -> list[str]:
    return [f"a{j}" for j in range(m)]


def counted(catalogue: Catalogue, history, **how) -> np.ndarray:
    return reveal(catalogue.histogram(history, **how).exact)


@given(MATRICES)
def test_maximal_rows_are_exactly_the_undominated_ones(matrix):
    catalogue = Catalogue.from_matrix(matrix, names(matrix.shape[1]))
    rows = {tuple(r) for r in matrix.tolist()}
    undominated = {r for r in rows if not any(s != r and all(a >= b for a, b in zip(s, r, strict=True)) for s in rows)}
    assert {tuple(r) for r in catalogue.distinct.tolist()} == rows
    assert {tuple(r) for r in catalogue.maximal.tolist()} == undominated
    assert len(catalogue.maximal) == len(undominated)


@given(MATRICES, st.data())
def test_maximal_rows_have_the_price_of_all_rows(matrix, data):
    rates = np.array(data.draw(st.lists(st.integers(1, 10**12), min_size=matrix.shape[1], max_size=matrix.shape[1])))
    catalogue = Catalogue.from_matrix(matrix, names(matrix.shape[1]))
    assert exact_loads(catalogue.maximal, rates).max() == exact_loads(matrix, rates).max()
    np.testing.assert_array_equal(catalogue.maximal.max(axis=0), matrix.max(axis=0))


def test_wide_rows_are_packed_into_several_words():
    rng = np.random.default_rng(3)
    base = rng.integers(0, 5000, (40, 30)) * (rng.random((40, 30)) < 0.3)
    matrix = base[rng.integers(0, 40, 500)]
    catalogue = Catalogue.from_matrix(matrix, names(30))
    assert {tuple(r) for r in catalogue.distinct.tolist()} == {tuple(r) for r in matrix.tolist()}


def test_sparse_and_dense_agree():
    rng = np.random.default_rng(5)
    dense = rng.integers(0, 2, (50, 7))
    one, two = Catalogue.from_matrix(dense, names(7)), Catalogue.from_matrix(sparse.coo_matrix(dense), names(7))
    np.testing.assert_array_equal(one.maximal, two.maximal)
    np.testing.assert_array_equal(counted(one, np.arange(50)), dense.sum(axis=0))
    np.testing.assert_array_equal(counted(two, np.arange(50)), dense.sum(axis=0))
    assert one.fingerprint == two.fingerprint


def test_weights_round_up_to_the_lattice():
    catalogue = Catalogue.from_matrix([[0.3, 0.31], [0.0, 1.0]], ["x", "y"], step="0.1")
    assert catalogue.unit == Fraction(1, 10)
    assert catalogue.distinct.tolist() == [[0, 10], [3, 4]] or sorted(catalogue.distinct.tolist()) == [[0, 10], [3, 4]]
    assert Catalogue.of({"i": {"x": "0.31"}}, step="0.1").maximal.tolist() == [[4]]


def test_histories_of_many_people_agree_with_one_by_one():
    rng = np.random.default_rng(8)
    catalogue = Catalogue.from_matrix(rng.integers(0, 3, (20, 4)), names(4))
    person, item = rng.integers(0, 6, 100), rng.integers(0, 20, 100)
    together = reveal(catalogue.histograms(person, item, people=6).exact)
    for p in range(6):
        np.testing.assert_array_equal(together[p], counted(catalogue, item[person == p], once=False))


def test_unknown_and_repeated_items_are_not_an_error():
    catalogue = Catalogue.of({"a": ["x"], "b": ["x", "y"]})
    assert counted(catalogue, ["a", "nobody", "a", None, ["unhashable"]]).tolist() == [1, 0]
    assert counted(catalogue, ["a", "a", "b"], once=False).tolist() == [3, 1]
    numbered = Catalogue.from_matrix([[1, 0], [1, 1]], ["x", "y"])
    assert counted(numbered, [-1, 0, 7]).tolist() == [1, 0]
    assert counted(numbered, []).tolist() == [0, 0]


@pytest.mark.parametrize("odd", [None, 2.5, "a", [1], 10**30, -1, float("nan")])
def test_one_odd_item_moves_nothing_else(odd):
    numbered = Catalogue.from_matrix([[1, 0], [1, 1]], ["x", "y"])
    assert counted(numbered, [0, odd, 1]).tolist() == counted(numbered, [0, 1]).tolist() == [2, 1]
    assert counted(numbered, np.array([0.0, 1.0])).tolist() == [0, 0]


def test_heavy_weights_are_summed_exactly():
    heavy = Catalogue.from_matrix([[2**31 - 1], [1]], ["x"])
    rows = np.zeros(2**23 // 2, dtype=np.int64)
    assert counted(heavy, np.append(rows, 1), once=False).tolist() == [rows.size * (2**31 - 1) + 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Catalogue.of({"a": {"x": -1}}),
        lambda: Catalogue.of({"a": {"x": float("nan")}}),
        lambda: Catalogue.of({"a": ["x"]}, ["y"]),
        lambda: Catalogue.of({"a": []}),
        lambda: Catalogue.from_matrix([[1, -1]], ["x", "y"]),
        lambda: Catalogue.from_matrix([[1, np.inf]], ["x", "y"]),
        lambda: Catalogue.from_matrix([[1, 1]], ["x"]),
        lambda: Catalogue.from_matrix([[1, 1]], ["x", "x"]),
        lambda: Catalogue.from_matrix([[1, 1]], ["x", "y"], step=0),
        lambda: Catalogue.from_matrix([[1, 1]], ["x", "y"], items=["only", "two"]),
        lambda: Catalogue.from_matrix([1, 1], ["x", "y"]),
    ],
)
def test_bad_catalogues_are_refused(make):
    with pytest.raises(InputError):
        make()
