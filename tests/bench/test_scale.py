"""`sfumato bench scale`, small: what it measures is what it says, and a claim that fails is shown failing."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.bench import run_bench, scale
from sfumato.bench import tables as bench_tables
from sfumato.bench.scale_model import models
from sfumato.bench.scale_tables import tables
from sfumato.cli import app
from sfumato.errors import InputError


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    heard: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scale, "MAIN", ("tiers/count", "tiers/histogram", "one/histogram"))
        found = scale.run(quick=True, part="tiers", rows="2e4", progress=heard.append)
    assert sum("making a table" in line for line in heard) == 1
    return found


def test_every_work_of_the_part_is_run_and_equals_the_query(measured: dict[str, Any]) -> None:
    works = measured["figures"]["works"]
    assert [(line["work"], line["rows"]) for line in works] == [("tiers/count", 20_000), ("tiers/histogram", 20_000)]
    assert all(line["same"] is True for line in works)
    assert all(line["seconds"] > 0 and line["hand_seconds"] > 0 for line in works)
    assert all(line["release_seconds"] > line["seconds"] / 3 for line in works), "a release reads the table"
    assert all(0.3 < line["bytes_per_row"] < 40 for line in works)
    memory = [line["megabytes"] for line in works if "megabytes" in line]
    assert len(memory) == 1
    assert 50 < memory[0] < 2000


def test_claims_follow_from_the_figures_and_losers_lose(measured: dict[str, Any]) -> None:
    claims = {claim["name"]: claim for claim in measured["claims"]}
    line = next(w for w in measured["figures"]["works"] if (w["work"], w["rows"]) == ("tiers/count", 20_000))
    told = claims["duckdb, tiers/count, 20,000 rows: aggregate / by hand"]
    assert told["figure"] == line["times"]
    assert told["holds"] == (line["times"] <= told["limit"] == 1.2)
    slow = {**line, "times": 1.3, "same": False, "megabytes": 100}
    smaller = {**line, "rows": 10_000, "megabytes": 60}
    lost = {claim["name"]: claim["holds"] for claim in scale._claims([smaller, slow], [])}
    assert not any("10,000 rows" in name for name in lost), "limits are claimed of the largest size"
    assert not lost["duckdb, tiers/count, 20,000 rows: aggregate / by hand"]
    assert not lost["tiers/count: peak memory, most rows / fewest"]
    assert not lost["aggregates that equal the query by hand, to the row"]


def test_the_tables_show_every_line(measured: dict[str, Any]) -> None:
    assert measured["tables"].count("| three tiers |") == len(measured["figures"]["works"])
    twice = [{**line, "rows": 2 * line["rows"], "seconds": 1.5 * line["seconds"]} for line in measured["figures"]["works"]]
    works = [*measured["figures"]["works"], *twice]
    assert "| tiers/count |" in tables(works, models(works)), "the cost model"


def test_the_picture_has_a_line_per_work(measured: dict[str, Any], tmp_path: Path) -> None:
    works = measured["figures"]["works"]
    (path,) = scale.plots(tmp_path, {"works": [*works, *({**line, "rows": 10 * line["rows"]} for line in works)]})
    assert path.stat().st_size > 10_000


def test_the_model_finds_a_line_and_says_how_far_off_it_was() -> None:
    runs = [
        {"engine": "duckdb", "work": "one/count", "rows": n, "seconds": s, "bytes_per_row": 4.0}
        for n, s in ((10**6, 0.12), (10**7, 0.3), (10**8, 4.2))
    ]
    (line,) = models(runs)
    assert line["foretold_seconds"] == pytest.approx(0.1 + 2e-8 * 10**8)
    assert line["foretold_off"] == pytest.approx(2.1 / 4.2 - 1)
    assert line["nanoseconds_per_row"] == pytest.approx(3.9 / 9e7 * 1e9, abs=0.01)
    worst = scale._claims([], [line])[-1]
    assert (worst["figure"], worst["holds"]) == (0.5, False)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rows": "many"}, "--rows takes numbers"),
        ({"rows": "0"}, "--rows takes numbers"),
        ({"rows": "inf"}, "--rows takes numbers"),
        ({"engine": "oracle"}, "no engine 'oracle'"),
        ({"part": "everything"}, "no part 'everything'"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run_bench("scale", **asked)  # type: ignore[arg-type]


def test_other_benches_have_their_own_rows() -> None:
    with pytest.raises(InputError, match="leave --rows out"):
        run_bench("noise", rows="1e6")


def test_a_server_that_is_not_there_is_a_claim_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SFUMATO_BENCH_POSTGRES", raising=False)
    monkeypatch.setattr(scale, "PREVIEWS", {1000: 60.0})
    done = CliRunner().invoke(app, ["bench", "scale", "--engine", "postgres", "--json"])
    assert done.exit_code == 0
    claims = {claim["name"]: claim for claim in json.loads(done.stdout)["claims"]}
    assert not claims["PostgreSQL"]["holds"]
    assert "SFUMATO_BENCH_POSTGRES" in claims["PostgreSQL"]["figure"]
    assert claims["preview, 1,000 budgets, seconds"]["holds"]


def test_bench_tables_compares_with_the_same_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_tables, "_peak_megabytes", lambda path: path.stat().st_size)
    monkeypatch.setattr(bench_tables, "COUNTED", ("one/table", "million/count"))
    found = bench_tables.measure(4_000, 1, lambda _: None)
    equal = next(claim for claim in found["claims"] if claim["name"] == "aggregates that equal the query by hand")
    assert (equal["figure"], equal["holds"]) == (len(bench_tables.COUNTED), True)
    assert all(found["figures"][work]["hand_seconds"] > 0 for work in bench_tables.COUNTED)
