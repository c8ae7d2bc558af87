"""The publishers of tables for classification: one line each."""

from __future__ import annotations

from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.registry import Mechanism, Parameter, register

_KIND = ("synthesize",)
_PRIVPFC = (
    Parameter("grids", "any", "how many grids: 1, 2 or 'auto' (noisy class counts decide)", "auto"),
    Parameter("most", "any", "candidate grids at most, or 'auto'", "auto"),
    Parameter("order", "text", "how the pool is cut when it is too large", "balanced", choices=("balanced", "paper")),
    Parameter("split", "any", "shares of size, choice and counts, 'paper' or 'auto'", "auto"),
    Parameter("cleaning", "text", "negative counts", "clip", choices=("clip", "norm-sub", "threshold")),
)

for _name, _make, _summary, _parameters in (
    ("privpfc", PrivPfC, "one or two grids chosen for classification, noisy class counts per cell", _PRIVPFC),
    ("diffgen", DiffGen, "taxonomy nodes divided one at a time", ()),
    ("pph", PPH, "a few columns chosen one at a time, with all their values", ()),
    ("privbayes", PrivBayes, "a Bayesian network over all columns; not made for classification", ()),
    ("uniform-grid", UniformGrid, "every column cut alike, without looking at the data", ()),
):
    register(Mechanism(_name, _KIND, _make, _summary, parameters=_parameters))
