"""A histogram mechanism of thirty lines, registered from outside the package: previewed, released, audited, documented."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.audit import audit, names
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.histograms import HistogramEstimate, Measurement
from sfumato.privacy import Seeded
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism, Parameter, forget, register

# --- the thirty lines ------------------------------------------------------------------------------------------------


def clipped(counts, *, rates, meter, floor=0.0):
    """Noise on every bin, and nothing below a public floor. A record moves one bin by one unit, so it loses its rate."""
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    return HistogramEstimate(
        mechanism="clipped",
        counts=np.maximum(noisy, floor).astype(float),
        noise=np.sqrt(laplace_variance(rates)),
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
        parameters={"floor": floor},
    )


MECHANISM = Mechanism(
    "clipped",
    ("histogram",),
    clipped,
    "noise on every bin, cut at a public floor",
    parameters=(Parameter("floor", "number", "no count is below it", 0.0, low=0, high=1000),),
)

# ---------------------------------------------------------------------------------------------------------------------

PLAN = """
[dataset]
name = "shop"
source = "shop.parquet"
schema = "shop.toml"
rows = 300
[ledger]
location = "shop.ledger"
epsilon = 1.0
[[release]]
name = "sizes"
kind = "histogram"
columns = ["size"]
mechanism = "clipped"
floor = 5
epsilon = 0.5
"""


@pytest.fixture
def shop(tmp_path):
    register(MECHANISM)
    schema = sf.Schema({"size": sf.Categorical(["s", "m", "l"])})
    pd.DataFrame({"size": ["s", "m", "m"] * 100}).to_parquet(tmp_path / "shop.parquet")
    (tmp_path / "shop.toml").write_text(schema.to_toml())
    (tmp_path / "plan.toml").write_text(PLAN)
    yield tmp_path
    forget("clipped")


def command(*words):
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_is_previewed_and_released_from_a_plan(shop):
    (priced,) = command("preview", shop / "plan.toml")["releases"]
    assert priced["chosen"] == "clipped"
    assert "clipped" in [o["mechanism"] for o in priced["offers"]]
    (made,) = command("release", shop / "plan.toml")["releases"]
    assert made["result"]["parameters"] == {"floor": 5}
    assert min(made["result"]["counts"]) >= 5
    assert made["certificate"]["charged"]["epsilon"] == "0.5"
    assert "clipped" in (shop / "releases" / "sizes" / "report.html").read_text()


def test_its_parameters_are_checked_and_its_name_is_told(shop):
    (shop / "plan.toml").write_text(PLAN.replace("floor = 5", "floor = -1"))
    refused = CliRunner().invoke(app, ["preview", str(shop / "plan.toml")])
    assert "`floor` of release 'sizes' is a number from 0 to 1,000, got -1" in str(refused.exception)
    table = sf.open(shop / "shop.parquet", schema=shop / "shop.toml", epsilon=1, rows=300)
    with pytest.raises(InputError, match="it is a parameter of clipped"):
        table.histogram("size", epsilon=0.5, parameters={"floor": 5})
    assert table.histogram("size", epsilon=0.5, mechanism="clipped", parameters={"floor": 5}).mechanism == "clipped"


def test_it_is_audited_as_the_others_are(shop):
    assert "histogram-clipped" in names()
    assert not audit("histogram-clipped", trials=2000, source=Seeded(3)).caught


def test_it_is_documented(shop):
    listed = command("mechanisms", "histogram")["kinds"]["histogram"]["mechanisms"]
    assert {"name": "clipped", "summary": "noise on every bin, cut at a public floor"}.items() <= listed[-1].items()
    page = CliRunner().invoke(app, ["mechanisms", "--markdown"]).stdout
    assert "| `clipped` | noise on every bin, cut at a public floor |" in page


def test_names_do_not_collide_and_auto_is_not_a_mechanism(shop):
    with pytest.raises(InputError, match="two mechanisms for histogram are called 'ahp'"):
        register(Mechanism("ahp", ("histogram",), clipped, "another"))
    with pytest.raises(InputError, match="'auto' is the selector"):
        register(Mechanism("auto", ("histogram",), clipped, "another"))
