"""Policy files: what is refused, and that refusal does not rest on the checksum alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.attributes import Catalogue, Policy, Profile, allocate
from sfumato.attributes.policy import exact_loads
from sfumato.errors import PrivacyError, SfumatoError
from sfumato.privacy.sealed import checksum

SHOP = Catalogue.of({"a": ["x", "y"], "b": ["y", "z"], "c": ["z"]})
BUDGETS = {"x": 0.05, "y": 0.3, "z": 0.2}
POLICY = allocate(SHOP, budgets=BUDGETS, epsilon=0.1)


def resealed(**changes) -> str:
    """A file changed by somebody who knows how to compute the checksum."""
    body = json.loads(POLICY.to_json())
    body.pop("checksum")
    body |= changes
    return json.dumps(body | {"checksum": checksum(body, None)})


def test_round_trip(tmp_path):
    POLICY.save(tmp_path / "p.json")
    again = Policy.load(tmp_path / "p.json")
    assert again.to_json() == POLICY.to_json()
    np.testing.assert_array_equal(again.rows, POLICY.rows)
    weighted = allocate(Catalogue.of({"i": {"x": 0.25}}, step="0.05"), budgets={"x": 1}, epsilon=0.5)
    assert Policy.from_json(weighted.to_json()).unit == weighted.unit


def test_any_single_changed_number_is_refused():
    text = POLICY.to_json()
    for place, char in enumerate(text):
        if char.isdigit():
            changed = text[:place] + str((int(char) + 1) % 10) + text[place + 1 :]
            if json.loads(changed) == json.loads(text):
                continue  # the seventeenth digit of a float
            with pytest.raises(SfumatoError):
                Policy.from_json(changed)


@settings(max_examples=110, deadline=None)
@given(st.lists(st.integers(-5, 10**9), min_size=3, max_size=3), st.integers(-1, 2 * 10**8))
def test_a_resealed_policy_is_accepted_only_if_it_keeps_its_promises(rates, epsilon):
    try:
        policy = Policy.from_json(resealed(rates=rates, epsilon=epsilon))
    except SfumatoError:
        return
    assert all(sum(a * r for a, r in zip(row, rates, strict=True)) <= epsilon for row in POLICY.rows.tolist())
    assert all(r <= t for r, t in zip(rates, POLICY.budgets.tolist(), strict=True))
    assert policy.charge.total <= epsilon


def test_infeasible_policies_are_refused():
    with pytest.raises(PrivacyError, match="overall"):
        Policy.from_json(resealed(epsilon=POLICY.charge.total - 1))
    with pytest.raises(PrivacyError, match="attribute 'x'"):
        Policy.from_json(resealed(budgets=[1, 300_000_000, 200_000_000]))


def test_a_policy_that_hides_heavy_items_is_caught_by_the_persons_catalogue():
    # Feasible as it stands, because the row with x and y together was left out.
    light = Policy.from_json(resealed(rows=[[0, 1], [1, 1], [2, 1]], rates=[50_000_000, 100_000_000, 100_000_000]))
    profile = Profile(SHOP, budgets=BUDGETS, policies=light)
    with pytest.raises(PrivacyError, match="infeasible"):
        profile.release(["a"], to="r", epsilon=0.1)
    # Without a catalogue every item is cut to lie under one of the rows, so the promise holds all the same.
    odd = ({"x": -1}, {"x": float("nan")}, {"x": "1e400"}, {"x": 10**40}, 7, None, [["x"]], {"x": None})
    for item in (["x", "y"], ["y", "z"], ["x", "y", "z"], {"x": 5}, ["unknown"], *odd):
        row = light.fit(item)
        assert (row <= light.rows).all(axis=1).any()


def test_a_policy_beyond_the_persons_own_budgets_is_refused():
    with pytest.raises(PrivacyError, match="attribute"):
        Profile(SHOP, budgets=BUDGETS | {"y": 0.001}, policies=POLICY).release([], to="r", epsilon=0.1)
    with pytest.raises(PrivacyError, match="overall"):
        Profile(SHOP, budgets=BUDGETS, policies=POLICY).release([], to="r", epsilon=0.05)
    with pytest.raises(PrivacyError, match="another catalogue"):
        Profile({"a": ["x"]}, budgets={"x": 1}, policies=POLICY).release([], to="r", epsilon=0.1)


def test_a_key_tells_who_made_it():
    text = POLICY.to_json(key=b"secret")
    assert Policy.from_json(text, key=b"secret").to_json() == POLICY.to_json()
    for key in (None, b"other"):
        with pytest.raises(PrivacyError):
            Policy.from_json(text, key=key)
    with pytest.raises(PrivacyError):
        Policy.from_json(POLICY.to_json(), key=b"secret")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "sfumato attribute policy", "version": 2}',
        resealed(rates=[1.5, 1, 1]),
        resealed(rates=[True, 1, 1]),
        resealed(rates=[1, 1]),
        resealed(rates="111"),
        resealed(rates=[2**70, 1, 1]),
        resealed(rows=[[0, 1, 0, 1]]),
        resealed(rows=[[7, 1]]),
        resealed(rows=[[0]]),
        resealed(attributes=["x", "x", "y"]),
        resealed(unit="0"),
        resealed(unit="1/0"),
        resealed(unit="one"),
        resealed(rows=[]),
        resealed(rows=7),
        resealed(gap="small"),
        resealed(epsilon=[1]),
        resealed(extra=1),
    ],
)
def test_damaged_files_are_refused(text):
    with pytest.raises(SfumatoError):
        Policy.from_json(text)


def test_exact_loads_do_not_overflow():
    rows, rates = np.array([[2**31, 2**31]]), np.array([10**15, 10**15])
    assert exact_loads(rows, rates).tolist() == [2 * 2**31 * 10**15]


def test_a_few_rows_have_the_price_of_all_of_them():
    rng = np.random.default_rng(1)
    catalogue = Catalogue.from_matrix(np.round(rng.dirichlet(np.ones(6), 5000), 2), list("uvwxyz"), step="0.01")
    policy = allocate(catalogue, budgets=dict.fromkeys("uvwxyz", 0.5), epsilon=0.3)
    assert len(policy.rows) > len(policy.touches)
    few, every = policy.price(policy.touches), policy.price(policy.rows)
    assert (few.total, dict(few.attributes)) == (every.total, dict(every.attributes))
    release = Profile(catalogue, budgets=dict.fromkeys("uvwxyz", 0.5), policies=policy).release([3], to="r", epsilon=0.3)
    assert release.guarantee.nano == every.total
