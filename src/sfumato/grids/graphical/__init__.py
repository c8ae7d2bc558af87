"""One distribution over all columns from noisy marginals over some of them. Pure post-processing: it sees no record."""

from sfumato.grids.graphical.fitted import Fitted
from sfumato.grids.graphical.fitting import fit
from sfumato.grids.graphical.growth import growth
from sfumato.grids.graphical.marginal import Marginal
from sfumato.grids.graphical.tree import cost

__all__ = ["Fitted", "Marginal", "cost", "fit", "growth"]
