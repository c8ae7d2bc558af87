"""What the person whose budget it is sees and decides."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
