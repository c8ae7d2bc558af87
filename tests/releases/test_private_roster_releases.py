"""Releases from a private roster: head counts first, once; and nothing that anybody is told looks at the roster itself.

Two tables that differ in one person's tier, or in whether they have one, must look the same from outside after the same
noisy head counts: previews, prices, request texts, errors, findings, balances and reprs are compared as text, in Python and
through the command line.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InputError, SfumatoError
from sfumato.privacy import Seeded
from sfumato.releases import folder as folders
from sfumato.releases.batch import StoppedError, load, preview, release
from sfumato.testing import Tape
from sfumato.testing.still import still
from support.holding import holds_array, holds_exact

TIERS = {"strict": 0.2, "standard": 0.6, "open": 2.0}
SCHEMA = sf.Schema(
    {"age": sf.Numeric(0, 100, bins=5, integer=True), "ill": sf.Categorical(["no", "yes"])},
    unit=sf.PrivacyUnit(person="who", rows_per_person=2),
)
HEADS = np.array([211, 97, 43])
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(Z|\+00:00)?")
ASKED = [
    ("count", {"where": "age >= 50"}),
    ("sum", {"column": "age"}),
    ("mean", {"column": "age"}),
    ("histogram", {"columns": ["age"]}),
]


def people(change=None):
    """351 people with up to two rows each; the first 211 are strict. `change` is another tier for the first of them."""
    tiers = np.repeat([*TIERS], HEADS).tolist()
    if change is not None:
        tiers[0] = change
    rows = [(f"p{i}", (7 * i) % 101, "yes" if i % 5 else "no", tier) for i, tier in enumerate(tiers)]
    rows += [(who, 100 - age, ill, tier) for who, age, ill, tier in rows[::2]]
    return pd.DataFrame(rows, columns=["who", "age", "ill", "tier"])


def opened(frame, noise, ledger=":memory:", **roster):
    budgets = sf.Roster.tiers(TIERS, column="tier", private=True, **roster)
    return sf.open(frame, schema=SCHEMA, budgets=budgets, ledger=ledger, name="clinic", noise=noise, rows=500)


def said(act):
    try:
        return repr(act())
    except SfumatoError as error:
        return f"{type(error).__name__}: {error}"


def everything_told(frame, tape):
    """All that whoever opens this table gets to see, as one list of texts."""
    table = opened(frame, tape)
    told = [repr(table), table._repr_html_(), repr(table.budgets)]
    told += [said(lambda kind=kind, keys=keys: table.preview(kind, **keys)) for kind, keys in ASKED]
    told += [repr(table.head_counts().to_dict()), repr(table.budgets), said(lambda: table.dataset.findings())]
    for kind, keys in ASKED:
        told.append(said(lambda kind=kind, keys=keys: table.preview(kind, share="0.1", **keys)))
        told.append(repr(table.release(kind, share="0.1", **keys).to_dict()))
    told.append(repr(table.release("count", epsilon="0.01", where="age < 30").to_dict()))
    told.append(said(lambda: table.count(share=1)))  # refused: not so much is left
    told.append(said(lambda: table.count(epsilon=0.5)))
    told.append(said(lambda: table.count(share="0.1", mechanism="sampling")))
    told.append(said(lambda: table.count(share="0.1", where="nonsense > 3")))
    told.append(json.dumps(table.balance().to_dict(), default=str))
    told += [entry.request for entry in table.ledger.history("clinic")]
    return [MINUTE.sub("NOW", text) for text in told]


@pytest.mark.parametrize("change", ["open", "nonsense", None, ""])
def test_two_rosters_that_differ_in_one_person_look_the_same(change):
    tape = Tape(7)
    frame = people("") if change is None else people(change)
    if change is None:
        frame = frame[frame["who"] != "p0"]  # the person absent altogether
    with still():
        here = everything_told(people(), tape)
        there = everything_told(frame, tape.again())
    assert len(here) == len(there) > 20
    for one, other in zip(here, there, strict=True):
        assert one == other
    assert any("left for whoever is in tier" in text for text in here)
    assert not any("people in tier" in text for text in here)


def plan_in(folder: Path, frame: pd.DataFrame, *, counts: bool = False, releases: str = "") -> Path:
    folder.mkdir(parents=True)
    frame.to_parquet(folder / "clinic.parquet")
    (folder / "schema.toml").write_text(SCHEMA.to_toml())
    guess = "[people.counts]\nstrict = 200\nstandard = 100\nopen = 50\n" if counts else ""
    (folder / "plan.toml").write_text(
        f"""
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "schema.toml"
rows = 500
[people]
column = "tier"
roster = "private"
[people.tiers]
strict = 0.2
standard = 0.6
open = 2.0
{guess}
[ledger]
location = "clinic.ledger"
[output]
folder = "out"
"""
        + (
            releases
            or """
