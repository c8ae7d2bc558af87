"""Signing in and out, invitations, OpenID Connect."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
