"""The noise-free variants of the bench: refused for a real release, marked in an experiment, best candidate always taken."""

import pytest

from sfumato.bench.grids_noise_free import VARIANTS, ExactChoices
from sfumato.errors import PrivacyError
from sfumato.privacy import Exact, Meter, Seeded
from support import grids as helpers


@pytest.mark.parametrize("name", VARIANTS)
def test_a_noise_free_structure_is_refused_with_secure_noise(name):
    with pytest.raises(PrivacyError, match="without noise"):
        VARIANTS[name](epsilon=1, target="ill").fit(helpers.frame(), schema=helpers.schema())


@pytest.mark.parametrize("name", VARIANTS)
def test_the_structure_no_longer_depends_on_the_noise_but_the_counts_do(name):
    found = []
    for seed in range(4):
        model = VARIANTS[name](epsilon=0.5, target="ill", rows=3000)
        found.append(model.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(seed)).synopsis)
    structures = {str(s.to_frame().iloc[:, :-2].to_dict() if name != "privbayes" else s.links) for s in found}
    assert len(structures) == 1
    assert len({str(s.noisy if name != "privbayes" else s.tables) for s in found}) == 4
    assert all("the structure is chosen without noise" in s.guarantee.not_private for s in found)
    assert float(found[0].guarantee.epsilon) == pytest.approx(0.5, rel=0.01)


def test_exact_choices_cost_what_noisy_ones_do():
    exact, noisy = Meter(source=Seeded(1)), Meter(source=Seeded(1))
    assert all(ExactChoices(exact).choose(Exact([1, 3, 2]), rate=1, spread=1) == 1 for _ in range(50))
    for _ in range(50):
        noisy.choose([1, 3, 2], rate=1, spread=1)
    assert exact.spent().total == noisy.spent().total
