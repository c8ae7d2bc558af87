"""Releases on a roster that is private and living: nobody is told of anybody, and nobody loses more than they were charged.

A life of a dozen people is lived twice, once with a person and once without them, on the same noise: all that is told must
be the same, and what the noise hides must have moved by no more than that person's receipt says.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InputError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.privacy.charge import Charge
from sfumato.privacy.exact import Exact
from sfumato.releases.session import Table
from sfumato.tables import Numeric, PrivacyUnit, Roster, Schema
from sfumato.testing import Tape, compare, reveal

SCHEMA = Schema({"age": Numeric(0, 99, bins=5, integer=True)}, unit=PrivacyUnit(person="who", rows_per_person=2))
TIERS = {"strict": "0.2", "twin": "0.2", "open": 2}  # two tiers of one budget are two groups all the same
MENU = PersonBudgets.from_tiers({name: (epsilon, 0) for name, epsilon in TIERS.items()})
CHOSEN = ["strict", "open", "twin", "open"] * 3
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(Z|\+00:00)?")
HASH = re.compile(r"[0-9a-f]{64}")
SALTED = re.compile(r"""(seal|standing|root|leaf|artefact)[\\"']*: ?[\\"']*[0-9a-f]{64}|path[\\"']*: ?\[[^]]*\]""")


def plain(text: str) -> str:
    """Without minutes, and without the hashes that a random salt went into; how many there are stays."""
    return SALTED.sub(lambda found: HASH.sub("HASH", found[0]), MINUTE.sub("NOW", text))


def frame(without: str | None = None) -> pd.DataFrame:
    rows = [(f"p{i}", (17 * i + 40 * twice) % 100) for i in range(12) for twice in range(1 + i % 2)]
    return pd.DataFrame([row for row in rows if row[0] != without], columns=["who", "age"])


def clinic(folder: Path, noise: Any, without: str | None = None, **living: Any) -> Table:
    budgets = Roster.living(TIERS, private=True, **living)
    place = folder / "clinic.ledger"
    return sf.open(frame(without), schema=SCHEMA, budgets=budgets, name="clinic", ledger=place, rows=50, noise=noise)


def said(act: Any) -> str:
    try:
        return repr(act())
    except SfumatoError as error:
        return f"{type(error).__name__}: {error}"


def lived(folder: Path, tape: Tape, person: str, here: bool) -> tuple[list[str], list[int], Table]:
    """All that is told through a life of the table, with `person` or without; after which call each release was made."""
    folder.mkdir()
    table = clinic(folder, tape, None if here else person, period="year", per_period={"open": "1.2"})
    life = table.people
    told: list[str] = [said(lambda: table.preview("count", share="0.1")), said(lambda: table.head_counts())]
    ends: list[int] = []

    def tell(act: Any) -> None:
        told.append(said(act))
        told.append(f"{table.ledger.checkpoint('clinic').size} entries")
        made = len(table.ledger.history("clinic"))
        ends.extend([len(tape.calls)] * (made - len(ends)))

    def theirs(act: Any, *words: Any) -> None:
        if here:
            act(person, *words)

    names = [f"p{i}" for i in range(12)]
    some = [i for i in range(11) if here or names[i] != person]
    told.append(repr(life.bring([names[i] for i in some], [CHOSEN[i] for i in some])))
    told += [repr(life.pending()), repr(life.epoch()), repr(life.standing().__dict__)]
    told.append(said(lambda: table.preview("count", share="0.1")))
    tell(lambda: table.head_counts().to_dict())
    tell(lambda: table.count(share="0.3", where="age >= 40").to_dict())
    tell(lambda: table.count(share="0.3", where="age >= 40").to_dict())  # the same again
    theirs(life.join, "open")  # who is there changes their grant
    told.append(repr(life.epoch()))
    tell(lambda: table.mean("age", share="0.3").to_dict())
    theirs(life.change, "strict")  # perhaps below what was spent: binds at once
    told.append(said(lambda: table.preview("sum", column="age", share="0.2")))
    tell(lambda: table.sum("age", share="0.2").to_dict())
    tell(lambda: table.count(epsilon="0.15", where="age < 60").to_dict())
    theirs(life.withdraw)
    tell(lambda: table.histogram("age", share="0.1").to_dict())
    theirs(life.join, "twin")
    told += [repr(life.pending()), repr(life.bind()), repr(life.epoch())]
    theirs(life.withdraw)
    told += [repr(life.bind()), repr(life.bind())]  # something binds the first time, or nothing
    theirs(life.join, "twin")
    told.append(repr(life.epoch()))
    tell(lambda: table.head_counts(again=True).to_dict())
    tell(lambda: table.count(share="0.05").to_dict())
    tell(lambda: table.count(share=1).to_dict())  # nobody can pay, and nobody says so
    tell(lambda: table.count(share="0.05", where="nonsense > 3"))
    told += [repr(table), repr(table.budgets), said(lambda: table.dataset.findings())]
    told += [repr(release.__dict__) for release in table.ledger.history("clinic")]
    told += [json.dumps(table.balance().to_dict(), default=str), repr(life.standing().__dict__)]
    told += [f"{entry.index} {entry.kind} {entry.body}" for entry in table.ledger.log_page("clinic", limit=500)]
    table.ledger.verify("clinic")
    return [plain(text.replace(str(folder), "FOLDER")) for text in told], ends, table


@pytest.mark.parametrize("person", ["p0", "p1", "p2", "p11"])
def test_a_life_with_a_person_and_without_them_tells_the_same(tmp_path: Path, person: str) -> None:
    tape = Tape(7)
    here, ends, table = lived(tmp_path / "here", tape, person, here=True)
    again = tape.again()
    there, others, _ = lived(tmp_path / "there", again, person, here=False)
    assert len(here) == len(there) > 25
    for one, other in zip(here, there, strict=True):
        assert one == other
    assert ends == others
    assert not any("nobody can pay" in text or "take no part" in text for text in here)

    charged = Counter({line.release: line.charged for line in table.people.receipt(person).lines})
    pairs = compare(tape, again)
    lost = 0.0
    for release, (start, end) in enumerate(zip([0, *ends], ends, strict=False), start=1):
        loss = sum(pair.loss for pair in pairs[start:end])
        assert loss <= charged[release]  # nothing where they were not charged
        lost += loss
    assert lost > 0
    assert sum(charged.values()) <= {"p1": 12 * 10**8}.get(person, 2 * 10**9)


def test_heads_are_members_of_the_ledger_who_paid_for_being_counted(tmp_path: Path) -> None:
    tape = Tape(3)
    table = clinic(tmp_path, tape)
    table.people.bring([*(f"p{i}" for i in range(12)), "no rows"], [*CHOSEN, "open"])
    table.people.epoch()
    table.head_counts()
    weights = tape.calls[0].public["weights"]
    assert (np.asarray(tape.calls[0].exact) // weights).tolist() == [3, 3, 7]  # in the order of the menu
    table.people.withdraw("p1")
    table.people.join("late", "strict")
    table.head_counts(again=True)  # who joins waits for the epoch, who withdraws does not
    assert (np.asarray(tape.calls[1].exact) // weights).tolist() == [3, 3, 6]
    table.people.epoch()
    table.count(epsilon="0.185", name="most")  # the strict have 0.18 left and take no part, but for one who joined late
    table.head_counts(again=True)
    assert (np.asarray(tape.calls[-1].exact) // weights).tolist() == [4, 3, 6]
    table.count(epsilon="0.165", name="rest")
    table.head_counts(again=True)  # nobody of the tiers with 0.2 has 0.01 left to be counted for, the late one included
    assert (np.asarray(tape.calls[-1].exact) // weights).tolist() == [0, 0, 6]


def test_exact_heads_come_out_of_the_ledger_for_a_meter_only(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "clinic.ledger")
    ledger.register("clinic", people=MENU, living=True, private=True)
    life = ledger.people("clinic")
    life.bring(["a", "b", "c"], ["strict", "open", "open"])
    life.epoch()
    made = ledger.reserve("clinic", Charge.of_people([10**7, 10**7, 10**9]), request="one")
    after = ledger.reserve("clinic", Charge.of_people([10**7, 10**7, 2 * 10**9]), request="two")
    heads = life.heads_charged(made.id)
    assert isinstance(heads, Exact)
    assert "2" not in repr(heads)
    assert reveal(heads).tolist() == [1, 0, 2]
    assert reveal(life.heads_charged(after.id)).tolist() == [1, 0, 0]
    assert Meter().laplace(heads, rate=50 * 10**9).shape == (3,)
    public = Ledger.open(tmp_path / "public.ledger")
    public.register("clinic", people=MENU, living=True)
    with pytest.raises(InputError, match="are public"):
        public.people("clinic").heads_charged(1)


def test_the_history_does_not_say_whether_all_could_pay(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "clinic.ledger")
    ledger.register("clinic", people=MENU, living=True, private=True)
    ledger.people("clinic").join("a", "open")
    ledger.people("clinic").epoch()
    for request in ("one", "two"):  # the second finds nobody with anything left
        ledger.reserve("clinic", Charge.of_people(MENU.levels.tolist()), request=request)
    first, second = ledger.history("clinic")
    assert first.people == second.people == "by group, at most 2"


def test_who_has_too_little_left_weighs_nothing_and_who_can_pay_weighs_in_full(tmp_path: Path) -> None:
    table = clinic(tmp_path, Seeded(5))
    table.people.bring([f"p{i}" for i in range(12)], CHOSEN)
    table.people.epoch()
    table.count(share="0.9", name="most")
    receipts = {i: table.people.receipt(f"p{i}").spent for i in range(12)}
    assert receipts[0] == receipts[2] == 2 * 10**8 // 20 + 171 * 10**6
    assert receipts[1] <= 2 * 10**9 // 20 + 1710 * 10**6
    table.people.join("p0", "open")
    table.people.epoch()
    table.count(share="0.5", name="half", mechanism="stretching")
    entry = table.ledger.history("clinic")[-1]
    part = table.people.taking_part(entry.id, [f"p{i}" for i in range(12)])
    assert part.tolist() == [2] + [-1] * 11  # only p0 has so much left
    asked = {row["tier"]: row["asked"] for row in (entry.artefact or {})["certificate"]["living"]["charged"]}
    assert asked == {"strict": "0.095", "twin": "0.095", "open": "0.95"}
    assert table.people.receipt("p0").lines[-1].charged == 95 * 10**7


def test_the_same_question_is_new_in_an_epoch_and_after_a_count(tmp_path: Path) -> None:
    table = clinic(tmp_path, Seeded(5))
    with pytest.raises(InputError, match="no epoch was closed"):
        table.head_counts()
    with pytest.raises(InputError, match="no epoch was closed"):
        table.count(share="0.1")
    table.people.bring(["p0", "p1"], ["strict", "open"])
    table.people.epoch()
    asked: dict[str, Any] = {"share": "0.1", "where": "age >= 50"}
    assert not table.count(**asked).repeated
    assert table.count(**asked).repeated
    table.people.epoch()
    assert not table.count(**asked).repeated
    assert [r.name for r in table.ledger.history("clinic")] == ["head counts", "count", "count"]  # heads once
    first, second = table.head_counts(), table.head_counts(again=True)
    assert table.budgets is not None
    assert table.budgets.counts.tolist() == second.counts.tolist() == table.head_counts().counts.tolist()
    assert first.counts.tolist() != second.counts.tolist()
    assert not table.count(**asked).repeated
    assert not table.count(epsilon="0.01").repeated
    table.head_counts(again=True)
    assert table.count(epsilon="0.01").repeated  # which uses no head counts


def test_a_share_of_the_budget_pays_for_heads_and_the_rest_for_releases(tmp_path: Path) -> None:
    table = clinic(tmp_path, Seeded(5), head_share="0.2")
    table.people.bring([f"p{i}" for i in range(12)], CHOSEN)
    table.people.epoch()
    table.count(share=1, mechanism="stretching")
    for name, level in (("p0", 2 * 10**8), ("p1", 2 * 10**9)):
        assert [line.charged for line in table.people.receipt(name).lines] == [level // 5, level // 5 * 4]
        assert table.people.receipt(name).left == 0


def test_other_rosters_do_not_count_again(tmp_path: Path) -> None:
    fixed = sf.open(
        frame().assign(tier="open"),
        schema=SCHEMA,
        budgets=Roster.tiers({"open": 1}, column="tier", private=True),
        name="clinic",
        ledger=tmp_path / "clinic.ledger",
        noise=Seeded(1),
    )
    with pytest.raises(InputError, match="do not change"):
        fixed.head_counts(again=True)
    with pytest.raises(InputError, match="this one is public"):
        Roster.living(TIERS, head_share="0.1")


# --- the command line ---------------------------------------------------------------------------------------------------

PLAN = """
[dataset]
name = "clinic"
source = "clinic.csv"
schema = "schema.toml"
[people]
living = true
roster = "private"
head_share = 0.1
tiers = { strict = 0.2, open = 2.0 }
[ledger]
location = "clinic.ledger"
[output]
folder = "out"
[[release]]
name = "old"
kind = "count"
where = "age >= 65"
share = 0.2
[[release]]
name = "ages"
kind = "histogram"
columns = ["age"]
share = 0.2
"""


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, Exception) and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    rows = pd.DataFrame({"who": [f"p{i}" for i in range(7431)], "age": [i % 100 for i in range(7431)]})
    rows.to_csv("clinic.csv", index=False)
    rows.assign(tier=["strict", "open", "open"] * 2477)[["who", "tier"]].to_csv("roster.csv", index=False)
    return tmp_path


def test_a_plan_through_the_command_line(home: Path) -> None:
    told = [run("people", "plan.toml", "import", "roster.csv"), run("people", "plan.toml", "epoch")]
    told += [run("people", "plan.toml", "show"), run("preview", "plan.toml"), run("preview", "plan.toml", "--json")]
    assert "not counted yet" in told[2]
    first = json.loads(run("release", "plan.toml", "--json"))["releases"]
    assert [r["name"] for r in first] == ["head counts", "old", "ages"]
    again = json.loads(run("release", "plan.toml", "--json"))["releases"]
    assert [(r["name"], r["repeated"]) for r in again] == [("old", True), ("ages", True)]
    shown = json.loads(run("people", "plan.toml", "show", "--json"))
    noisy = [row["people_with_noise"] for row in shown["tiers"]]
    assert all(abs(a - b) < 2000 for a, b in zip(noisy, [2477, 4954], strict=True))
    counted = json.loads(run("people", "plan.toml", "count", "--json"))
    assert Path(counted["folder"]).name == "head counts 2"
    assert counted["charged"] == {"epsilon": "0.2", "people": ["0.02", "0.2"]}
    told += [run("people", "plan.toml", "epoch", "--json"), run("people", "plan.toml", "import", "roster.csv", "--json")]
    second = json.loads(run("release", "plan.toml", "--json"))["releases"]
    assert [(r["name"], r["repeated"]) for r in second] == [("old", False), ("ages", False)]
    made = {r["certificate"]["reservation"]: r["certificate"] for r in (*first, *second)}
    for person, tier in (("p0", "strict"), ("p1", "open")):
        lines = json.loads(run("receipt", person, "--plan", "plan.toml", "--json"))["lines"]
        assert len(lines) == 6
        for line in lines:
            if line["release"] in made:
                asked = {row["tier"]: row["asked"] for row in made[line["release"]]["living"]["charged"]}
                assert line["charged"] == asked[tier]
    exact = re.compile(r"(?<![\d.])(7,?431|2,?477|4,?954)(?![\d.])")  # what has no noise in it tells no heads at all
    assert not [text for text in told if exact.search(text)]


def test_counting_again_needs_a_roster_that_is_both(home: Path) -> None:
    public = PLAN.replace('roster = "private"\nhead_share = 0.1\n', "")
    (home / "public.toml").write_text(public.replace("clinic.ledger", "public.ledger"), encoding="utf-8")
    run("people", "public.toml", "import", "roster.csv")
    run("people", "public.toml", "epoch")
    with pytest.raises(InputError, match="who they are is private"):
        run("people", "public.toml", "count")
    run("people", "plan.toml", "import", "roster.csv")
    with pytest.raises(InputError, match="no epoch was closed"):
        run("people", "plan.toml", "count")
    with pytest.raises(InputError, match="no epoch was closed"):
        run("preview", "plan.toml")
