"""`sfumato predict MODEL TABLE`: a released model applied to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.app import app, console


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a released or saved model, or its model.json.")],
    table: Annotated[str, typer.Argument(help="The rows: a CSV or Parquet file, or whatever a plan takes as a source.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .csv or .parquet file; standard output if left out.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Write the probability of every class too.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to copy beside the predictions, as the row's name; repeatable.")
    ] = None,
    csv: Annotated[
        list[str] | None,
        typer.Option(help="How a text file is written, as decimal=, or delimiter=';' (see [dataset.csv]); repeatable."),
    ] = None,
) -> None:
    """Predict for every row of a table, in its order. The output is as private as the table: no noise is added here."""
    from sfumato.errors import InputError
    from sfumato.releases.loading import load
    from sfumato.releases.predicting import predict_file
    from sfumato.results import Result

    loaded = load(model)
    if isinstance(loaded, Result):
        raise InputError(f"{model} holds a release that predicts nothing; give the folder of a model")
    found = predict_file(loaded, table, out, proba=proba, keep=keep or (), csv=_options(csv or []))
    screen = console(stderr=True)
    if found.unknown:
        screen.print(f"note: the model does not look at {', '.join(found.unknown)}", markup=False, soft_wrap=True)
    if out is not None:
        screen.print(f"{found.rows:,} rows -> {out}", markup=False, soft_wrap=True)


def _options(given: list[str]) -> dict[str, str] | None:
    """Keys and values of --csv."""
    from sfumato.errors import InputError

    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise InputError(f"--csv takes a key and a value, as --csv delimiter=';'; got {wrong[0]!r}")
    return dict(text.split("=", 1) for text in given) if given else None