[[release]]
name = "old"
kind = "count"
where = "age >= 50"
share = 0.2
[[release]]
name = "age"
kind = "mean"
column = "age"
share = 0.2
"""
        )
    )
    return folder / "plan.toml"


def test_a_plan_counts_heads_first_and_once(tmp_path):
    plan = load(plan_in(tmp_path / "a", people()))
    before = preview(plan)
    assert [p.request.name for p in before] == ["head counts"]
    assert before[0].chosen.charge.people.tolist() == [10**7, 3 * 10**7, 10**8]
    assert "need them" in before[0].notes[0]
    steps = []
    made = release(plan, notice=lambda _: None, progress=lambda name, step: steps.append(name))
    assert [o.name for o in made] == ["head counts", "old", "age"]
    assert steps[0] == "head counts"
    ledger = sf.Ledger.open(plan.ledger)
    assert [r.name for r in ledger.history("clinic")] == ["head counts", "old", "age"]
    ledger.verify("clinic")
    counted = made[0].result.counts
    after = preview(plan)
    assert [p.request.name for p in after] == ["old", "age"]
    assert after[0].facts.granted.counts.tolist() == counted.tolist()
    assert after[0].facts.budgets.levels.tolist() == [38 * 10**6, 114 * 10**6, 380 * 10**6]  # a fifth of 95%
    assert all(p.foreseen.paid for p in after)
    again = release(plan, notice=lambda _: None)
    assert [o.repeated for o in again] == [True, True]
    assert len(ledger.history("clinic")) == 3


def test_nobody_is_charged_more_than_they_granted_by_a_whole_plan(tmp_path):
    whole = '[[release]]\nname = "a"\nkind = "count"\nmechanism = "stretching"\nshare = 1\n'
    plan = load(plan_in(tmp_path / "a", people(), releases=whole))
    release(plan, notice=lambda _: None)
    left = sf.Ledger.open(plan.ledger).balance("clinic").people.left
    assert (left >= 0).all()
    assert left.max() < 100  # nano-ε: rounding down is all that is left


def test_a_guess_is_marked_and_only_shown(tmp_path):
    plan = load(plan_in(tmp_path / "a", people(), counts=True))
    seen = preview(plan)
    assert [p.request.name for p in seen] == ["head counts", "old", "age"]
    assert any("public guess" in sentence for sentence in seen.findings)
    assert seen[1].facts.granted.counts.tolist() == [200, 100, 50]
    made = release(plan, notice=lambda _: None)
    assert made[1].result.people == made[0].result.counts.sum()


def test_one_epsilon_for_all_needs_no_head_counts(tmp_path):
    one = '[[release]]\nname = "a"\nkind = "count"\nepsilon = 0.1\n'
    plan = load(plan_in(tmp_path / "a", people(), releases=one))
    assert [o.name for o in release(plan, notice=lambda _: None)] == ["a"]
    table = opened(people(), Seeded(1))
    table.count(epsilon="0.1")
    assert [r.name for r in table.ledger.history("clinic")] == ["count"]
    assert table.budgets is None


def test_a_typo_does_not_cost_the_head_counts(tmp_path):
    table = opened(people(), Seeded(1))
    with pytest.raises(InputError):
        table.count(where="aeg > 3", share="0.1")
    assert table.ledger.history("clinic") == ()
    named = '[[release]]\nname = "head counts"\nkind = "count"\nshare = 0.1\n'
    with pytest.raises(InputError, match="another name"):
        preview(load(plan_in(tmp_path / "a", people(), releases=named)))


@pytest.mark.parametrize("only", [None, "age"])
@pytest.mark.parametrize("counts", [False, True])
def test_a_folder_that_is_taken_does_not_cost_the_head_counts(tmp_path, only, counts):
    plan = load(plan_in(tmp_path / "a", people(), counts=counts))
    (tmp_path / "a" / "out" / "age").mkdir(parents=True)
    with pytest.raises(InputError, match="already holds something else"):
        release(plan, only=only, notice=lambda _: None)
    assert not Path(plan.ledger).exists()


@pytest.mark.parametrize("broken", ["old", "age"])
def test_what_stops_after_the_head_counts_is_named(tmp_path, monkeypatch, broken):
    path = plan_in(tmp_path / "a", people())
    once = folders.write

    def write(folder, *made, **more):
        if folder.name == broken:
            raise OSError(28, "No space left on device")
        return once(folder, *made, **more)

    monkeypatch.setattr(folders, "write", write)
    with pytest.raises(StoppedError, match="No space left") as stopped:
        release(load(path), notice=lambda _: None)
    assert stopped.value.name == broken
    assert [o.name for o in stopped.value.outcomes] == (["head counts", "old"] if broken == "age" else ["head counts"])
    assert f"the plan stopped at release '{broken}'" in cli("release", plan_in(tmp_path / "b", people()))


def test_a_plan_that_cannot_be_paid_after_the_head_counts_names_the_release(tmp_path):
    much = (
        '[[release]]\nname = "all"\nkind = "count"\nshare = 1\n[[release]]\nname = "more"\nkind = "count"\nepsilon = 0.1\n'
    )
    plan = load(plan_in(tmp_path / "a", people(), releases=much))
    with pytest.raises(StoppedError, match="cannot be paid") as stopped:
        release(plan, notice=lambda _: None)
    assert stopped.value.name == "more"
    assert [o.name for o in stopped.value.outcomes] == ["head counts"]


def cli(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.output


@pytest.mark.parametrize("change", ["open", "nonsense"])
def test_the_command_line_tells_nothing_of_the_roster(tmp_path, change):
    here, there = plan_in(tmp_path / "a", people()), plan_in(tmp_path / "b", people(change))

    def both(*words):
        texts = []
        for path in (here, there):
            text = "".join(cli(*words, path).split())
            for folder in (here.parent, there.parent):  # a copied ledger names the folders of the first
                text = text.replace(str(folder), "FOLDER")
            texts.append(text)
        return texts

    one, other = both("preview")
    assert one == other
    assert "head" in one
    cli("release", here)
    shutil.copy(here.parent / "clinic.ledger", there.parent / "clinic.ledger")  # the same noisy counts
    for words in (["preview"], ["preview", "--json"], ["ledger", "--plan"], ["ledger", "--json", "--plan"]):
        one, other = both(*words)
        assert one == other


def test_no_exact_head_count_is_left_behind(tmp_path):
    exact = {"heads": HEADS, "rows": np.array([317, 145, 65])}
    plan = load(plan_in(tmp_path / "a", people()))
    made = release(plan, notice=lambda _: None)
    assert holds_array({"deep": [HEADS.tolist()]}, exact)  # the walk finds them where they are
    for outcome in made:
        assert holds_exact(outcome.result) == []
        assert holds_array(outcome.result, exact) == []
        for path in outcome.folder.iterdir():
            if path.suffix == ".json":
                assert holds_array(json.loads(path.read_text()), exact) == [], path.name
            if path.suffix == ".parquet":
                columns = {name: np.asarray(c) for name, c in pq.read_table(path).to_pydict().items()}
                assert holds_array(columns, exact) == [], path.name
    ledger = sf.Ledger.open(plan.ledger)
    assert ledger.caps("clinic").people.private
    assert ledger.caps("clinic").people.counts.tolist() == [0, 0, 0]
    for entry in ledger.history("clinic"):
        assert holds_array(entry.to_dict(), exact) == []
    table = opened(people(), Seeded(1))
    table.count(share="0.1")
    assert holds_array((table.facts, table.head_counts(), table.balance().to_dict()), exact) == []


def test_a_roster_that_was_registered_as_public_stays_so(tmp_path):
    place = tmp_path / "x.ledger"
    opened(people(), Seeded(1), ledger=place).head_counts()
    public = sf.Roster.tiers(TIERS, column="tier", counts=dict(zip(TIERS, HEADS.tolist(), strict=True)))
    with pytest.raises(SfumatoError, match="people differ"):
        sf.open(people(), schema=SCHEMA, budgets=public, ledger=place, name="clinic", noise=Seeded(1)).count(share="0.1")


def test_a_private_roster_table_is_read_by_no_check(tmp_path):
    """Persons that match nobody, duplicates and unknown tiers are findings of a public roster only."""
    listed = tmp_path / "roster.csv"
    listed.write_text("who,tier\nx,strict\nx,open\ny,unknown\n,open\n")
    frame = people().assign(who=lambda f: f["who"].str[1:].astype(int)).drop(columns="tier")
    roster = sf.Roster.table(listed, person="who", tier="tier", tiers=TIERS, private=True)
    table = sf.open(frame, schema=SCHEMA, budgets=roster, ledger=":memory:", noise=Seeded(1), rows=500)
    assert table.dataset.findings() == ()
    assert table.preview("count").findings == ()
    assert (table.head_counts().counts >= 1).all()
    assert table.count(share="0.5").people >= 3
