"""Grids: one budget in few steps; synopses and synthetic tables for classification."""

from sfumato.grids.diffgen import DiffGen
from sfumato.grids.estimator import PrivPfC
from sfumato.grids.levels import Levels
from sfumato.grids.pph import PPH
from sfumato.grids.preview import preview_synthesize
from sfumato.grids.privbayes import PrivBayes
from sfumato.grids.settings import PAPER, Settings
from sfumato.grids.synopsis import Synopsis
from sfumato.grids.uniform import UniformGrid

__all__ = [
    "PAPER",
    "PPH",
    "DiffGen",
    "Levels",
    "PrivBayes",
    "PrivPfC",
    "Settings",
    "Synopsis",
    "UniformGrid",
    "preview_synthesize",
]
