"""The record for an assessment: everything that was decided and charged, nothing that was counted."""

from __future__ import annotations

import json

import pytest

from sfumato.privacy.charge import Charge
from sfumato.service.context import Service
from sfumato.service.planning.record_page import plain
from support.planning import REASON, RELEASES, decision, planning_service, submitted

FIGURE = "31415926"


@pytest.fixture
def service(tmp_path) -> Service:
    return planning_service(tmp_path)


@pytest.fixture
def recorded(client_as, service):
    custodian, officer = client_as("custodian"), client_as("officer")
    for name, what in (("first | plan", "approved"), ("second", "refused")):
        plan = submitted(custodian, name=name)
        made = officer.post(f"/v1/approvals/{plan['id']}", json=decision(plan, what))
        assert made.status_code == 200, made.text
    submitted(custodian, name="waits", releases=RELEASES[:1])
    service.ledger.allow("clinic", analyst="ana", purpose="care research", epsilon="0.1", by="officer")
    entry = service.ledger.reserve("clinic", Charge.of("0.005"), request={"kind": "count"}, name="over65", by="custodian")
    service.ledger.commit(entry.id, {"result": {"value": FIGURE}})
    return officer


def test_the_record_has_what_was_decided_and_charged(recorded, client_as):
    whole = recorded.get("/v1/datasets/clinic/record")
    assert whole.status_code == 200, whole.text
    found = whole.json()
    plans = {p["name"]: p for p in found["plans"]}
    states = {name: p["state"] for name, p in plans.items()}
    assert states == {"first | plan": "approved", "second": "refused", "waits": "submitted"}
    first = plans["first | plan"]
    assert (first["price"], first["decision"]["reason"], first["decision"]["officer"]) == ("0.75", REASON, "officer")
    assert first["guarantee"].startswith("Whoever sees all of these releases")
    assert [r["price"]["epsilon"] for r in first["releases"]] == ["0.5", "0.25"]
    assert plans["waits"]["decision"] is None
    assert found["purposes"] == ["care research"]
    assert [(a["analyst"], a["cap"]) for a in found["allowances"]] == [("ana", "0.1")]
    assert [(e["name"], e["total"], e["state"]) for e in found["entries"]] == [("over65", "0.005", "committed")]
    assert found["spent"]["total"]["spent"] == "0.005"
    assert found["dataset"]["source"] == "patients"
    assert "nowhere" not in whole.text
    assert FIGURE not in whole.text
    for role in ("custodian", "analyst", "administrator", "person"):
        assert client_as(role).get("/v1/datasets/clinic/record").status_code == 403
    assert recorded.get("/v1/datasets/none/record").status_code == 404


def test_the_record_as_a_page(recorded):
    by_format = recorded.get("/v1/datasets/clinic/record", params={"format": "markdown"})
    by_header = recorded.get("/v1/datasets/clinic/record", headers={"Accept": "text/markdown"})
    assert by_format.headers["content-type"].startswith("text/markdown")
    assert by_format.text.splitlines()[4:] == by_header.text.splitlines()[4:]
    assert "### first \\| plan" in by_format.text
    assert plain(REASON) in by_format.text
    assert "| ana | care research | 0.1 | 0 |" in by_format.text
    assert FIGURE not in by_format.text
    assert recorded.get("/v1/datasets/clinic/record", params={"format": "pdf"}).status_code == 422


def test_an_end_that_is_not_told_yet_is_not_in_the_record(recorded, service, monkeypatch):
    """Whoever exports the record before a job's slot learns nothing of how it ended."""
    assert recorded.get("/v1/datasets/clinic/record").json()["checkpoint"]["size"] > 4
    monkeypatch.setattr("sfumato.service.planning.record.untold", lambda _, entries, __: {e.id for e in entries})
    found = recorded.get("/v1/datasets/clinic/record").json()
    (entry,) = found["entries"]
    assert (entry["state"], entry["finished_at"], found["checkpoint"]) == ("reserved", None, None)


@pytest.mark.parametrize("text", ["# a\n# b", "[x](http://y)", "<script>", "a | b", "`c`", "![i](j)"])
def test_no_text_of_a_person_is_markdown(text):
    shown = plain(text)
    assert "\n" not in shown
    for sign in "#[]()<>|`!":
        assert shown.count(sign) == shown.count("\\" + sign), json.dumps(shown)
