"""Rows of codes add up to what the plain matrix says, in the margins, the sums and the second derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.classifiers.linear import objective as solving
from sfumato.classifiers.linear.objective import minimise
from sfumato.privacy.coded_rows import CodedColumn, CodedRows
from sfumato.privacy.objective import Objective
from sfumato.privacy.rows import BLOCK, NumberRows


@st.composite
def tables(draw):
    """Lines and indicators, of few values and of many, some of them not known."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns, start = [], 0
    for _ in range(draw(st.integers(1, 7))):
        line, size = draw(st.booleans()), draw(st.sampled_from([1, 2, 5, 17, 300]))
        columns.append(CodedColumn(np.append(rng.uniform(-0.3, 0.3, size), 0.0), start, line))
        start = columns[-1].places.stop
    n = draw(st.sampled_from([0, 1, 50, 400]))
    codes = [rng.integers(0, column.values.size, n) for column in columns]
    return CodedRows.of(columns, codes), columns, codes, rng


def plain_matrix(columns, codes):
    """By the definition, entry by entry."""
    made = np.zeros((len(codes[0]), columns[-1].places.stop))
    for column, own in zip(columns, codes, strict=True):
        for row, code in enumerate(own.tolist()):
            if code < column.values.size - 1:
                made[row, column.start + (0 if column.line else code)] = column.values[code]
    return made


@given(tables())
@settings(max_examples=40, deadline=None)
def test_codes_stand_for_the_matrix(table):
    rows, columns, codes, rng = table
    matrix = plain_matrix(columns, codes)
    n, d = matrix.shape
    assert rows.shape == (n, d)
    assert (rows.matrix() == matrix).all()
    f, weights, everything = rng.normal(size=d), rng.uniform(0, 2, n), slice(0, n)
    np.testing.assert_allclose(rows @ f, matrix @ f, atol=1e-12)
    for sums in (rows.unpacked(rows.collected(everything, weights)), rows.careful_sum(everything, weights)):
        np.testing.assert_allclose(sums, weights @ matrix, atol=1e-11)
    np.testing.assert_allclose(rows.gram(weights), (matrix * weights[:, None]).T @ matrix, atol=1e-11)
    np.testing.assert_allclose(rows.squares(weights), weights @ matrix**2, atol=1e-11)
    kept = np.flatnonzero(rng.random(n) < 0.5)
    assert (rows[kept].matrix() == matrix[kept]).all()


def test_a_sum_of_many_equal_numbers_is_off_by_no_more_than_the_last_roundings():
    """A tenth cannot be held exactly: added one after the other, a block of them is off by thousands of units."""
    rows = CodedRows.of([CodedColumn(np.array([1.0, 0.0]), 0, line=False)], [np.zeros(BLOCK, dtype=np.uint8)])
    tenths = np.full(BLOCK, 0.1)
    exact = 0.1 * BLOCK  # a power of two times the number that stands for a tenth
    assert rows.careful_sum(slice(0, BLOCK), tenths)[0] == exact
    assert rows.unpacked(rows.collected(slice(0, BLOCK), tenths))[0] != exact, "the test shows nothing"
    with pytest.raises(ValueError, match="at a time"):
        rows.careful_sum(slice(0, BLOCK + 1), np.full(BLOCK + 1, 0.1))


@pytest.mark.parametrize("kind", ["logistic", "huber"])
@pytest.mark.parametrize("coded", [False, True])
def test_a_start_from_a_sample_ends_at_the_same_minimum(kind, coded, monkeypatch):
    """Also where the sample has never seen a value that other rows have."""
    rng = np.random.default_rng(0)
    n = 6_000
    rare = np.where(np.arange(n) % 10 == 3, 1, 0)  # every tenth row, and none of a sample of every tenth
    columns = [
        CodedColumn(np.array([0.5, 0.5, 0.5, 0.0]), 0, line=False),
        CodedColumn(np.array([0.5, 0.5, 0.0]), 3, line=False),
    ]
    rows = CodedRows.of(columns, [rng.integers(0, 4, n), rare])
    sides = np.where(rng.random(n) < 0.3 + 0.4 * rare, 1, -1).astype(np.int8)
    signed = rows.beside(sides) if coded else NumberRows(rows.matrix()).beside(sides)
    objective, noise = Objective(kind, signed, rng.uniform(0.5, 1, n), 0.3), rng.normal(size=5)
    whole = minimise(objective, noise)
    monkeypatch.setattr(solving, "SAMPLE", n // 10)
    from_sample = minimise(objective, noise)
    assert np.linalg.norm(objective.slope(from_sample, noise)) < 1e-8
    np.testing.assert_allclose(from_sample, whole, atol=1e-8)


def test_no_sparse_matrix_is_made(monkeypatch):
    from scipy import sparse

    from sfumato.classifiers import PrivateLogisticRegression
    from sfumato.privacy import Seeded
    from sfumato.tables import Categorical, Numeric, Schema

    def refuse(*_, **__):
        raise AssertionError("a sparse matrix was made")

    for name in ("csr_array", "csr_matrix", "csc_array", "coo_array", "hstack", "diags_array"):
        monkeypatch.setattr(sparse, name, refuse)
    schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    age = np.arange(4000)[:, None] % 80
    ill = np.where(age[:, 0] < 40, "no", "yes")
    model = PrivateLogisticRegression(epsilon=2, schema=schema, target="ill", source=Seeded(1)).fit(age, ill)
    assert model.score(age, ill) > 0.9
