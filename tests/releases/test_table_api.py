"""`sf.open(...)`: previews, counts, sums, means and histograms on a frame or a file."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError
from sfumato.testing import reveal

SCHEMA = sf.Schema(
    {
        "age": sf.Numeric(0, 100, bins=10, integer=True),
        "income": sf.Numeric(-1000, 3000, bins=8),
        "sex": sf.Categorical(["f", "m"]),
    }
)
N = 4000


def people(seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, N),
            "income": rng.normal(900, 500, N).clip(-1000, 3000),
            "sex": rng.choice(["f", "m"], N),
            "consent": rng.choice(["strict", "open"], N, p=[0.6, 0.4]),
        }
    )


def opened(frame, **more):
    counts = frame["consent"].value_counts()
    roster = sf.Roster.tiers(
        {"strict": 0.2, "open": 2.0}, column="consent", counts={k: int(counts[k]) for k in counts.index}
    )
    return sf.open(frame, schema=SCHEMA, budgets=roster, **{"ledger": ":memory:", **more})


def test_every_kind_is_near_the_truth_within_its_own_error():
    frame = people()
    table = opened(frame, noise=sf.Seeded(1))
    answers = {
        "count": (table.count(where="age >= 50", share=0.2), (frame["age"] >= 50).sum()),
        "sum": (table.sum("age", where="sex = 'f'", share=0.2), frame.loc[frame["sex"] == "f", "age"].sum()),
        "shifted sum": (table.sum("income", share=0.2), frame["income"].sum()),
        "mean": (table.mean("income", where="sex = 'm'", share=0.2), frame.loc[frame["sex"] == "m", "income"].mean()),
    }
    for name, (answer, truth) in answers.items():
        assert abs(answer.value - truth) < 10 * answer.expected_rmse, name
        low, high = answer.interval(0.999)
        assert low <= answer.value <= high, name
        assert not answer.guarantee.private, name
    assert float(table.balance().people.left.min()) >= 0


@pytest.mark.slow
def test_the_intervals_cover_as_often_as_they_say():
    frame = people()
    truth = (frame["age"] >= 50).sum()
    inside = 0
    for seed in range(40):
        answer = opened(frame, noise=sf.Seeded(seed)).count(where="age >= 50", share=1)
        low, high = answer.interval(0.9)
        inside += low <= truth <= high
    # 0.9 of 40 is 36; a binomial below 27 happens once in 100,000 runs. The interval may be wider, never narrower.
    assert inside >= 27


def test_the_same_request_is_answered_from_the_ledger_for_free():
    table = opened(people())
    first = table.count(where="age >= 50", share=0.5)
    left = table.balance().people.left.copy()
    again = table.count(where="age >= 50", share=0.5)
    assert again.repeated
    assert again.value == first.value
    assert again.interval() == pytest.approx(first.interval())
    assert (table.balance().people.left == left).all()
    assert again.interval(0.5) == pytest.approx(first.interval(0.5))
    assert type(again) is type(first)


def test_a_paid_histogram_comes_back_after_a_restart_as_the_same_histogram(tmp_path):
    def session():
        return opened(people(), ledger=tmp_path / "people.ledger", name="people")

    first = session().histogram("age", share=0.3)
    again = session().histogram("age", share=0.3)
    assert (first.repeated, again.repeated) == (False, True)
    assert type(again) is type(first)
    pd.testing.assert_frame_equal(again.to_frame(), first.to_frame())
    assert again.range(21, 61).value == first.range(21, 61).value
    assert again.range(21, 61).interval() == pytest.approx(first.range(21, 61).interval())
    assert again.guarantee.to_dict() == first.guarantee.to_dict()
    assert again.plot().get_xlabel() == "age"
    assert "age" in again._repr_html_()
    assert (again.save(tmp_path / "ages") / "report.html").exists()
    assert first.save(tmp_path / "ages") == tmp_path / "ages"


def test_a_release_over_personal_budgets_must_say_how_much_it_may_use():
    with pytest.raises(InputError, match=r"share=0.1 .* or epsilon="):
        opened(people()).count(where="age >= 50")


def test_the_budget_runs_out_and_says_so():
    table = opened(people())
    table.count(where="age >= 50", mechanism="minimum", share=1)
    with pytest.raises(BudgetError, match="strict"):
        table.count(where="age >= 60", mechanism="minimum", share=1)


def test_one_epsilon_for_all_needs_a_cap():
    table = sf.open(people(), schema=SCHEMA, rows=N, ledger=":memory:")
    assert len(table.preview("histogram", columns=["age"], epsilon=0.5)) > 1
    with pytest.raises(InputError, match=r"sf\.open\(\.\.\., epsilon=1\)"):
        table.histogram("age", epsilon=0.5)
    capped = sf.open(people(), schema=SCHEMA, rows=N, epsilon=1, ledger=":memory:")
    capped.histogram("age", "sex", epsilon=0.5)
    assert capped.balance().total.left == 500_000_000


def test_ranges_of_an_integer_column_end_with_its_last_value():
    schema = sf.Schema({"n": sf.Numeric(0, 3, bins=4, integer=True)})
    frame = pd.DataFrame({"n": [0, 1, 1, 2, 3, 3, 3]})
    made = sf.open(frame, schema=schema, epsilon=10**5, noise=sf.Seeded(1)).histogram(
        "n", epsilon=10**5, mechanism="identity"
    )
    assert [made.range(a, b).value for a, b in ((0, 4), (3, 4), (1, 3))] == [7, 3, 3]


def test_unknown_words_are_refused_before_anything_is_read():
    table = opened(people())
    with pytest.raises(InputError, match="did you mean 'where'"):
        table.count(wehre="age > 3")
    with pytest.raises(InputError, match="did you mean 'count'"):
        table.preview("cuont")
    with pytest.raises(InputError, match="categorical"):
        table.mean("sex", share=0.1)


def test_saving_writes_the_same_folder_as_a_plan(tmp_path):
    released = opened(people()).count(where="age >= 50", share=1)
    folder = released.save(tmp_path / "over50")
    files = ["certificate.json", "data.csv", "data.json", "data.parquet", "report.html"]
    assert sorted(p.name for p in folder.iterdir()) == files
    assert released.save(tmp_path / "over50") == folder


def test_a_mean_never_mixes_two_samples_of_a_persons_rows():
    """With one of many rows kept at random, a person moves the centred sum by at most the lattice, whichever row it is."""
    from sfumato.people.reading import DatasetReader

    schema = sf.Schema({"age": SCHEMA["age"]}, unit=sf.PrivacyUnit("who", 1))
    frame = pd.DataFrame({"who": [1] * 40, "age": [100, 0] * 20, "epsilon": [1.0] * 40})
    dataset = sf.open(
        frame, schema=schema, budgets=sf.Roster.column("epsilon", people=sf.PersonBudgets.of([1.0])), ledger=":memory:"
    ).dataset
    reader = DatasetReader.centred(dataset, sf.PersonBudgets.of([1.0]), measure="age", steps=100, where="age >= 50")
    seen = {int(reveal(reader.group_sums())[0]) for _ in range(12)}
    assert seen <= {0, 100}  # the row with age 100 (+100 half steps), or the other one, which the condition leaves out


@pytest.mark.parametrize("share", ["1/3", "0.37", "1"])
def test_a_share_of_distinct_budgets_is_the_same_in_the_engine_and_in_the_roster(share):
    from fractions import Fraction

    rng = np.random.default_rng()
    budgets = rng.uniform(0.001, 3, 500).round(9)
    frame = pd.DataFrame({"age": rng.integers(0, 100, 500), "epsilon": budgets})
    roster = sf.Roster.column("epsilon", people=sf.PersonBudgets.of(budgets)).share(Fraction(share))
    dataset = sf.open(frame, schema=sf.Schema({"age": SCHEMA["age"]}), budgets=roster, ledger=":memory:").dataset
    levels = roster.head_counts()
    assert reveal(dataset.group_sums(levels)).sum() == 500
    assert reveal(dataset.weighted_sums(10**12)) == int((levels.levels * levels.counts).sum())
    most = int(np.median(levels.levels))
    assert reveal(dataset.weighted_sums(most)) == int((np.minimum(levels.levels, most) * levels.counts).sum())


def test_a_synthetic_table_is_charged_and_carries_the_target():
    frame = people()
    table = sf.open(frame, schema=SCHEMA, epsilon=2, rows=N, noise=sf.Seeded(2))
    made = table.synthesize(target="sex", epsilon=1)
    assert made.sample(50)["sex"].isin(["f", "m"]).all()
    assert 0 <= table.balance().total.spent - made.guarantee.nano <= 2  # the choice rounds its rate down
    personal = opened(frame, noise=sf.Seeded(2)).synthesize(target="sex", share=0.5)
    assert (personal.guarantee.people <= personal.guarantee.budgets.levels).all()


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_every_mechanism_that_a_preview_offers_can_be_run(kind):
    frame = people()
    for option in opened(frame).preview(kind, column="income", share=0.5):
        made = opened(frame, noise=sf.Seeded(4)).release(kind, column="income", share=0.5, mechanism=option.mechanism)
        assert made.mechanism == option.mechanism


def test_saving_over_a_release_of_another_session_is_refused(tmp_path):
    opened(people()).count(where="age >= 50", share=1).save(tmp_path / "over50")
    with pytest.raises(InputError, match="with other noise"):
        opened(people()).count(where="age >= 50", share=1).save(tmp_path / "over50")


def test_head_counts_are_whole_numbers():
    for counts in ({"open": "x"}, {"open": 1.5}, {"open": -1}, 3):
        with pytest.raises(InputError, match="counts"):
            sf.Roster.tiers({"open": 1}, column="consent", counts=counts)


def test_a_frame_in_a_lasting_ledger_needs_a_name(tmp_path):
    """Two nameless frames would be one dataset, and the second would be answered with figures of the first."""
    with pytest.raises(InputError, match="name='patients'"):
        sf.open(people(), schema=SCHEMA, epsilon=1, rows=N, ledger=tmp_path / "x.ledger")


def test_a_preview_says_what_is_odd_about_the_roster_and_the_condition():
    roster = sf.Roster.tiers({"strict": 0.2, "open": 2.0}, column="consent", counts={"open": 10})
    seen = sf.open(people(), schema=SCHEMA, budgets=roster, ledger=":memory:").preview("count", where="age < 0", share=0.5)
    assert "tier 'strict' has no stated head count" in repr(seen)
    assert "no row can satisfy this condition" in seen._repr_html_()
