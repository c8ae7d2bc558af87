"""Synthetic tables for classification."""

from __future__ import annotations

KINDS: tuple[()] = ()
