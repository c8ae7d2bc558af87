"""Allowances of analysts, and requests that are approved beforehand."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
