"""A model as two files that anybody can read and nothing in them runs: ``model.json`` and ``model.npz``.

``model.json`` says what it is: the format's version, the estimator, its settings, the public schema, the classes, the
promise, and for every array its name, type and shape. ``model.npz`` holds those arrays and nothing else, stored and not
compressed, one ``.npy`` each, as `numpy.savez` writes them. There is no pickle, no class name that is imported, no code.

**A hostile file** gets one sentence. Both files have a largest size; members of the archive must be exactly those that
``model.json`` lists, each stored with the length that its type and shape need, together no longer than the file. So what is
allocated is bounded by what lies on the disk. Types are few, numbers must be finite, and ``model.json`` carries the digest
of ``model.npz``. What the arrays then mean is checked by `portable`, against the schema.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Arrays: TypeAlias = dict[str, NDArray[Any]]

HEADER: Final = "model.json"
ARRAYS: Final = "model.npz"
FORMAT: Final = "sfumato model"
VERSION: Final = 1
MOST_HEADER: Final = 64 << 20
MOST_ARRAYS: Final = 1 << 30
_TYPES: Final = {"<f8", "<i8", "|b1"}
_STAMP: Final = (1980, 1, 1, 0, 0, 0)  # equal models are equal files


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as an ``.npz`` file: stored, in order of their names, always the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, _plain(arrays[name]), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _STAMP), member.getvalue())
    return out.getvalue()


def described(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], data: bytes) -> dict[str, Any]:
    """``model.json``: the header with the format, and what stands in ``model.npz``."""
    return {
        "format": FORMAT,
        "format_version": VERSION,
        **header,
        "arrays": {n: {"dtype": _plain(a).dtype.str, "shape": list(a.shape)} for n, a in sorted(arrays.items())},
        "arrays_sha256": hashlib.sha256(data).hexdigest(),
    }


def files_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """The two files by name."""
    data = packed(arrays)
    text = json.dumps(described(header, arrays, data), indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return {HEADER: (text + "\n").encode(), ARRAYS: data}


def write_model(folder: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write both files to a folder in which there is no model yet."""
    if (folder / HEADER).exists():
        raise InputError(f"{folder} already holds a model; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in reversed(files_of(header, arrays).items()):  # the header last: a model without arrays is none
            (folder / name).write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write a model to {folder}: {error.strerror}") from None
    return folder


# --- reading -----------------------------------------------------------------------------------------------------------


def read_model(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a model: a folder, or the ``model.json`` in one."""
    folder = path if path.is_dir() else path.parent
    text = _bytes(folder / HEADER if path.is_dir() else path, MOST_HEADER)
    try:
        header = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not a Sfumato model: {HEADER} is no JSON that can be read") from None
    check_header(header, path)
    data = _bytes(folder / ARRAYS, MOST_ARRAYS)
    if hashlib.sha256(data).hexdigest() != header.get("arrays_sha256"):
        raise InputError(f"{folder / ARRAYS} is not the file that {HEADER} speaks of: it was changed, or belongs to another")
    return header, unpacked(data, header["arrays"], folder / ARRAYS)


def check_header(header: Any, path: Any) -> None:
    """Refuse what is no model, or one of a version that is not known here."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path} is not a Sfumato model: its format is not {FORMAT!r}")
    if header.get("format_version") != VERSION:
        raise InputError(
            f"{path} is a model of format version {header.get('format_version')!r}; this Sfumato reads version {VERSION}: "
            "use the version that wrote it"
        )
    if not isinstance(header.get("arrays"), dict):
        raise InputError(f"{path} is not a Sfumato model: it does not list its arrays")


def unpacked(data: bytes, listed: Mapping[str, Any], path: Any) -> Arrays:
    """The arrays of an ``.npz`` file, exactly those that are listed, with their types and shapes."""
    try:
        return _unpacked(data, listed)
    except Exception:  # whatever is wrong with an archive: zipfile and numpy have many words for it
        pass
    raise InputError(f"{path} does not hold the arrays that {HEADER} lists; get the model again from whoever released it")


def _unpacked(data: bytes, listed: Mapping[str, Any]) -> Arrays:
    arrays: Arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if sorted(m.filename for m in members) != sorted(f"{name}.npy" for name in listed):
            raise ValueError("other members")
        if any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members):
            raise ValueError("compressed")
        if sum(m.file_size for m in members) > len(data):
            raise ValueError("overlapping")
        for member in members:
            stated = listed[member.filename.removesuffix(".npy")]
            arrays[member.filename.removesuffix(".npy")] = _array(archive.read(member), stated)
    return arrays


def _array(data: bytes, stated: Mapping[str, Any]) -> NDArray[Any]:
    """One array, once its own header says what the model's does."""
    kind, shape = stated["dtype"], tuple(stated["shape"])
    if kind not in _TYPES or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape) or len(shape) > 8:
        raise ValueError("no such array")
    member = io.BytesIO(data)
    if np.lib.format.read_magic(member) != (1, 0):
        raise ValueError("no array")
    found, columns_first, dtype = np.lib.format.read_array_header_1_0(member, max_header_size=10_000)
    if found != shape or dtype.str != kind or columns_first:
        raise ValueError("another array")
    left = data[member.tell() :]
    if len(left) != math.prod(shape) * dtype.itemsize:
        raise ValueError("another length")
    array = np.frombuffer(left, dtype=dtype).reshape(shape).copy()
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("not a number")
    return array


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Row by row, in one of the few types of the format."""
    kind = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}[array.dtype.kind]
    return np.ascontiguousarray(array).astype(kind).reshape(array.shape)


def _bytes(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise InputError(f"{path} has {path.stat().st_size:,} bytes; a model file has at most {most:,}")
        with path.open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise InputError(f"there is no {path.name} in {path.parent}; a model is a {HEADER} with its {ARRAYS}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
