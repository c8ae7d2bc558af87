"""`sfumato.load(...)`: a released artefact as the object it was, from its folder alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from sfumato.classifiers.model_file import ARRAYS, HEADER
from sfumato.errors import InputError, SfumatoError
from sfumato.releases.folder import CERTIFICATE, DATA, read_certificate, read_result

MOST_DATA = 1 << 30


def load(path: str | Path) -> Any:
    """Read back what a release wrote: a model as a fitted estimator, anything else as its result.

    Nothing in a folder is run: figures are JSON, models JSON and NumPy arrays without pickle. Where a certificate lies
    beside a file, the file must have the digest that it names.

    Parameters
    ----------
    path : str or Path
        The folder of a release or of a saved model, or the ``model.json`` in it.

    Returns
    -------
    fitted estimator or Result
        For a model the estimator, with `predict`, `classes_` and (where it has one) `predict_proba`; its predictions are
        those of the model that was released, bit by bit. For any other release its `Result`.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no {path} to load; give the folder of a release, or a {HEADER}")
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not (path / HEADER).exists():
        if not (path / DATA).exists():
            raise InputError(f"{path} is no release: it holds neither a {HEADER} nor a {DATA}")
        _check_digests(folder, (DATA,))
        return _read(folder)
    from sfumato.classifiers.model_file import read_model
    from sfumato.classifiers.portable import from_portable

    if not path.is_dir() and path.name != HEADER:
        raise InputError(f"{path} is no model; give the folder of a release, or the {HEADER} in it")
    _check_digests(folder, (HEADER, ARRAYS))
    header, arrays = read_model(path)
    return from_portable(header, arrays, what=str(path))


def _check_digests(folder: Path, names: tuple[str, ...]) -> None:
    """Refuse files that are not those of which the certificate beside them speaks."""
    if not (folder / CERTIFICATE).exists():
        return
    made = read_certificate(folder)
    files = None if made is None else made.get("files")
    if not isinstance(files, dict):
        raise InputError(f"{folder / CERTIFICATE} cannot be read; get the release again from whoever made it")
    for name in names:
        path = folder / name
        if not path.exists() or path.stat().st_size > MOST_DATA:
            raise InputError(f"{path} is missing or too large; get the release again from whoever made it")
        if hashlib.sha256(path.read_bytes()).hexdigest() != files.get(name):
            raise InputError(f"{path} is not the file that {CERTIFICATE} speaks of: it was changed after the release")


def _read(folder: Path) -> Any:
    try:
        return read_result(folder)
    except SfumatoError:
        raise
    except Exception as error:  # a file may be wrong in any way
        reason = type(error).__name__
    raise InputError(f"{folder / DATA} is not a release that Sfumato wrote ({reason})")
