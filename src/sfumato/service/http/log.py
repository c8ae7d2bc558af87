"""The log: checkpoints, proofs, keys."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
