"""A person's device policy: kept by the service, read by the device."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from sfumato.attributes import DeviceLedger, DevicePolicy
from sfumato.errors import BudgetError, InputError
from support.service_people import linked, make_dataset

SENT = {
    "recipients": {
        "adnet": {"epsilon": "0.1", "attributes": {"age": "0.05", "stay": "0.1"}},
        "ministry": {"epsilon": "0.5", "attributes": {"stay": "0.5"}},
    },
    "together": "0.15",
    "attributes_together": {"stay": "0.12"},
}
ITEMS = {"short": ["stay"], "old and short": ["age", "stay"]}


@pytest.fixture
def ann(service, client_as):
    ann = client_as("person", "ann")
    linked(service, ann.caller, make_dataset(service, client_as("custodian").caller), "ann")
    return ann


def test_what_is_set_is_what_the_device_reads(ann):
    assert ann.get("/v1/me/clinic/policy").status_code == 404
    assert ann.put("/v1/me/clinic/policy", json=SENT).json()["version"] == 1
    policy = DevicePolicy.from_dict(ann.get("/v1/me/clinic/policy").json()["policy"])
    assert DevicePolicy.from_json(policy.to_json()) == policy
    limits = policy.limits("adnet")
    assert (limits.overall, limits.together) == (100_000_000, 150_000_000)
    assert dict(limits.attributes) == {"age": 50_000_000, "stay": 100_000_000}
    ledger = DeviceLedger()  # one for all recipients
    release = policy.profile(ITEMS, to="adnet", ledger=ledger).release(["old and short"], to="adnet")
    assert release.guarantee.attributes["age"] <= 50_000_000
    spent = ledger.spent("adnet")
    assert spent.total <= 100_000_000
    assert spent.attributes["age"] <= 50_000_000
    with pytest.raises(BudgetError):  # what adnet has learnt counts towards what all may learn together
        policy.profile({"short": ["stay"]}, to="ministry", ledger=ledger).release(["short"], to="ministry")
    with pytest.raises(InputError):
        policy.profile(ITEMS, to="somebody else")


def test_versions_stay_readable_and_the_same_again_is_none(ann):
    other = SENT | {"together": "1"}
    numbers = [ann.put("/v1/me/clinic/policy", json=sent).json()["version"] for sent in (SENT, SENT, other, SENT)]
    assert numbers == [1, 1, 2, 3]
    assert ann.get("/v1/me/clinic/policy?version=2").json()["policy"]["together"] == "1"
    assert ann.get("/v1/me/clinic/policy?version=4").status_code == 404
    listed = ann.get("/v1/me/clinic/policy/versions?limit=2").json()
    assert [one["version"] for one in listed["items"]] == [3, 2]
    rest = ann.get(f"/v1/me/clinic/policy/versions?limit=2&before={listed['older']}").json()
    assert [one["version"] for one in rest["items"]] == [1]


def test_two_versions_at_once_have_two_numbers(ann):
    sent = [SENT | {"together": f"0.{digit}"} for digit in range(1, 7)]
    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(lambda one: ann.put("/v1/me/clinic/policy", json=one).json()["version"], sent))
    assert sorted(said) == [1, 2, 3, 4, 5, 6]


def test_what_the_dataset_does_not_have_is_refused(ann):
    towards = {"epsilon": "0.1", "attributes": {"age": "0.05"}}
    odd = [
        SENT | {"attributes_together": {"income": "1"}},
        {"recipients": {"bank": towards}},
        {"recipients": {"adnet": towards | {"attributes": {"income": "1"}}}},
        {"recipients": {"adnet": towards | {"attributes": {}}}},
        {"recipients": {"adnet": towards | {"epsilon": "0"}}},
        {"recipients": {"adnet": towards | {"epsilon": "NaN"}}},
        {"recipients": {"adnet": {"epsilon": "1"}}},
        {"recipients": {"ad\nnet": towards}},
        {"recipients": {}, "person": "ben"},
        {"recipients": {f"r{i}": towards for i in range(101)}},
    ]
    assert [ann.put("/v1/me/clinic/policy", json=sent).status_code for sent in odd] == [422] * len(odd)
    assert ann.get("/v1/me/clinic/policy").status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "another"},
        {"version": 2},
        {"recipients": []},
        {"recipients": {"adnet": {"epsilon": "-1", "attributes": {"age": "1"}}}},
        {"recipients": {"adnet": {"epsilon": "1", "attributes": ["age"]}}},
        {"attributes_together": {"": "1"}},
        {"more": 1},
    ],
)
def test_a_device_refuses_what_is_no_policy(change):
    text = DevicePolicy.of(SENT["recipients"]).to_json()
    with pytest.raises(InputError):
        DevicePolicy.from_json(json.dumps(json.loads(text) | change))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000])
def test_a_device_refuses_what_is_no_json_object(text):
    with pytest.raises(InputError):
        DevicePolicy.from_json(text)
