"""What was spent and what is left."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
