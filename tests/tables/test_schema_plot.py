"""`schema.plot()`: the levels of each column, drawn from public facts."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

from sfumato.errors import SchemaError
from sfumato.tables import Categorical, Numeric, Schema
from sfumato.tables.plots import level_boxes

mpl.use("Agg")
SCHEMA = Schema(
    {
        "age": Numeric(0, 80, bins=8),
        "job": Categorical(["c", "a", "b", "d"], taxonomy={"white": ["a", "b"], "blue": ["c", "d"]}, other=True),
        "sex": Categorical(["F", "M"]),
    }
)


def test_every_node_of_every_level_is_a_box():
    axes = SCHEMA.plot()
    assert len(axes.patches) == (1 + 2 + 4 + 8) + (1 + 3 + 5) + (1 + 2)
    assert [t.get_text() for t in axes.get_yticklabels()] == ["age", "job", "sex"]
    assert axes.get_xlabel()
    words = {t.get_text() for t in axes.texts}
    assert {"white", "blue", "other", "F", "M", "0 to 40", "40 to 80"} <= words


def test_boxes_of_a_level_cover_the_line_and_refine_the_level_above():
    for name in SCHEMA:
        above = None
        for edges, labels in level_boxes(SCHEMA[name]):
            assert (edges[0], edges[-1]) == (0, 1)
            assert (np.diff(edges) > 0).all()
            assert len(labels) == edges.size - 1
            assert above is None or set(above) <= set(edges)
            above = edges


def test_an_uneven_number_of_bins_keeps_its_last_pair_short():
    partitions, groups = Numeric(0, 10, bins=5).levels()
    assert [p.tolist() for p in partitions] == [[0] * 5, [0, 0, 0, 0, 1], [0, 0, 1, 1, 2], [0, 1, 2, 3, 4]]
    assert groups[1] == ["0 to 8", "8 to 10"]


def test_some_columns_on_given_axes_and_unknown_ones_refused():
    import matplotlib.pyplot as plt

    given = plt.subplots()[1]
    assert SCHEMA.plot(given, columns=["sex"]) is given
    assert len(given.patches) == 3
    with pytest.raises(SchemaError, match="no column"):
        SCHEMA.plot(columns=["sexx"])


def test_schemas_do_not_load_matplotlib():
    code = "import sys, sfumato.tables; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
