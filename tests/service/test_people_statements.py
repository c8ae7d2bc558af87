"""A signed statement: what it says, and that nothing in it can be changed."""

import copy
import json

import pytest

from sfumato.errors import InputError
from sfumato.ledger.signing import signed_json
from sfumato.releases.statements import verify_statement
from sfumato.service.people import telling
from support.service_people import linked, make_dataset, spend


@pytest.fixture
def ann(service, client_as):
    dataset = make_dataset(service, client_as("custodian").caller)
    life = service.ledger.people("clinic")
    life.join("ann", "open")
    life.epoch()
    spend(service, name="elderly", recipient="ministry")
    spend(service, name="stays")
    ann = client_as("person", "ann")
    linked(service, ann.caller, dataset, "ann")
    ann.put("/v1/me/clinic/grant", json={"tier": "standard"})
    return ann


def holds(body, keys):
    return all(check.holds for check in verify_statement(body, keys))


def failing(body, keys):
    return {check.what for check in verify_statement(body, keys) if not check.holds}


def flips(body, path=()):
    """Every statement that differs from `body` in one value, or in one entry more or less."""
    if isinstance(body, dict):
        for key, value in body.items():
            for changed in flips(value, (*path, key)):
                yield {**body, key: changed}
            yield {other: kept for other, kept in body.items() if other != key}
        yield {**body, "more": 1}
    elif isinstance(body, list):
        for place, value in enumerate(body):
            for changed in flips(value, (*path, place)):
                yield [*body[:place], changed, *body[place + 1 :]]
            yield body[:place] + body[place + 1 :]
        yield [*body, copy.deepcopy(body[-1])] if body else [None]
    elif isinstance(body, bool):
        yield not body
    elif isinstance(body, int):
        yield body + 1
    elif isinstance(body, str):
        yield body + "0"
        if body:
            yield body[:-1]
    else:
        yield "something"


def test_what_a_statement_says(service, ann):
    answer = ann.get("/v1/me/clinic/statement")
    assert answer.headers["content-disposition"].startswith("attachment")
    body, keys = answer.json(), service.keys.public()
    assert holds(body, keys)
    assert (body["person"], body["grant"], body["waiting"], body["spent"]) == ("ann", "1", "standard", "0.19")
    assert [(line["name"], line["charged"]) for line in body["lines"]] == [("elderly", "0.1"), ("stays", "0.09")]
    assert body["checkpoint"]["size"] == service.ledger.checkpoint("clinic").size
    assert len(body["at"]) == len("2026-11-16T14:00Z")
    page = ann.get("/v1/me/clinic/statement?format=html").text
    assert body["checkpoint"]["root"] in page
    assert "Signed" in page
    assert (
        ann.get("/v1/me/clinic/statement", headers={"Accept": "text/html"}).headers["content-type"].startswith("text/html")
    )


def test_every_flip_is_found(service, ann):
    body, keys = ann.get("/v1/me/clinic/statement").json(), service.keys.public()
    found = 0
    for changed in flips(body):
        if changed.get("kind") != body["kind"] or changed.get("version") != body["version"]:
            with pytest.raises(InputError):
                verify_statement(changed, keys)
        else:
            assert "signature" in failing(changed, keys)
        found += 1
    assert found > 100


def test_other_keys_do_not_verify_it_and_older_keys_do(service, ann, tmp_path):
    from sfumato.ledger.signing import Keys

    body = ann.get("/v1/me/clinic/statement").json()
    assert "signature" in failing(body, Keys.opened(tmp_path / "others").public())
    service.keys.rotate()
    assert holds(body, service.keys.public())
    assert holds(ann.get("/v1/me/clinic/statement").json(), service.keys.public())


def test_whoever_signs_must_still_add_up(service, ann):
    """With the key, but not with the arithmetic: what a service that lies about one line would have to send."""
    body, keys = ann.get("/v1/me/clinic/statement").json(), service.keys.public()

    def lying(**changes):
        return signed_json(service.keys, copy.deepcopy(body) | changes)

    lines = copy.deepcopy(body["lines"])
    assert failing(lying(lines=lines[:1]), keys) == {"sum"}
    assert failing(lying(spent="0.1"), keys) == {"sum"}
    lines[1]["grant"] = "0.15"
    assert failing(lying(lines=lines), keys) == {"grants"}
    assert failing(lying(lines=body["lines"][::-1]), keys) == {"order"}
    other = dict(body["checkpoint"], dataset="another")
    assert {"form", "checkpoint"} <= failing(lying(checkpoint=other), keys)
    assert failing(lying(left="5"), keys) == {"sum"}
    for odd in (None, [], "x", {"kind": "another"}):
        with pytest.raises(InputError):
            verify_statement(odd, keys)
    for part in ("lines", "checkpoint", "spent", "at"):
        for odd in (None, 7, [7], {"a": []}, "nan"):
            assert failing(lying(**{part: odd}), keys), (part, odd)


def test_many_lines_are_listed_up_to_a_limit_and_summed_before_it(service, ann, monkeypatch):
    monkeypatch.setattr(telling, "_AT_ONCE", 2)
    for _ in range(5):
        spend(service, share=100)
    keys = service.keys.public()
    body = ann.get("/v1/me/clinic/statement").json()
    assert len(body["lines"]) == 7
    assert body["earlier"] == "0"
    monkeypatch.setattr(telling, "MOST_LINES", 3)
    short = ann.get("/v1/me/clinic/statement").json()
    assert len(short["lines"]) == 4
    assert short["spent"] == body["spent"]
    assert holds(body, keys)
    assert holds(short, keys)
    assert json.loads(json.dumps(short)) == short


def test_the_checkpoint_is_part_of_every_later_one(service, ann):
    kept = ann.get("/v1/me/clinic/statement").json()["checkpoint"]
    spend(service, share=100)
    proof = service.ledger.consistency("clinic", kept["size"])
    assert proof.holds
    assert proof.old.root == kept["root"]


def test_the_command_checks_a_statement_offline(service, ann, tmp_path):
    from typer.testing import CliRunner

    from sfumato.cli import app

    kept, keys, run = tmp_path / "statement.json", tmp_path / "keys.json", CliRunner()
    body = ann.get("/v1/me/clinic/statement").json()
    kept.write_text(json.dumps(body))
    keys.write_text(json.dumps(service.keys.public()))
    said = run.invoke(app, ["verify", str(kept), "--keys", str(keys)])
    assert (said.exit_code, "everything agrees" in said.output) == (0, True)
    assert run.invoke(app, ["verify", str(kept)]).exit_code != 0  # without keys anybody could have written it
    kept.write_text(json.dumps(body | {"spent": "0.1"}))
    said = run.invoke(app, ["verify", str(kept), "--keys", str(keys)])
    assert (said.exit_code, "not what the service stated" in said.output) == (1, True)
    kept.write_text("{")
    assert run.invoke(app, ["verify", str(kept), "--keys", str(keys)]).exit_code != 0
