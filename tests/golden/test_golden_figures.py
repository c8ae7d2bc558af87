"""The same seeds give the same releases as before the redesign, by every mechanism."""

import json

import numpy as np
import pytest

from golden.figures import FILE, PARTS, measured

STORED = json.loads(FILE.read_text(encoding="utf-8"))


def agree(found, stored, place):
    if isinstance(stored, dict):
        assert isinstance(found, dict), place
        assert sorted(found) == sorted(stored), place
        for key in stored:
            agree(found[key], stored[key], f"{place} / {key}")
    elif isinstance(stored, list):
        assert isinstance(found, list), place
        assert len(found) == len(stored), place
        for number, (a, b) in enumerate(zip(found, stored, strict=True)):
            agree(a, b, f"{place} [{number}]")
    elif isinstance(stored, float):
        np.testing.assert_allclose(found, stored, rtol=1e-6, atol=1e-9, err_msg=place)
    else:
        assert found == stored, place


@pytest.mark.parametrize("part", PARTS)
def test_the_same_seeds_give_the_same_releases(part):
    agree(measured(part), STORED[part], part)


def test_another_figure_is_noticed():
    stored = STORED["personal"]["count affine"]
    with pytest.raises(AssertionError, match="count affine"):
        agree([stored[0] + 1, *stored[1:]], stored, "count affine")
