"""Decisions about plans, and the record for an assessment."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
