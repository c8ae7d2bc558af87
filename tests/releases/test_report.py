"""The report names what was asked, shows the bounds that values were clamped to, and prints no dictionary."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.privacy import Guarantee, PersonBudgets
from sfumato.privacy.guarantee import cap_sentence

pytestmark = pytest.mark.pictures

SCHEMA = sf.Schema(
    {
        "income": sf.Numeric(0, 90_000, bins=9),
        "sex": sf.Categorical(["f", "m"]),
        "age": sf.Numeric(0, 99, bins=5, integer=True),
    }
)


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(3)
    n = 2000
    return pd.DataFrame(
        {
            "income": draw.gamma(2, 15_000, n),
            "sex": draw.choice(["f", "m"], n),
            "age": draw.integers(0, 100, n),
            "consent": draw.choice(["strict", "open"], n),
            "epsilon": draw.uniform(0.01, 1, n).round(9),
        }
    )


def tiers(frame):
    counts = frame["consent"].value_counts()
    roster = sf.Roster.tiers(
        {"strict": 0.2, "open": 2.0}, column="consent", counts={k: int(counts[k]) for k in counts.index}
    )
    return sf.open(frame, schema=SCHEMA, budgets=roster, ledger=":memory:")


def page(result, folder):
    return (result.save(folder) / "report.html").read_text(encoding="utf-8")


def test_a_mean_names_its_column_its_bounds_and_the_schema(frame, tmp_path):
    made = tiers(frame).mean("income", where="sex = 'f'", share=0.5)
    text = page(made, tmp_path / "mean")
    assert "mean of income in table, where sex = &#x27;f&#x27;" in text
    assert "from 0 to 90,000, values beyond clamped to these bounds" in text
    assert made.receipt.certificate["schema"]["digest"] in text
    assert not re.search(r"<td>\{", text), "a dictionary is printed"
    assert re.search(r"parameter: sum: \w+", text)


def test_a_count_shows_the_bounds_of_its_condition(frame, tmp_path):
    text = page(tiers(frame).count(where="age >= 65", share=0.5), tmp_path / "old")
    assert "<td>column age</td><td>from 0 to 99, values beyond clamped to these bounds</td>" in text


def test_granted_is_the_grant_and_not_the_share(frame, tmp_path):
    text = page(tiers(frame).count(share=0.5), tmp_path / "count")
    rows = re.findall(r"<tr><td>(strict|open)</td><td>[\d,]+</td><td>([\d.]+)</td><td>([\d.]+)</td><td>([\d.]+)</td>", text)
    assert {(name, granted, share) for name, granted, share, _ in rows} == {("strict", "0.2", "0.1"), ("open", "2", "1")}
    assert all(float(used) <= float(share) for _, _, share, used in rows)


def test_many_budgets_are_shown_as_ranges_that_say_how_many_they_stand_for(frame, tmp_path):
    roster = sf.Roster.column("epsilon", people=PersonBudgets.of(frame["epsilon"]))
    table = sf.open(frame, schema=SCHEMA, budgets=roster, ledger=":memory:")
    text = page(table.count(where="age >= 50", share=0.1), tmp_path / "many")
    groups = int(re.search(r"([\d,]+) groups in 40 rows, as ranges", text).group(1).replace(",", ""))
    assert groups == table.budgets.groups
    for people, granted, used in re.findall(
        r"<tr><td></td><td>([\d,]+)</td><td>([\d.]+)</td><td>[\d.]+</td><td>([\d.]+)</td>", text
    ):
        assert float(used.split("..")[-1]) <= float(granted.split("..")[-1])
        assert float(people.replace(",", "")).is_integer()


def test_two_columns_are_drawn_as_a_map_with_names_on_both_sides(frame):
    ax = sf.open(frame, schema=SCHEMA, epsilon=5, rows=2000, ledger=":memory:").histogram("sex", "age", epsilon=1).plot()
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("sex", "age")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["f", "m"]
    assert ax.get_xticklabels()[0].get_text() == "0 to 19"


def test_the_same_object_prints_in_a_notebook(frame):
    made = tiers(frame).count(share=0.5)
    assert "<table" in made._repr_html_()
    assert "granted" in made._repr_html_()
    assert "<td>income</td><td>from 0 to 90,000" in tiers(frame)._repr_html_()


def test_a_cap_on_rows_is_stated_wherever_a_figure_is(tmp_path):
    """No interval can know what the cap leaves out, so preview, certificate, report and every result say it."""
    rows = pd.DataFrame({"who": ["a", "a", "a", "b"], "x": [1, 1, 0, 1]})
    for most, words in ((1, "at most 1 row is counted"), (2, "at most 2 rows are counted")):
        schema = sf.Schema({"x": sf.Numeric(0, 1, bins=2, integer=True)}, unit=sf.PrivacyUnit("who", most))
        table = sf.open(rows, schema=schema, epsilon=2, rows=4, ledger=":memory:", name="stays")
        assert any(words in note for note in table.preview("count", epsilon=0.5).notes)
        for made in (table.count(epsilon=0.25), table.histogram("x", epsilon=0.25)):
            assert words in made.guarantee.sentence()
            told = made.to_dict()["guarantee"]
            assert told["cap"] == {"person": "who", "rows_per_person": most, "sentence": cap_sentence(most)}
            assert Guarantee.from_dict(told).sentence() == made.guarantee.sentence()
    saved = table.count(epsilon=0.25, name="kept").save(tmp_path / "kept")
    assert words in (saved / "report.html").read_text(encoding="utf-8")
    assert json.loads((saved / "certificate.json").read_text(encoding="utf-8"))["guarantee"]["cap"]["rows_per_person"] == 2
    plain = sf.open(rows, schema=sf.Schema(schema.columns), epsilon=2, rows=4, ledger=":memory:", name="stays")
    assert "counted" not in " ".join(plain.preview("count", epsilon=0.5).notes)
    assert "cap" not in plain.count(epsilon=0.5).guarantee.to_dict()
