"""What the pages on consent say in numbers is what the numbers are."""

import math
import re
from pathlib import Path

from sfumato.demo import TIERS
from sfumato.privacy.odds import in_hundred, sure_after

DOCS = Path(__file__).parents[2] / "docs"


def test_the_patients_table_follows_from_the_epsilons():
    page = (DOCS / "for-patients.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d+) in 100 .*?\| at most ([\d.]+) \| at most ([\d.]+) \| at most ([\d.]+) \|$", page, re.MULTILINE
    )
    assert [int(before) for before, *_ in rows] == [50, 10, 1]
    for before, *said in rows:
        for (epsilon, _), most in zip(TIERS.values(), said, strict=True):
            exact = 100 * sure_after(int(before) / 100, epsilon)
            assert float(most) == in_hundred(int(before) / 100, epsilon)
            assert exact <= float(most) < exact + 0.1


def test_the_limit_of_a_guess_is_the_one_of_the_odds():
    assert sure_after(0.5, 0.0) == 0.5
    assert math.isclose(sure_after(0.2, 1.5) / (1 - sure_after(0.2, 1.5)), 0.25 * math.exp(3))


def test_the_patients_page_has_plain_sentences():
    """No sentence of more than 45 words, and no formula before the section that says how the table is computed."""
    page = (DOCS / "for-patients.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|^\|.*$|^#.*$|^!\[.*$", "", page, flags=re.MULTILINE | re.DOTALL)
    long = [s for s in re.split(r"(?<=[.?!:;])\s+|\n\n|\n- ", prose) if len(s.split()) > 45]
    assert not long
    assert "ε" not in page.split("## For whoever wants to check")[0]
