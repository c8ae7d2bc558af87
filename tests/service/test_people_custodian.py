"""How a custodian brings people, and what a list cannot do."""

import pytest

from support.service_people import linked, make_dataset, spend


def brought(client, *pairs, dataset="clinic"):
    return client.post(f"/v1/datasets/{dataset}/people", json={"people": [{"person": p, "grant": g} for p, g in pairs]})


@pytest.fixture
def custodian(service, client_as):
    custodian = client_as("custodian")
    custodian.dataset = make_dataset(service, custodian.caller)
    return custodian


def test_bring_close_and_look(service, client_as, custodian):
    said = brought(custodian, ("ann", "open"), (7, "strict"), ("Zoe\u0301", "0.3")).json()
    assert said == {"asked": {"join": 3, "raise": 0, "lower": 0, "move": 0, "withdraw": 0}, "left_as_they_chose": 0}
    assert custodian.get("/v1/datasets/clinic/people").json()["pending"]["join"] == 3
    done = custodian.post("/v1/datasets/clinic/epochs", json={"next": "2999-01-31"})
    assert done.status_code == 201
    assert done.json()["number"] == 1
    assert done.json()["counts"]["joined"] == 3
    spend(service)
    for role in ("custodian", "officer"):
        seen = client_as(role).get("/v1/datasets/clinic/people").json()
        assert (seen["roster"], seen["epoch"], seen["next_epoch"]) == ("public", 1, "2999-01-31")
        by_name = {row["name"]: row for row in seen["tiers"]}
        assert by_name["open"]["people"] == 1
        assert by_name["open"]["spent"] == ["0.1", "0.1"]
    ann = client_as("person", "ann")
    linked(service, ann.caller, custodian.dataset, "ann")
    assert ann.get("/v1/me/clinic").json()["next_epoch"] == "2999-01-31"
    assert custodian.put("/v1/datasets/clinic/epochs/next", json={"next": None}).json() == {"next_epoch": None}
    assert ann.get("/v1/me/clinic").json()["next_epoch"] is None
    for odd in ("2020-01-01", "2999-13-01", "2999-1-1", "tomorrow", 0, "2999-01-01T00:00Z"):
        assert custodian.put("/v1/datasets/clinic/epochs/next", json={"next": odd}).status_code == 422
        assert custodian.post("/v1/datasets/clinic/epochs", json={"next": odd}).status_code == 422
    assert custodian.get("/v1/datasets/clinic/people").json()["epoch"] == 1  # refused before anything was closed


def test_a_list_never_overrules_a_person(service, client_as, custodian):
    brought(custodian, ("ann", "open"), ("ben", "open"), ("cy", "open"))
    custodian.post("/v1/datasets/clinic/epochs", json={})
    for name in ("ann", "ben", "cy", "dora"):
        linked(service, client_as("person", name).caller, custodian.dataset, name)
    client_as("person", "ann").put("/v1/me/clinic/grant", json={"tier": "strict"})
    client_as("person", "ben").post("/v1/me/clinic/withdraw", json={"confirm": "clinic"})
    client_as("person", "dora").post("/v1/me/clinic/withdraw", json={"confirm": "clinic"})  # who never took part
    said = brought(custodian, ("ann", "open"), ("ben", "open"), ("cy", "standard"), ("dora", "open")).json()
    assert said["left_as_they_chose"] == 3
    assert said["asked"]["lower"] == 1
    custodian.post("/v1/datasets/clinic/epochs", json={})
    life = service.ledger.people("clinic")
    assert (life.receipt("ann").tier, life.receipt("ben").withdrawn, life.receipt("cy").tier) == ("strict", True, "standard")
    assert not life.knows("dora")


def test_odd_lists_are_refused_whole(service, custodian):
    odd = [(("ann", "open"), ("ann", "strict")), ((7, "open"), ("7", "open")), (("\u00e9", "open"), ("e\u0301", "open"))]
    odd += [(("ann", "open"), ("ben", "nothing")), (("ann", "-1"),), (("", "open"),), ((True, "open"),), ((1.5, "open"),)]
    odd += [(("x" * 201, "open"),), ((2**63, "open"),), ((None, "open"),)]
    assert [brought(custodian, *pairs).status_code for pairs in odd] == [422] * len(odd)
    for body in ({"people": []}, {"people": [{"person": "a", "grant": "open"}], "missing": "withdraw"}, {}, []):
        assert custodian.post("/v1/datasets/clinic/people", json=body).status_code == 422
    too_many = [(number, "open") for number in range(10_001)]
    assert brought(custodian, *too_many).status_code == 422
    assert service.ledger.people("clinic").pending().total == 0


def test_ten_thousand_at_once(service, custodian):
    long = "a patient's number that is rather long, as some registers have them " * 2
    said = brought(custodian, *((f"{long}{number}", "open") for number in range(10_000)))
    assert said.json()["asked"]["join"] == 10_000


def test_what_is_missing_is_missing_for_the_custodian_too(custodian):
    paths = ["/v1/datasets/another/people", "/v1/datasets/a%2Fb/people", "/v1/datasets/' OR 1=1 --/people"]
    assert {custodian.get(path).status_code for path in paths} == {404}
    people = [{"person": "ann", "grant": "open"}]
    assert custodian.post("/v1/datasets/another/people", json={"people": people}).status_code == 404
    assert custodian.post("/v1/datasets/another/epochs", json={}).status_code == 404
    assert custodian.post("/v1/datasets/another/invitations", json={"people": ["ann"]}).status_code == 404


def test_a_fixed_roster_by_tier(service, client_as):
    custodian = client_as("custodian")
    make_dataset(service, custodian.caller, "survey", living=False, tiers={"low": ("0.1", 5), "high": (1, 3)})
    seen = custodian.get("/v1/datasets/survey/people").json()
    assert seen["roster"] == "fixed"
    assert [row["people"] for row in seen["tiers"]] == [5, 3]
    assert custodian.post("/v1/datasets/survey/epochs", json={}).status_code == 409


def test_another_custodians_people_are_missing(client_as, custodian):
    other, people = client_as("custodian", "another custodian"), [{"person": "ann", "grant": "open"}]
    calls = [
        ("GET", "people", None),
        ("POST", "people", {"people": people}),
        ("POST", "invitations", {"people": ["ann"]}),
        ("POST", "epochs", {}),
        ("PUT", "epochs/next", {}),
    ]
    for method, what, body in calls:
        theirs, none = (other.request(method, f"/v1/datasets/{name}/{what}", json=body) for name in ("clinic", "nowhere"))
        assert (theirs.status_code, theirs.content) == (404, none.content), what
    assert custodian.get("/v1/datasets/clinic/people").json()["pending"]["join"] == 0
