"""The people of a dataset, for its custodian."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
