"""What a recipient can check of an artefact folder by themselves: no ledger, no table, no network.

The certificate names every file with its digest, so a file that was changed, lost or slipped in is found. What the
certificate says must also hold together: the figures are those of the tables beside them, the promise in words is the one
that follows from its parts, no step lost more than the whole, and nothing is promised beyond what was charged. Whoever
rewrites the certificate too can make all of that agree, unless it is signed: give the custodian's public keys, or compare
its digest, which is shown, with the custodian's ledger. What it proves of the ledger's log is in `sfumato.releases.proving`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.errors import InputError, SfumatoError
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.units import nano_of
from sfumato.releases.certificate import CERTIFICATE_VERSION
from sfumato.releases.folder import CERTIFICATE, DATA, certificate_text, read_certificate
from sfumato.releases.proving import FIRST_WITH_LOG, Check, Known, log_checks
from sfumato.results import Result, load_result

__all__ = ["Check", "Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """All that could be checked of a folder.

    Attributes
    ----------
    folder : Path
    digest : str
        The SHA-256 of the certificate, to compare with the custodian's.
    checks : tuple of Check
    """

    folder: Path
    digest: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check does."""
        return all(check.holds for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        about: dict[str, Any] = {"folder": str(self.folder), "certificate_sha256": self.digest, "holds": self.holds}
        return about | {"checks": [check.to_dict() for check in self.checks]}


def verify(
    folder: str | Path,
    *,
    keys: str | Path | Sequence[Mapping[str, Any]] | None = None,
    checkpoint: str | Path | Mapping[str, Any] | None = None,
    consistency: str | Path | Mapping[str, Any] | None = None,
) -> Verification:
    """Check an artefact folder without its ledger.

    Parameters
    ----------
    folder : path
        As a release wrote it, wherever it lies now.
    keys : path or sequence, optional
        The custodian's public keys: a file as ``GET /v1/keys`` gives it, or what `Keys.public` gives. With them the
        signature is checked, and there must be one.
    checkpoint : path or mapping, optional
        A checkpoint of the ledger's log that was kept, older or newer than the certificate.
    consistency : path or mapping, optional
        The proof that the older one of the two logs is the beginning of the newer one, as the service gives it.

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        If there is no certificate to check it by.
    """
    place = Path(folder)
    made = read_certificate(place)
    if made is None:
        raise InputError(
            f"{place} holds no readable {CERTIFICATE}: give the folder of a release, as `sfumato release` wrote it"
        )
    raw = (place / CERTIFICATE).read_bytes()
    known = Known.read(keys, checkpoint, consistency)
    checks = [*_checks(place, made), *_spelling(made, raw), *log_checks(made, known)]
    return Verification(place, hashlib.sha256(raw).hexdigest(), tuple(checks))


def _checks(folder: Path, made: Mapping[str, Any]) -> Iterator[Check]:
    yield from _software(made)
    yield from _files(folder, made)
    result, why = _result(folder)
    yield Check("the figures can be read", result is not None, why)
    if result is not None:
        yield _tables(folder, result)
    yield from _promise(made, result)


def _software(made: Mapping[str, Any]) -> Iterator[Check]:
    version = made.get("certificate_version")
    known = isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= CERTIFICATE_VERSION
    words = f"version {version!r}; this sfumato knows 1 to {CERTIFICATE_VERSION}"
    yield Check("the certificate's format is known", known, words if known else f"{words}: install a newer one")
    software = made.get("software")
    by = software if isinstance(software, Mapping) else {}
    name, number = str(by.get("name")), str(by.get("version"))
    same = "the same as here" if number == __version__ else f"here is {__version__}"
    yield Check("made by sfumato", name == "sfumato" and number.isprintable(), f"{name} {number}, {same}"[:120])


def _spelling(made: Mapping[str, Any], raw: bytes) -> Iterator[Check]:
    """Nothing is in the file that its reader does not see: a blank more, or a key twice."""
    version = made.get("certificate_version")
    if isinstance(version, int) and version < FIRST_WITH_LOG:
        return
    same = certificate_text(made).encode("utf-8", "replace") == raw
    yield Check("the certificate is spelt as it was", same, "byte by byte" if same else "it was written by something else")


def _files(folder: Path, made: Mapping[str, Any]) -> Iterator[Check]:
    listed = made.get("files")
    if not isinstance(listed, Mapping) or DATA not in listed:
        yield Check("the files are listed with their digests", False, f"the certificate lists no {DATA}")
        return
    for name, expected in listed.items():
        yield _file(folder, str(name), expected)
    beside = {p.name for p in folder.iterdir()} - {CERTIFICATE, *map(str, listed)}
    # A report from before its digest was kept, and what somebody made of it, are no part of the release.
    strange = sorted(beside - {"report.html", "report.pdf"})
    found = f"not in the certificate: {', '.join(strange[:5])}" if strange else f"{len(listed)} files"
    yield Check("nothing else lies in the folder", not strange, found)
    if "report.html" in beside:
        yield Check("the report is covered", False, "report.html is not listed: read the figures from the other files")


def _file(folder: Path, name: str, expected: Any) -> Check:
    what = f"{name[:80]} is as it was written"
    if Path(name).name != name or not name.isprintable():  # a certificate is a file that anybody may have written
        return Check("a listed file lies in the folder", False, "its name leads elsewhere")
    try:
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return Check(what, False, "it is missing or cannot be read")
    return Check(what, found == expected, "the digest agrees" if found == expected else "its digest is another one")


def _result(folder: Path) -> tuple[Result | None, str]:
    try:
        result = load_result(json.loads((folder / DATA).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, SfumatoError, RecursionError) as error:
        return None, f"{DATA} is no result of a release ({type(error).__name__})"
    return result, type(result).__name__


def _tables(folder: Path, result: Result) -> Check:
    """The Parquet table is the one that the figures make."""
    import pandas as pd

    what = "the table holds the same figures"
    try:
        expected, found = result.to_frame(), pd.read_parquet(folder / "data.parquet")
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False, check_column_type=False)
    except FileNotFoundError:
        return Check(what, False, "data.parquet is missing")
    except Exception as error:  # whatever a damaged table makes its reader say
        return Check(what, False, f"data.parquet differs ({type(error).__name__})")
    return Check(what, True, f"{len(found):,} rows")


def _promise(made: Mapping[str, Any], result: Result | None) -> Iterator[Check]:
    stated = made.get("guarantee")
    try:
        promise = Guarantee.from_dict(stated if isinstance(stated, Mapping) else {})
        charged = made["charged"]
        price = nano_of(charged["epsilon"])
        most = {str(name): nano_of(loss) for name, loss in charged.get("attributes", {}).items()}
    except (SfumatoError, KeyError, TypeError, ValueError, AttributeError):
        yield Check("the promise can be read", False, "the certificate's guarantee or charge is not in its form")
        return
    assert isinstance(stated, Mapping)
    words = "the words follow from the figures"
    same = stated.get("sentence") == promise.sentence() and stated.get("private") is promise.private
    yield Check(words, same, f"ε {promise.epsilon:f}" if same else "they say something else than the figures beside them")
    losses = [int(step.loss) for step in promise.steps]
    fits = not losses or max(losses) <= promise.nano <= sum(losses)
    yield Check("the steps lead to the promised ε", fits, f"{len(losses)} noisy steps")
    beyond = promise.nano > price or any(loss > most.get(name, price) for name, loss in promise.attributes.items())
    yield Check("no more was used than charged", not beyond, f"ε {promise.epsilon:f} of {charged['epsilon']} charged")
    if result is not None:
        own = json.loads(json.dumps(result.guarantee.to_dict())) == json.loads(json.dumps(dict(stated)))
        yield Check("figures and certificate promise the same", own, "the same" if own else "they differ")
    yield Check(
        "the release is private", promise.private, "yes" if promise.private else "; ".join(promise.not_private)[:200]
    )
