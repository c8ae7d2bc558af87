"""The made-up clinic: its consent depends on the person, and what is said about the truth is right."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from sfumato.demo import PATIENTS, TIERS, compare, write_clinic


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_clinic(tmp_path_factory.mktemp("demo") / "clinic").parent


@pytest.fixture(scope="module")
def patients(folder):
    table = pq.read_table(folder / "clinic.parquet").to_pandas()
    return table.merge(pq.read_table(folder / "roster.parquet").to_pandas(), on="patient", validate="one_to_one")


def test_the_tiers_have_the_shares_that_are_named(patients):
    assert len(patients) == PATIENTS
    for name, (_, share) in TIERS.items():
        assert abs((patients.consent == name).mean() - share) < 0.01


@pytest.mark.parametrize(
    ("trait", "least"), [("age >= 65", 0.1), ("ward == 'oncology'", 0.07), ("stay >= 10", 0.07), ("region == 'north'", None)]
)
def test_consent_depends_on_age_and_illness_and_not_on_the_region(patients, trait, least):
    has = patients.eval(trait)
    rates = [has[patients.consent == name].mean() for name in TIERS]
    strict = patients.consent == "strict"
    gap = has[strict].mean() - has[~strict].mean()
    if least is None:
        assert abs(gap) < 0.02  # five standard errors
    else:
        assert gap > least
        assert rates[0] > rates[1] > rates[2]


def test_the_same_seed_makes_the_same_clinic(tmp_path):
    first, second, other = (
        pq.read_table(write_clinic(tmp_path / name, patients=1000, seed=seed).parent / "roster.parquet")
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first.equals(second)
    assert not first.equals(other)


def test_what_is_compared_with_the_truth_is_the_truth(folder, patients):
    """Affine's interval misses where consent and value go together; adaptive's answer is near the truth everywhere.

    The noise is private, so the bounds are wide. Affine is off by 2,400 people or more with noise of scale below 80: to come
    within 1,000 has a probability below e^-17. Adaptive's noise has a scale near 200, a tenth of what is allowed is 600.
    """
    found = {c.where: c for c in compare(folder)}
    assert found["age >= 65"].truth == int((patients.age >= 65).sum())
    assert found["ward = 'oncology'"].truth == int((patients.ward == "oncology").sum())
    for c in found.values():
        low, high = c.adaptive.interval(0.95)
        assert abs(c.adaptive.value - c.truth) < 10 * (high - low) / 2
        if c.where == "region = 'north'":
            assert abs(c.affine.value - c.truth) < 1500
        else:
            assert c.affine.value < c.truth - 1000
            assert not c.holds(c.affine)


def test_holds_says_whether_the_printed_interval_has_the_truth(folder):
    one = compare(folder)[0]
    low, high = one.adaptive.interval(0.95)
    for truth, inside in ((low + 1, True), (high - 1, True), (low - 1, False), (high + 1, False)):
        assert replace(one, truth=truth).holds(one.adaptive) is inside
