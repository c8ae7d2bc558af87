"""Expected counts and links of a published joint table."""

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.grids.published.joint_report import link_table
from sfumato.grids.publishers.marginals import PrivMarginals
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, Schema


@pytest.fixture(scope="module")
def joint():
    schema = Schema({"age": Numeric(0, 80, bins=8), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
    age = np.arange(4000) % 80
    table = pd.DataFrame({"age": age, "sex": np.where(age % 3, "F", "M"), "ill": np.where(age < 40, "no", "yes")})
    return PrivMarginals(epsilon=4, target="ill", rows=4000).fit(table, schema=schema, source=Seeded(1)).synopsis


def test_expected_counts_are_over_all_values_and_follow_the_table(joint):
    found = joint.marginal(["ill", "age"])
    assert list(found.columns) == ["ill", "age", "records"]
    assert len(found) == 2 * 8
    assert found["records"].sum() == pytest.approx(4000)
    young = found["age"].map({label: i < 4 for i, label in enumerate(joint.columns[0].labels[-1])})
    assert found.loc[young & (found["ill"] == "no"), "records"].sum() == pytest.approx(2000, abs=60)
    alone = joint.marginal(["ill"])
    np.testing.assert_allclose(found.groupby("ill", sort=False)["records"].sum(), alone["records"])
    assert joint.marginal([])["records"].tolist() == pytest.approx([4000])


def test_drawn_rows_are_as_many_as_expected(joint):
    drawn = joint.sample(4000)
    for name in ("sex", "ill"):
        expected = joint.marginal([name]).set_index(name)["records"]
        np.testing.assert_allclose(drawn[name].value_counts().reindex(expected.index, fill_value=0), expected, atol=25)


def test_a_column_that_is_not_there(joint):
    with pytest.raises(InputError, match="no column 'wage' was published; there are age, sex, ill"):
        joint.marginal(["age", "wage"])


def test_the_report_names_what_goes_together(joint):
    links = link_table(joint)
    assert links.iloc[0, 0] == "age and ill"
    assert 0.4 < float(links.iloc[0, 1].rstrip("%")) / 100 <= 0.5
    assert "Which of them go together" in dict(joint.report_sections())
