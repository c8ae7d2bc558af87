"""The sources of the configuration, and datasets made of them."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
