"""`sfumato serve` and `sfumato service ...`: run the service, set it up, back it up."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.app import Json, app, console, print_json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.service.settings import Settings

service_app = typer.Typer(name="service", help="Set the service up, look after it, back it up.", no_args_is_help=True)
app.add_typer(service_app, name="service")

CONFIG = "sfumato.toml"
Config = Annotated[Path, typer.Option("--config", "-c", help="The service's TOML file.", envvar="SFUMATO_CONFIG")]


@app.command()
def serve(
    config: Config = Path(CONFIG),
    demo: Annotated[bool, typer.Option("--demo", help="A made-up clinic with five accounts, to try things out.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where the demo lies; a temporary folder if left out.", show_default=False)
    ] = None,
    web_only: Annotated[bool, typer.Option("--web-only", help="Without the runner, which is started elsewhere.")] = False,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; 0 takes a free one.", min=0, max=65_535, show_default=False)
    ] = None,
) -> None:
    """Run the service: accounts, approvals, releases through HTTP. `sfumato service init FOLDER` sets one up."""
    need_service()
    if folder is not None and not demo:
        raise InputError("--folder says where the demo lies; add --demo, or leave it out")
    if demo:
        from sfumato.cli.serve_demo import serve_demo

        serve_demo(folder, host, port)
        return
    run(config, host, port, web_only=web_only)


def run(config: Path, host: str | None, port: int | None, *, web_only: bool = False, **more: Any) -> None:
    """Run the service of a configuration until it is told to stop."""
    from sfumato.service.operations.logs import log_json
    from sfumato.service.operations.supervising import runner_command
    from sfumato.service.operations.supervising import serve as supervise

    if not web_only:
        settings_at(config)  # mistakes about sources are told here; the web process itself does not know where they lie
        more["command"] = runner_command(config)
    settings = settings_at(config, places=False)
    settings = replace(settings, host=host or settings.host, port=settings.port if port is None else port)
    log_json()
    if not supervise(settings, say=lambda words: typer.echo(words, err=True), **more):
        raise typer.Exit(1)


@service_app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    administrator: Annotated[str, typer.Option(help="What the first administrator is called.")] = "administrator",
) -> None:
    """Write an example configuration, make the databases and keys, and print the first administrator's code."""
    need_service()
    from sfumato.service.accounts.keeping import first_administrator
    from sfumato.service.context import Service
    from sfumato.service.settings import Settings
    from sfumato.service.settings_keys import example

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / CONFIG
    path.write_text(example(), encoding="utf-8")
    code = first_administrator(Service.opened(Settings.read(path, os.environ)), administrator)
    screen = console()
    screen.print(f"Written: {path}, and the databases and keys beside it.", markup=False, soft_wrap=True)
    screen.print(f"The first administrator is {administrator!r}. Their code, which is good once:", markup=False)
    typer.echo(code)
    screen.print(f"Next: sfumato serve --config {path}, then set the password:", markup=False, soft_wrap=True)
    screen.print("  POST /v1/set-password with the code (docs/service.md)", markup=False)


@service_app.command("code")
def code(
    config: Config = Path(CONFIG),
    administrator: Annotated[str, typer.Option(help="What the first administrator is called.")] = "administrator",
) -> None:
    """A new code for the first administrator, as long as none has a password."""
    need_service()
    from sfumato.service.accounts.keeping import first_administrator
    from sfumato.service.context import Service

    typer.echo(first_administrator(Service.opened(settings_at(config)), administrator))


@service_app.command("backup")
def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    config: Config = Path(CONFIG),
    with_keys: Annotated[
        bool, typer.Option("--with-keys", help="Copy the keys too; then guard the copy like them.")
    ] = False,
) -> None:
    """Copy a service on SQLite, also while it runs. The ledger comes last, so that no charge is lost."""
    need_service()
    from sfumato.service.operations.backup import make

    made = make(settings_at(config), folder, with_keys=with_keys)
    console().print(f"{len(made.manifest['files'])} files in {folder}.", markup=False, soft_wrap=True)
    if not with_keys:
        console().print("The keys are not in it: keep a copy of their folder elsewhere.", markup=False)


@service_app.command("restore")
def restore(
    folder: Annotated[Path, typer.Argument(help="What `sfumato service backup` wrote.")],
    config: Config = Path(CONFIG),
) -> None:
    """Put a backup where the configuration says, and check everything in it. Stop the service first."""
    need_service()
    from sfumato.service.operations.backup import read
    from sfumato.service.operations.backup import restore as put

    settings = settings_at(config)
    put(settings, read(folder))
    _checked(settings, as_json=False)


@service_app.command("check")
def check(config: Config = Path(CONFIG), as_json: Json = False) -> None:
    """Add the ledger up again, and look at every release with its charge and its files. Opens no private table."""
    need_service()
    _checked(settings_at(config), as_json=as_json)


def _checked(settings: Settings, *, as_json: bool) -> None:
    from dataclasses import asdict

    from sfumato.service.context import Service
    from sfumato.service.operations.examining import examine

    found = examine(Service.opened(settings))
    if as_json:
        print_json(asdict(found))
    else:
        for line in found.wrong:
            typer.echo(line, err=True)
        console().print(f"{found.datasets} datasets and {found.releases} releases: {len(found.wrong)} faults.", markup=False)
    if found.wrong:
        raise typer.Exit(1)


def settings_at(config: Path, *, places: bool = True) -> Settings:
    """The settings in a file, with the `places` of the sources or without."""
    from sfumato.service.settings import Settings

    if not config.exists():
        raise InputError(f"there is no {config}: `sfumato service init FOLDER` writes one, or name it with --config")
    return Settings.read(config, os.environ, places=places)


def need_service() -> None:
    """Refuse, with what to install, where the extra is not."""
    from sfumato.extras import need

    for module in ("fastapi", "uvicorn", "argon2", "alembic"):
        need(module, "sfumato serve")
