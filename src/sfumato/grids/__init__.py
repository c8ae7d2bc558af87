"""Grids: one budget in few steps; synopses and synthetic tables for classification."""

from sfumato.grids.estimator import PrivPfC
from sfumato.grids.levels import Levels
from sfumato.grids.settings import PAPER, Settings
from sfumato.grids.synopsis import Synopsis

__all__ = ["PAPER", "Levels", "PrivPfC", "Settings", "Synopsis"]
