"""What nobody else sees: other people's places, who is in a private roster, who anybody is."""

import unicodedata

import pytest

from sfumato.service.http.problems import ProblemError
from sfumato.service.people.linking import subject_of
from support.service_people import linked, make_dataset, spend

ODD = [
    "O'Brien'; DROP TABLE service_subjects; --",
    'x" OR ""="',
    "Zoe\u0301 \u202eevil",
    "７",
    "a\tb",
    "%s%n",
    "{{7*7}}",
    "𝔭",
]
CALLS = [
    ("GET", "/v1/me/{}", None),
    ("GET", "/v1/me/{}/receipt", None),
    ("GET", "/v1/me/{}/receipt?format=html", None),
    ("PUT", "/v1/me/{}/grant", {"tier": "open"}),
    ("POST", "/v1/me/{}/withdraw", {"confirm": "clinic"}),
    ("PUT", "/v1/me/{}/policy", {"recipients": {}}),
    ("GET", "/v1/me/{}/policy", None),
    ("GET", "/v1/me/{}/policy/versions", None),
    ("GET", "/v1/me/{}/statement", None),
]


def test_anothers_dataset_and_a_missing_one_look_the_same(service, client_as):
    dataset = make_dataset(service, client_as("custodian").caller)
    linked(service, client_as("person", "ann").caller, dataset, "ann")
    stranger = client_as("person", "eve")
    assert stranger.get("/v1/me").json() == {"items": [], "older": None}
    for method, path, body in CALLS:
        own = client_as("person", "ann").request(method, path.format("clinic"), json=body)
        theirs, none = (stranger.request(method, path.format(name), json=body) for name in ("clinic", "nowhere"))
        assert own.content != theirs.content, path
        assert (theirs.status_code, theirs.content) == (404, none.content), path
    assert not service.ledger.people("clinic").knows("eve")


def test_only_a_person_has_a_place(service, client_as):
    make_dataset(service, client_as("custodian").caller)
    for role in ("custodian", "officer", "analyst", "administrator"):
        client = client_as(role)
        assert {client.request(m, path.format("clinic"), json=body).status_code for m, path, body in CALLS} == {403}
        assert client.get("/v1/me").status_code == 403
    assert client_as(None).get("/v1/me").status_code == 401
    for role in ("person", "analyst", "administrator"):
        assert client_as(role).get("/v1/datasets/clinic/people").status_code == 403
        assert client_as(role).post("/v1/datasets/clinic/people", json={"people": []}).status_code == 403


def test_two_accounts_are_not_one_person_nor_one_account_two(service, client_as):
    dataset = make_dataset(service, client_as("custodian").caller)
    ann, eve = client_as("person", "ann"), client_as("person", "eve")
    for spelling in ("Zo\u00e9", "Zoe\u0301", "Zo\u00e9"):  # one person, however it is typed; twice is as good as once
        linked(service, ann.caller, dataset, spelling)
    for account, person in ((eve, "Zoe\u0301"), (ann, "somebody else")):
        with pytest.raises(ProblemError) as refused:
            linked(service, account.caller, dataset, person)
        assert refused.value.status == 409
    linked(service, eve.caller, dataset, "Zoe")
    other = make_dataset(service, client_as("custodian").caller, "registry")
    linked(service, eve.caller, other, "Zo\u00e9")  # in another dataset she may be called so
    with service.store.read() as connection:
        assert subject_of(connection, service, ann.caller.id, "clinic").person == "Zo\u00e9"


def test_the_place_of_a_disabled_account_can_be_taken_over(service, client_as):
    from sqlalchemy import update

    from sfumato.service.store import schema

    dataset = make_dataset(service, client_as("custodian").caller)
    lost, new = client_as("person", "lost"), client_as("person", "new")
    linked(service, lost.caller, dataset, "ann")
    with service.store.write() as connection:
        accounts = schema.accounts
        connection.execute(update(accounts).where(accounts.c.id == lost.caller.id).values(state="disabled"))
    linked(service, new.caller, dataset, "ann")
    assert new.get("/v1/me/clinic").status_code == 200
    assert lost.get("/v1/me/clinic").status_code == 404


