"""One's own account: password, second factor, tokens."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
