"""`sfumato service close`: what to do when a ledger was set back and no newer copy of it is left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.serve import CONFIG, Config, need_service, service_app, settings_at


@service_app.command("close")
def close(
    dataset: Annotated[str, typer.Argument(help="The dataset whose log lost entries, as the error names it.")],
    reason: Annotated[str, typer.Option(help="What happened, for the record.")],
    config: Config = Path(CONFIG),
) -> None:
    """Write down that entries of a dataset's log were lost, and close it to further releases for good.

    What was released stays, and can be proved as before; nothing more is charged. Try to restore a newer copy first.
    """
    need_service()
    from sfumato.service.context import Service

    settings = settings_at(config)
    service = Service.opened(settings, checked=False)
    service.witness.close(service.ledger, dataset, reason)
    typer.echo(f"{dataset!r} is closed: its log says so, and nothing more can be charged to it")
