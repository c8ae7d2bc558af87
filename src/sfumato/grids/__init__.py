"""Grids: one budget in few steps; synopses and synthetic tables for classification.

`PrivPfC` and its rivals publish a table; `Synopsis`, `Network` and `Joint` are what they give. Previews and plans ask
`offers`.
"""

from sfumato.grids.offers import offers, preview_synthesize
from sfumato.grids.published.joint import Joint
from sfumato.grids.published.network import Network
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.base import Publisher
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.marginals import PrivMarginals
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.settings import PAPER, Settings
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.records.levels import Levels

__all__ = [
    "PAPER",
    "PPH",
    "DiffGen",
    "Joint",
    "Levels",
    "Network",
    "PrivBayes",
    "PrivMarginals",
    "PrivPfC",
    "Publisher",
    "Settings",
    "Synopsis",
    "UniformGrid",
    "offers",
    "preview_synthesize",
]
