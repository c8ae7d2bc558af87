"""What a release says about a published grid: words, tables, the stored synthetic table. All from what was paid for."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.grids import PrivBayes, PrivPfC
from sfumato.grids.published.cuts import Cut, ScoreCut
from sfumato.grids.published.reporting import (
    MOST_ROWS,
    class_balance,
    first_marginals,
    first_rmse,
    marginals,
    network_marginals,
    signal_table,
    synthetic_codes,
)
from sfumato.grids.published.sampling import possible_cells, rounded_shares
from sfumato.privacy import Seeded
from support import grids as helpers


def fitted(grids=1, epsilon=2, **options):
    model = PrivPfC(epsilon=epsilon, target="ill", grids=grids, **options)
    return model.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(1)).synopsis


@pytest.mark.parametrize("grids", [1, 2])
def test_sections_are_words_and_small_tables(grids):
    synopsis = fitted(grids)
    sections = dict(synopsis.report_sections())
    words = sections["The grid in words"]
    for cut in synopsis.cuts:
        assert f"{cut.name} in {cut.size} groups" in words
    assert f"{synopsis.expected_rmse:.3g} records" in words
    assert any(h.startswith("Class balance per cell") for h in sections)
    for name in synopsis.not_in_grid():
        assert name in sections["Columns not in the grid"]
    assert all(isinstance(c, str) or len(c) <= MOST_ROWS for c in sections.values())


def test_a_grid_of_one_cell_has_a_report_too():
    schema = sf.Schema({"x": sf.Categorical(["a"]), "y": sf.Categorical(["n", "p"])})
    frame = pd.DataFrame({"x": ["a"] * 90, "y": ["n", "p", "p"] * 30})
    synopsis = PrivPfC(epsilon=1, target="y", grids=1).fit(frame, schema=schema, source=Seeded(1)).synopsis
    sections = dict(synopsis.report_sections())
    assert "one cell" in sections["The grid in words"]
    assert len(synopsis.extra_tables()["synthetic"]) == round(synopsis.counts.sum())


def test_class_balance_adds_up_and_names_its_noise():
    synopsis = fitted()
    table = class_balance(synopsis)
    assert table["records"].sum() == pytest.approx(synopsis.counts.sum(), abs=len(table))
    assert table["records"].is_monotonic_decreasing
    shares = table.filter(like="ill = ").map(lambda text: float(text.rstrip("%")) if text else np.nan).dropna()
    assert shares.sum(axis=1).to_numpy() == pytest.approx(100, abs=0.2)
    assert table["noise on records"].to_numpy() == pytest.approx(synopsis.expected_rmse * np.sqrt(2), abs=0.051)


def test_the_noise_on_a_share_is_what_fresh_noise_shows():
    synopsis = fitted(epsilon=0.3, rows=3000)
    largest = int(synopsis.counts.sum(axis=0).argmax())
    stated = float(class_balance(synopsis).iloc[0]["noise on shares"].split()[1]) / 100
    noise = np.random.default_rng(2).laplace(0, 1e9 / synopsis.rate, (2, 20_000))
    fresh = synopsis.counts[:, largest, None] + noise
    assert np.std(fresh[0] / fresh.sum(axis=0)) == pytest.approx(stated, rel=0.15, abs=0.0006)


def test_signal_is_claimed_only_beyond_the_noise():
    for grids in (1, 2):
        strong = signal_table(fitted(grids)).set_index("column")
        assert strong.loc["age", "beyond the noise"] == "yes"
        assert float(strong.loc["age", "fewer misjudged by it alone"].rstrip("%")) > 20
    rng = np.random.default_rng(5)
    nothing = helpers.frame().assign(ill=np.where(rng.random(3000) < 0.5, "yes", "no"))
    claimed = 0
    for seed in range(20):
        model = PrivPfC(epsilon=0.1, target="ill", grids=1, rows=3000)
        table = signal_table(model.fit(nothing, schema=helpers.schema(), source=Seeded(seed)).synopsis)
        claimed += int((table["beyond the noise"] == "yes").sum())
    assert claimed <= 2


def test_drawing_adds_less_than_a_row_to_any_cell():
    synopsis = fitted(rows=3000)
    classes, *cuts = synthetic_codes(synopsis)
    drawn = np.zeros((2, *synopsis.shape))
    np.add.at(drawn, (classes, *cuts), 1)
    expected = synopsis.counts * len(classes) / synopsis.counts.sum()
    assert np.abs(drawn.reshape(2, -1) - expected).max() < 1 + 1e-3


def test_rounded_shares_are_unbiased_and_add_up():
    random, share = np.random.default_rng(4), np.array([0.05, 0.4, 0.0, 0.33, 0.22])
    drawn = np.array([rounded_shares(share, 3, random) for _ in range(20_000)])
    assert (drawn.sum(axis=1) == 3).all()
    assert (drawn >= 0).all()
    assert drawn[:, 2].sum() == 0
    assert drawn.mean(axis=0) == pytest.approx(3 * share, abs=5 * 0.5 / np.sqrt(20_000))


@pytest.mark.parametrize("grids", [1, 2])
def test_marginals_are_sums_of_the_released_counts_beside_the_stored_table(grids):
    synopsis = fitted(grids)
    one = marginals(synopsis, 1).set_index("group")
    stored = synopsis.extra_tables()["synthetic"]
    for i, label in enumerate(synopsis.class_labels):
        assert one.loc[f"ill = {label}", "measured"] == pytest.approx(synopsis.noisy[i].sum(), abs=0.06)
        assert one.loc[f"ill = {label}", "synthetic"] == pytest.approx((stored["ill"] == label).sum(), rel=0.01)
    paid = {"ill", *(c.name for c in synopsis.cuts)}
    assert {group.split(" = ")[0] for group in one.index} == paid
    two = marginals(synopsis, 2)
    per_pair = len(paid) * (len(paid) - 1) / 2
    assert two["synthetic"].sum() == pytest.approx(per_pair * synopsis.counts.sum(), rel=0.01)


def test_the_synthetic_table_is_kept_and_does_not_touch_the_global_generator():
    synopsis = fitted()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    table = synopsis.extra_tables()["synthetic"]
    assert table is synopsis.extra_tables()["synthetic"]
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert fitted().extra_tables()["synthetic"].equals(table)
    assert not synopsis.sample().equals(table)


def test_a_network_reports_itself():
    network = PrivBayes(epsilon=1, target="ill").fit(helpers.frame(), schema=helpers.schema(), source=Seeded(1)).synopsis
    sections = dict(network.report_sections())
    assert "ill from nothing" in sections["The network in words"]
    assert set(network.extra_tables()["synthetic"].columns) == {"age", "job", "sex", "visits", "ill"}


def test_a_release_writes_the_table_and_the_page(tmp_path):
    table = sf.open(helpers.frame(), schema=helpers.schema(), epsilon=1, ledger=":memory:")
    made = table.synthesize(target="ill", epsilon=1)
    folder = tmp_path / "out"
    made.save(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    for heading in ("The grid in words", "Class balance per cell", "Which columns carry signal", "Columns not in the grid"):
        assert heading in page
    stored = pd.read_parquet(folder / "synthetic.parquet")
    assert set(stored["ill"]) <= {"no", "yes"}
    assert f"{len(stored):,} drawn rows" in page


def test_the_first_of_two_grids_shows_its_own_marginals():
    synopsis = fitted(2, rows=3000)
    score = next(c for c in synopsis.cuts if isinstance(c, ScoreCut))
    one = first_marginals(synopsis, 1).set_index("group")
    for i, label in enumerate(synopsis.class_labels):
        assert one.loc[f"ill = {label}", "measured"] == pytest.approx(score.noisy[i].sum(), abs=0.06)
    assert {g.split(" = ")[0] for g in one.index} == {"ill", *(c.name for c in score.inner)}
    steps = {s.label: s.loss for s in synopsis.guarantee.steps}
    assert first_rmse(synopsis) == pytest.approx(np.sqrt(2) * 1e9 / steps["first grid: counts"], rel=0.05)
    headings = [heading for heading, _ in synopsis.report_sections()]
    assert any(h.startswith("The first grid, one column at a time") for h in headings)
    assert not any(h.startswith("The first grid") for h, _ in fitted(1).report_sections())
    assert len(first_marginals(fitted(1), 1)) == 0


def test_behind_a_first_grid_of_one_cell_only_its_own_score_is_possible():
    bucket = np.array([7])
    score = ScoreCut((), bucket, np.array([[3], [9]]), 3)
    side = Cut(0, np.array([0, 1]), ("left", "right"), 2, "side", False)
    possible = possible_cells((side, score)).reshape(2, 11)
    assert (possible == (np.arange(11) == 7)).all()


@pytest.mark.parametrize("encoding", ["taxonomy", "gray"])
def test_a_network_shows_the_marginals_that_were_measured(encoding):
    model = PrivBayes(epsilon=3, target="ill", encoding=encoding, rows=3000)
    network = model.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(1)).synopsis
    one, two = network_marginals(network, 1), network_marginals(network, 2)
    names = [c.name for c in network.columns]
    measured = {names[x] for (x, _), _ in network.measured}
    assert {g.split(" = ")[0] for g in one["group"]} == measured
    linked = {frozenset((names[x], names[j])) for (x, parents), _ in network.measured for j, _ in parents}
    shown = {frozenset(part.split(" = ")[0] for part in g.split(" and ")) for g in two["group"]}
    assert shown == linked
    (x, _), table = network.measured[-1]
    figures = one.set_index("group")["measured"]
    for label, row in zip(network.columns[x].labels[-1], table, strict=True):
        assert figures[f"{names[x]} = {label}"] == pytest.approx(row.sum(), abs=0.06)
    assert one.groupby(one["group"].str.split(" = ").str[0])["synthetic"].sum().to_numpy() == pytest.approx(3000, abs=1)
    noise = network.expected_rmse * np.sqrt(table.shape[1])
    assert one.set_index("group")["noise"][f"{names[x]} = {network.columns[x].labels[-1][0]}"] == pytest.approx(
        noise, abs=0.06
    )
    assert any(h.startswith("Two columns at a time") for h, _ in network.report_sections())
