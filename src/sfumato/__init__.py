"""Sfumato: differentially private data release in which budgets differ."""

__version__ = "0.1.0"