def test_odd_identifiers_are_people_like_others(service, client_as):
    custodian = client_as("custodian")
    dataset = make_dataset(service, custodian.caller)
    people = [{"person": person, "grant": "open"} for person in ODD]
    assert custodian.post("/v1/datasets/clinic/people", json={"people": people}).json()["asked"]["join"] == len(ODD)
    custodian.post("/v1/datasets/clinic/epochs", json={})
    spend(service)
    for number, person in enumerate(ODD):
        client = client_as("person", f"account {number}")
        linked(service, client.caller, dataset, person)
        assert client.get("/v1/me/clinic").json()["mine"]["spent"] == "0.1"
        page = client.get("/v1/me/clinic/receipt?format=html").text
        assert unicodedata.normalize("NFC", person).split("'")[0].split('"')[0] in page
        assert "DROP TABLE service_subjects; --</" in page or "DROP" not in page


def test_who_anybody_is_cannot_be_read_from_the_databases(service, client_as, tmp_path):
    custodian = client_as("custodian")
    dataset = make_dataset(service, custodian.caller)
    person = "patient-number-4711-of-ward-x"
    custodian.post("/v1/datasets/clinic/people", json={"people": [{"person": person, "grant": "open"}]})
    ann = client_as("person", "ann")
    linked(service, ann.caller, dataset, person)
    ann.put("/v1/me/clinic/grant", json={"tier": "strict"})
    custodian.post("/v1/datasets/clinic/epochs", json={})
    ann.get("/v1/me/clinic/receipt")
    files = [path for path in service.settings.state.rglob("*") if path.is_file()]
    assert any(path.name.startswith("service.db") for path in files)
    for path in files:
        raw = path.read_bytes()
        assert person.encode() not in raw, path.name
        assert b"patient-number" not in raw, path.name


def private_clinic(service, client_as):
    custodian = client_as("custodian")
    return custodian, make_dataset(service, custodian.caller, private=True)


def test_of_a_private_roster_nobody_else_learns_a_number(service, client_as):
    custodian, dataset = private_clinic(service, client_as)

    def seen(pairs):
        brought = custodian.post("/v1/datasets/clinic/people", json={"people": pairs})
        looked = [client_as(role).get("/v1/datasets/clinic/people") for role in ("custodian", "officer")]
        logged = [client_as(role).get("/v1/log/clinic/entries") for role in ("custodian", "officer")]
        assert all(answer.status_code == 200 for answer in logged)  # hashes included: nothing is written at all
        return [answer.content for answer in (brought, *looked, *logged)]

    nobody = seen([{"person": "ann", "grant": "open"}])
    again = seen([{"person": "ann", "grant": "strict"}])  # whom it knows, and who was in another tier
    assert nobody == again
    first = custodian.post("/v1/datasets/clinic/epochs", json={}).json()
    assert first["counts"] is None
    in_force = seen([{"person": "ben", "grant": "open"}])
    assert [b"epoch" in answer for answer in in_force] == [False, True, True, True, True]
    ann = client_as("person", "ann")
    linked(service, ann.caller, dataset, "ann")
    ann.post("/v1/me/clinic/withdraw", json={"confirm": "clinic"})
    assert seen([{"person": "ann", "grant": "open"}]) == in_force  # nor whether somebody chose for themselves
    custodian.post("/v1/datasets/clinic/epochs", json={})
    assert service.ledger.people("clinic").receipt("ann").withdrawn
    shown = custodian.get("/v1/datasets/clinic/people").json()
    assert {row["people"] for row in shown["tiers"]} == {None}
    assert shown["pending"] is None


def test_linking_says_nothing_about_a_private_roster(service, client_as):
    custodian, dataset = private_clinic(service, client_as)
    custodian.post("/v1/datasets/clinic/people", json={"people": [{"person": "ann", "grant": "open"}]})
    custodian.post("/v1/datasets/clinic/epochs", json={})
    for person in ("ann", "nobody of the roster"):
        linked(service, client_as("person", person).caller, dataset, person)
    # Each of them sees about themselves, and only about themselves.
    assert client_as("person", "ann").get("/v1/me/clinic").json()["mine"]["tier"] == "open"
    assert client_as("person", "nobody of the roster").get("/v1/me/clinic").json()["mine"] is None
    # An amount of one's own would stand out.
    assert client_as("person", "ann").put("/v1/me/clinic/grant", json={"epsilon": "0.123"}).status_code == 422
    assert client_as("person", "ann").put("/v1/me/clinic/grant", json={"epsilon": "0.2"}).status_code == 200
