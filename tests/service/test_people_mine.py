"""What a person sees and chooses, through the interface."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, select, update

from sfumato.service.jobs.slots import asked_by
from sfumato.service.people import choosing
from sfumato.service.store import schema
from sfumato.service.store.database import now
from support.service_people import linked, make_dataset, spend


@pytest.fixture
def clinic(service, client_as):
    """Ann (open), Ben (strict) and Cy, whom the roster does not know, each with an account."""
    custodian = client_as("custodian")
    dataset = make_dataset(service, custodian.caller)
    life = service.ledger.people("clinic")
    life.join("ann", "open")
    life.join("ben", "strict")
    life.epoch()
    for name in ("ann", "ben", "cy"):
        linked(service, client_as("person", name).caller, dataset, name)
    return dataset


def test_what_a_person_sees(service, client_as, clinic):
    number = spend(service, name="elderly", recipient="ministry")
    ann = client_as("person", "ann")
    (place,) = ann.get("/v1/me").json()["items"]
    assert place == ann.get("/v1/me/clinic").json()
    mine = place["mine"]
    assert (mine["tier"], mine["grant"], mine["spent"], mine["left"]) == ("open", "1", "0.1", "0.9")
    assert mine["taking_part"]
    assert not mine["withdrawn"]
    assert mine["waiting"] is None
    tiers = {tier["tier"]: tier for tier in place["menu"]["tiers"]}
    assert [tier["epsilon"] for tier in place["menu"]["tiers"]] == ["0.01", "0.2", "1"]
    # The numbers of the page for patients.
    assert [pair["after"] for pair in tiers["standard"]["meaning"]["about_me"]] == [59.9, 14.3, 1.5]
    assert tiers["open"]["meaning"]["in_the_data"][0] == {"before": 50, "after": 73.2}
    receipt = ann.get("/v1/me/clinic/receipt").json()
    (line,) = receipt["items"]
    assert (line["release"], line["name"], line["recipient"]) == (number, "elderly", "ministry")
    assert (line["charged"], line["state"], line["tier"]) == ("0.1", "committed", "open")
    assert line["words"] == "How many records there are, among the records where age >= 65."
    assert receipt["mine"] == mine
    assert receipt["older"] is None


def test_whom_the_roster_does_not_know_can_join(service, client_as, clinic):
    cy = client_as("person", "cy")
    assert cy.get("/v1/me/clinic").json()["mine"] is None
    assert cy.get("/v1/me/clinic/receipt").status_code == 409
    said = cy.put("/v1/me/clinic/grant", json={"tier": "standard"}).json()
    assert said["holds_from"] == "next epoch"
    assert said["mine"]["waiting"] == "standard"
    service.ledger.people("clinic").epoch()
    assert cy.get("/v1/me/clinic").json()["mine"]["grant"] == "0.2"


def test_lower_raise_withdraw_come_back(service, client_as, clinic):
    ann, life = client_as("person", "ann"), service.ledger.people("clinic")
    spend(service)
    lowered = ann.put("/v1/me/clinic/grant", json={"tier": "strict"}).json()
    assert lowered["holds_from"] == "next release"
    assert "cannot" not in lowered["words"]
    assert lowered["cannot_be_undone"] is not None
    number = spend(service)  # binds first: Ann has granted 0.01 and spent 0.1, so it uses nothing of hers
    assert number not in [line["release"] for line in ann.get("/v1/me/clinic/receipt").json()["items"]]
    raised = ann.put("/v1/me/clinic/grant", json={"epsilon": "0.5"}).json()
    assert raised["holds_from"] == "next epoch"
    assert raised["mine"]["grant"] == "0.01"
    life.epoch()
    assert ann.get("/v1/me/clinic").json()["mine"]["left"] == "0.4"
    assert ann.post("/v1/me/clinic/withdraw", json={"confirm": "yes"}).status_code == 422
    assert ann.get("/v1/me/clinic").json()["mine"]["waiting"] is None
    left = ann.post("/v1/me/clinic/withdraw", json={"confirm": "clinic"}).json()
    assert left["holds_from"] == "next release"
    assert left["mine"]["waiting"] == "withdraw"
    spend(service)
    gone = ann.get("/v1/me/clinic").json()["mine"]
    assert gone["withdrawn"]
    assert gone["spent"] == "0.1"
    assert gone["left"] == "0"
    assert ann.post("/v1/me/clinic/withdraw", json={"confirm": "clinic"}).json()["words"] == "You have withdrawn already."
    ann.put("/v1/me/clinic/grant", json={"tier": "open"})
    life.epoch()
    assert ann.get("/v1/me/clinic").json()["mine"]["left"] == "0.9"  # what was spent before still counts


def test_the_same_choice_twice_is_one_line_of_the_ledger(service, client_as, clinic):
    ann = client_as("person", "ann")
    first, second = (ann.put("/v1/me/clinic/grant", json={"tier": "standard"}).json() for _ in range(2))
    assert first == second
    assert service.ledger.people("clinic").pending().total == 1
    with service.ledger._store.read() as connection:
        from sfumato.ledger import schema as ledger_schema

        assert len(connection.execute(select(ledger_schema.choices.c.id)).all()) == 1


def test_two_choices_at_once_leave_one_of_them(service, client_as, clinic):
    ann, wanted = client_as("person", "ann"), ["strict", "standard"] * 4
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda tier: ann.put("/v1/me/clinic/grant", json={"tier": tier}).status_code, wanted))
    assert said == [200] * 8
    assert ann.get("/v1/me/clinic").json()["mine"]["waiting"] in {"strict", "standard"}
    assert service.ledger.people("clinic").epoch().lowered == 1
    service.ledger.verify("clinic")


def test_a_release_that_was_priced_before_somebody_left_is_not_charged_to_them(service, client_as, clinic):
    from sfumato.errors import SfumatoError
    from sfumato.privacy.charge import Charge

    life = service.ledger.people("clinic")
    standing = life.standing()
    client_as("person", "ann").post("/v1/me/clinic/withdraw", json={"confirm": "clinic"})
    with pytest.raises(SfumatoError):
        service.ledger.reserve("clinic", Charge.of_people([10**6, 10**6]), request="late", standing=standing)
    assert service.ledger.people("clinic").receipt("ann").spent == 0


def test_what_is_no_grant_is_refused(client_as, clinic):
    ann = client_as("person", "ann")
    odd = [{}, {"tier": "open", "epsilon": "1"}, {"tier": "0.3"}, {"tier": "no"}, {"tier": "open", "person": "ben"}]
    odd += [{"epsilon": epsilon} for epsilon in ("-1", "nan", "0", 0.5, "1e999999999", "0,5", "x" * 41)]
    assert [ann.put("/v1/me/clinic/grant", json=sent).status_code for sent in odd] == [422] * len(odd)
    assert ann.get("/v1/me/clinic").json()["mine"]["waiting"] is None


def test_a_tier_that_looks_like_an_amount_is_not_taken_for_one(service, client_as):
    dataset = make_dataset(service, client_as("custodian").caller, "odd", tiers={"0.5": (2, 0), "low": ("0.1", 0)})
    ann = client_as("person", "ann")
    linked(service, ann.caller, dataset, "ann")
    ann.put("/v1/me/odd/grant", json={"epsilon": "0.5"})
    service.ledger.people("odd").epoch()
    assert ann.get("/v1/me/odd").json()["mine"]["grant"] == "0.5"


def test_nobody_changes_their_mind_without_end_but_anybody_may_leave(client_as, clinic, monkeypatch):
    monkeypatch.setattr(choosing, "MOST_A_DAY", 3)
    ann = client_as("person", "ann")
    said = [ann.put("/v1/me/clinic/grant", json={"tier": tier}).status_code for tier in ("strict", "standard") * 2]
    assert said == [200, 200, 200, 429]
    assert ann.post("/v1/me/clinic/withdraw", json={"confirm": "clinic"}).status_code == 200


def test_how_a_release_ended_is_told_from_its_slot_on(service, client_as, clinic):
    ann = client_as("person", "ann")
    job = {"id": "job_1", "dataset_id": clinic, "account_id": ann.caller.id, "request": "{}", "state": "finished"}
    with service.store.write() as connection:
        connection.execute(
            insert(schema.jobs).values(**job, created_at=now() - 90, taken_at=now() - 61, deliver_at=now() + 500, attempts=1)
        )
    spend(service, by=asked_by("ana", "job_1"))
    (line,) = ann.get("/v1/me/clinic/receipt").json()["items"]
    assert line["state"] == "reserved"
    assert line["by"] == "ana"
    assert line["charged"] == "0.1"
    assert "its end is not told yet" in ann.get("/v1/me/clinic/receipt?format=html").text
    with service.store.write() as connection:
        connection.execute(update(schema.jobs).values(deliver_at=now() - 1))
    (line,) = ann.get("/v1/me/clinic/receipt").json()["items"]
    assert line["state"] == "committed"


def test_a_receipt_in_pages_and_as_a_page(service, client_as, clinic):
    numbers = [spend(service) for _ in range(5)]
    ann = client_as("person", "ann")
    seen, older = [], ""
    while older is not None:
        page = ann.get(f"/v1/me/clinic/receipt?limit=2{older and '&before=' + older}").json()
        seen += [line["release"] for line in page["items"]]
        older = page["older"]
    assert seen == numbers[::-1]
    page = ann.get("/v1/me/clinic/receipt", headers={"Accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    assert "How your record was used" in page.text
    assert "script" not in page.text
    assert "style-src" in page.headers["content-security-policy"]
    for before in ("x", "WyJhIl0", "WzBd", "WzEsMl0"):
        assert ann.get(f"/v1/me/clinic/receipt?before={before}").status_code == 422


def test_a_fixed_roster_has_nothing_to_choose(service, client_as):
    tiers = {"low": ("0.1", 5), "high": (1, 5)}
    dataset = make_dataset(service, client_as("custodian").caller, "survey", living=False, tiers=tiers)
    ann = client_as("person", "ann")
    linked(service, ann.caller, dataset, "ann")
    assert ann.get("/v1/me/survey").json()["roster"] == "fixed"
    assert ann.put("/v1/me/survey/grant", json={"tier": "low"}).status_code == 409
    assert ann.get("/v1/me/survey/receipt").status_code == 409


def test_my_datasets_in_pages(service, client_as):
    custodian, ann = client_as("custodian"), client_as("person", "ann")
    for name in ("one", "two", "three"):
        linked(service, ann.caller, make_dataset(service, custodian.caller, name), "ann")
    first = ann.get("/v1/me?limit=2").json()
    second = ann.get(f"/v1/me?limit=2&before={first['older']}").json()
    assert [p["dataset"] for p in first["items"] + second["items"]] == ["two", "three", "one"]
    assert second["older"] is None
