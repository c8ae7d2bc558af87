"""The price of a wanted error, and error against price: from previews alone, exact, refused where nothing reaches it."""

import json
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import sfumato as sf
from golden.figures import SCHEMA, patients
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.offers import Request
from sfumato.privacy import Seeded
from sfumato.releases.wanted import needed
from sfumato.tables.engines import Engine
from support import clinic

PATIENTS = patients(300)
NANO = Decimal("1e-9")


def plain():
    return sf.open(PATIENTS, schema=SCHEMA, epsilon=1, rows=3000, noise=Seeded(1))


def personal():
    roster = sf.Roster.tiers({"open": 2.0}, column="consent", counts={"open": 1000})  # one tier: quick to price
    return sf.open(PATIENTS, schema=SCHEMA, budgets=roster, noise=Seeded(1))


ASKED = {
    "count": {"where": "age >= 40"},
    "sum": {"column": "visits"},
    "mean": {"column": "age"},
    "histogram": {"columns": ["age"], "mechanism": "identity"},
    "table": {"columns": ["age", "job"]},
    "top": {"column": "age", "k": 3},
}


@pytest.fixture(autouse=True)
def nothing_is_read(monkeypatch):
    """No preview opens the table."""

    def refuse(self, expr):
        raise AssertionError("a preview read the table")

    monkeypatch.setattr(Engine, "fetch", refuse)


@pytest.mark.parametrize("kind", ASKED)
def test_the_price_reaches_the_error_and_a_nano_less_does_not(kind):
    table, asked = plain(), ASKED[kind]
    wanted = 0.5 if kind == "mean" else 20
    found = table.epsilon_for(kind, error=wanted, **asked)
    assert found.share is None
    assert table.preview(kind, **asked, **found.price)[0].expected_rmse <= wanted
    assert found.error == pytest.approx(wanted, rel=1e-3)
    less = table.preview(kind, **asked, epsilon=found.epsilon - NANO)
    assert less.priced.chosen.expected_rmse > wanted
    assert table.preview(kind, **asked, **found.price).priced.chosen.mechanism == found.mechanism


def test_where_people_have_budgets_of_their_own_it_is_their_share():
    table = personal()
    asked = {"columns": ["age"], "mechanism": "affine"}
    found = table.epsilon_for("histogram", error=30, **asked)
    assert found.epsilon is None
    assert isinstance(found.share, Fraction)
    assert table.preview("histogram", **asked, **found.price).priced.chosen.expected_rmse <= 30
    less = found.share - Fraction(1, 10**9)
    assert table.preview("histogram", **asked, share=less).priced.chosen.expected_rmse > 30


def stub(error, **more):
    """A preview whose error is a function of ε."""

    def pricing(request):
        found = {"expected_rmse": error(float(request.epsilon)), "errors": None, "bias_bound": 0.0, "mechanism": "x"}
        return SimpleNamespace(chosen=SimpleNamespace(**{**found, **more}))

    return pricing


