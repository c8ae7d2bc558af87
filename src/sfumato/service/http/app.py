"""The application: routes, errors, headers."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from fastapi import FastAPI, Request, Response

from sfumato import __version__
from sfumato.service.context import Service
from sfumato.service.http import operations, problems
from sfumato.service.http.description import DescribedAPI
from sfumato.service.http.guarding import Guard
from sfumato.service.http.idempotency import ReplayError
from sfumato.service.operations.metrics import Metrics
from sfumato.service.operations.observing import Observing

ROUTERS: Final[tuple[str, ...]] = (
    "sign_in",
    "account",
    "administration",
    "sources",
    "plans",
    "decisions",
    "people",
    "me",
    "allowances",
    "requests",
    "jobs",
    "releases",
    "ledger",
    "log",
    "operations",
)
"""Modules of this package, each with a `router`."""


def create_app(service: Service) -> FastAPI:
    """The application for an open service.

    Parameters
    ----------
    service : Service
        What `Service.opened` gave.
    """
    app = DescribedAPI(
        title="Sfumato",
        version=__version__,
        description="Differentially private releases in which budgets differ, with the people whose budgets they are.",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # their pages load scripts from another host
        redoc_url=None,
    )
    app.state.service, app.state.metrics = service, Metrics()
    problems.install(app)
    app.add_middleware(Guard, service=service)

    @app.exception_handler(ReplayError)
    def _again(_: Request, found: ReplayError) -> Response:
        return Response(found.body, found.status, {"Idempotency-Replayed": "true"}, "application/json")

    for name in ROUTERS:
        app.include_router(import_module(f"sfumato.service.http.{name}").router, prefix="/v1")
    app.include_router(operations.probes)
    app.add_middleware(Observing, metrics=app.state.metrics)  # the last one added stands around all others
    return app