def test_an_error_that_does_not_fall_evenly_is_still_reached():
    request = Request("r", "count")
    steps = needed(request, stub(lambda e: 10 // e), error=3, unit="epsilon")  # falls in steps
    assert 10 // float(steps.epsilon) <= 3
    assert 10 // float(steps.epsilon - NANO) > 3
    bump = needed(request, stub(lambda e: 1 / e + (50 if 1 < e < 3 else 0)), error=2, unit="epsilon")
    assert bump.epsilon == Decimal("0.5")
    with pytest.raises(InputError, match="5 is possible bias or rounding, which no price takes away"):
        needed(request, stub(lambda e: 5 + 1 / e, bias_bound=5.0), error=4, unit="epsilon")


def test_one_price_for_all_can_be_asked_where_budgets_differ():
    table = personal()
    assert table.epsilon_for("count", error=30, unit="epsilon").epsilon > 0


def test_relative_to_a_public_guess_and_as_an_interval():
    table = plain()
    exact = table.epsilon_for("count", error=30)
    assert table.epsilon_for("count", relative_error=0.01).epsilon == exact.epsilon
    assert table.epsilon_for("count", relative_error=0.03, size=1000).epsilon == exact.epsilon
    assert table.epsilon_for("count", relative_error=0.1, selectivity=0.1, where="age >= 70").wanted == 30
    wide = table.epsilon_for("count", error=30, confidence=0.95)
    assert float(wide.epsilon) == pytest.approx(2.996 / 30, rel=0.01)  # the half-width of Laplace noise is ln 20 scales


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"kind": "count", "error": 1e-6}, "no epsilon reaches an error of 1e-06"),
        ({"kind": "count", "error": 0}, "a number above 0"),
        ({"kind": "count", "error": float("nan")}, "a number above 0"),
        ({"kind": "count", "error": True}, "a number above 0"),
        ({"kind": "count"}, "say either the wanted error"),
        ({"kind": "count", "error": 3, "relative_error": 0.1}, "say either the wanted error"),
        ({"kind": "count", "relative_error": 5}, "lies between 0 and 1"),
        ({"kind": "count", "relative_error": 0.1, "where": "age >= 40"}, "needs `size`"),
        ({"kind": "count", "relative_error": 0.1, "size": 0}, "other than 0"),
        ({"kind": "count", "error": 3, "confidence": 95}, "confidence must lie between"),
        ({"kind": "count", "error": 3, "unit": "share"}, "no personal budgets"),
        ({"kind": "count", "error": 3, "where": "aeg >= 40"}, "did you mean 'age'"),
        ({"kind": "cuont", "error": 3}, "did you mean 'count'"),
        ({"kind": "count", "error": 3, "epsilon": 0.5}, "leave `epsilon` out"),
        ({"kind": "histogram", "error": 3, "columns": ["age"], "mechanism": "dpa"}, "decided by the data"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_sentence(asked, match):
    with pytest.raises(InputError, match=match):
        plain().epsilon_for(**asked)


def test_no_share_reaches_less_than_the_whole_budget_gives():
    with pytest.raises(InputError, match=r"no share reaches an error of 0\.1.*everyone's whole budget the least is"):
        personal().epsilon_for("histogram", error=0.1, columns=["age"], mechanism="affine")


# --- error against price -------------------------------------------------------------------------------------------------


def test_a_chart_is_what_previews_say():
    table = plain()
    drawn = table.preview("table", columns=["age", "job"], epsilon=0.5).chart()
    assert set(drawn.errors) == {"margins", "cells"}
    assert drawn.asked == 0.5
    assert drawn.at[0] == pytest.approx(0.05)
    assert drawn.at[-1] == pytest.approx(5)
    for name, line in drawn.errors.items():
        again = {o.mechanism: o.expected_rmse for o in table.preview("table", columns=["age", "job"], epsilon=drawn.at[3])}
        assert line[3] == again[name]
        assert all(a > b for a, b in pairwise(line))
    shares = personal().preview("histogram", columns=["age"], share=0.2).chart()
    assert shares.unit == "share"
    assert shares.at[-1] == 1
    assert json.loads(json.dumps(drawn.to_dict()))["errors"]["cells"] == list(drawn.errors["cells"])


def test_a_chart_in_the_terminal_has_a_line_and_a_letter_for_each_mechanism():
    rows = plain().preview("table", columns=["age", "job"], epsilon=0.5).chart().lines(40, 10)
    text = ["".join(part for part, _ in row) for row in rows]
    assert text[-2:] == [" " * 11 + "A margins", " " * 11 + "B cells"]
    body = "".join(text[:10])
    assert "A" in body
    assert "B" in body
    assert sum("⠀" < sign <= "⣿" for sign in body) > 40
    assert {number for row in rows for _, number in row} == {None, 0, 1}


def test_mechanisms_whose_error_the_data_decides_are_not_drawn():
    drawn = plain().preview("histogram", columns=["age"], epsilon=0.5).chart()
    assert drawn.errors["dpa"] == (None,) * len(drawn.at)
    assert "dpa" not in drawn.shown
    labels = [t.get_text() for t in drawn.plot().get_legend().get_texts()]
    assert "identity" in labels
    assert "dpa" not in labels


# --- the command line ----------------------------------------------------------------------------------------------------

run = CliRunner().invoke


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return clinic.make(tmp_path_factory.mktemp("wanted"), clinic.UNIFORM)


def test_preview_tells_the_price_of_an_error(plan):
    told = run(app, ["preview", str(plan), "--error", "20"])
    assert told.exit_code == 0, told.output
    assert "ε 0.070710679 gives an expected error of 20 by laplace" in " ".join(told.output.split())
    found = json.loads(run(app, ["preview", str(plan), "--error", "20", "--only", "over65", "--json"]).output)
    assert [r["name"] for r in found["releases"]] == ["over65"]
    assert found["releases"][0]["needed"]["epsilon"] == "0.070710679"
    relative = run(app, ["preview", str(plan), "--relative", "2%", "--size", "1000", "--only", "over65", "--json"])
    assert json.loads(relative.output)["releases"][0]["needed"]["epsilon"] == "0.070710679"
    hopeless = run(app, ["preview", str(plan), "--error", "1e-9", "--only", "over65", "--json"])
    assert hopeless.exit_code == 2
    assert "no epsilon reaches" in json.loads(hopeless.output)["releases"][0]["needed"]["why_not"]


def test_preview_draws_error_against_price(plan, tmp_path):
    told = run(app, ["preview", str(plan), "--chart"])
    assert told.exit_code == 0, told.output
    assert "A laplace" in told.output
    assert "logarithmic" in told.output
    series = json.loads(run(app, ["preview", str(plan), "--chart", "--json"]).output)
    assert len(series["releases"][1]["curves"]["errors"]["identity"]) == len(series["releases"][1]["curves"]["epsilon"])
    drawn = run(app, ["preview", str(plan), "--chart", str(tmp_path / "chart.png")])
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--error", "-3"], "a number above 0"),
        (["--relative", "often"], "a share such as 5%"),
        (["--relative", "5%", "--only", "wards"], "needs `size`"),
        (["--error", "3", "--relative", "5%"], "say either"),
        (["--error", "3", "--only", "nobody"], "no release 'nobody'"),
        (["--chart", "chart.pdf"], "ends in .png"),
    ],
)
def test_wrong_wishes_are_refused(plan, words, match):
    told = run(app, ["preview", str(plan), *words])
    assert told.exit_code != 0 or match in told.output
    assert match in told.output + str(told.exception or "")
