"""Keys that sign checkpoints and certificates: Ed25519, one file each, the newest one signs.

A key's id is the beginning of the SHA-256 of its public half. A new key is signed by the one before it: who trusts one
key can follow to its successors; what older keys signed stays valid. The folder belongs to whoever runs the ledger and lies
apart from its database: somebody who can write to the database alone can sign nothing.

What is signed is canonical JSON behind a word that says what it is for, so that a signature made for one purpose never
passes for another.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import clock

ENVIRONMENT = "SFUMATO_SIGNING_KEYS"
_JSON, _KEY = b"sfumato-signed-json-v1\0", b"sfumato-key-v1\0"
_ID_LENGTH = 16
_FILE = re.compile(r"\A\d{6}\.json\Z")


@dataclass(frozen=True)
class Signature:
    """A signature and the key that made it.

    Attributes
    ----------
    key_id : str
    signature : str
        Hexadecimal.
    """

    key_id: str
    signature: str

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"key_id": self.key_id, "ed25519": self.signature}


class Keys:
    """The signing keys in a folder. Open them with `Keys.opened`.

    Parameters
    ----------
    folder : Path
        Where they are; it is looked at anew for each signature, so that every process uses a new key at once.

    Examples
    --------
    >>> folder = tempfile.TemporaryDirectory()
    >>> keys = Keys.opened(folder.name)
    >>> signed = signed_json(keys, {"a": 1})
    >>> verify_signed(signed, keys.public()) == keys.current
    True
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def opened(cls, folder: str | Path) -> Keys:
        """The keys in a folder; the first one is made if there is none."""
        keys = cls(Path(folder).expanduser().absolute())
        try:
            keys.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LedgerError(f"cannot make the folder for signing keys {keys.folder}: {error.strerror}") from error
        if not keys._files():
            keys._make(1, None)
        return keys

    @property
    def current(self) -> str:
        """The id of the key that signs."""
        return str(_read(self._files()[-1])["key_id"])

    def sign(self, data: bytes) -> Signature:
        """Sign bytes with the newest key; begin them with a word that says what they are."""
        path = self._files()[-1]
        key = _read(path)
        return Signature(key["key_id"], _private(key, path).sign(data).hex())

    def public(self) -> list[dict[str, Any]]:
        """The public halves, oldest first, each signed by the one before it: for whoever checks signatures."""
        return [{k: v for k, v in _read(path).items() if k != "private"} for path in self._files()]

    def rotate(self) -> str:
        """Make a new key that signs from now on; returns its id."""
        files = self._files()
        return self._make(len(files) + 1, files[-1])

    def _files(self) -> list[Path]:
        return [path for path in sorted(self.folder.iterdir()) if _FILE.match(path.name)]

    def _make(self, number: int, before: Path | None) -> str:
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        about: dict[str, Any] = {"key_id": key_id_of(public), "ed25519": public.hex(), "since": clock.now()}
        if before is not None:
            earlier = _read(before)
            about["follows"] = earlier["key_id"]
            about["signature"] = _private(earlier, before).sign(_KEY + _canonical(about)).hex()
        target = self.folder / f"{number:06d}.json"
        text = json.dumps({**about, "private": private.private_bytes_raw().hex()}, indent=1) + "\n"
        write_durably(target, text, replace=False)  # if another process made one at the same moment, that is the one
        return str(_read(target)["key_id"])


def keys_at(folder: str | Path | None) -> Keys | None:
    """The keys in a folder, or where the environment says, or none."""
    said = folder or os.environ.get(ENVIRONMENT)
    return Keys.opened(said) if said else None


def key_id_of(public: bytes) -> str:
    """The short name of a public key."""
    return sha256(public).hexdigest()[:_ID_LENGTH]


def signed_json(keys: Keys, body: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with a ``signature`` over all the rest of it.

    Parameters
    ----------
    keys : Keys
    body : mapping
        What JSON can hold; a signature in it is replaced.
    """
    plain = {k: v for k, v in body.items() if k != "signature"}
    return {**plain, "signature": keys.sign(_JSON + _canonical(plain)).to_dict()}


def verify_signed(body: Mapping[str, Any], public_keys: Iterable[Mapping[str, Any]]) -> str:
    """The id of the key that signed a JSON object; raises if none of `public_keys` did.

    Parameters
    ----------
    body : mapping
        As `signed_json` made it.
    public_keys : iterable of mapping
        As `Keys.public` gives them; check them with `trusted` first.

    Raises
    ------
    InputError
        If it is not signed, was changed, or was signed by a key that is not among them.
    """
    stated = body.get("signature")
    if not isinstance(stated, Mapping) or set(stated) != {"key_id", "ed25519"}:
        raise InputError("this is not signed; ask whoever issued it for one that is")
    known = {str(key["key_id"]): str(key["ed25519"]) for key in public_keys}
    key_id = str(stated["key_id"])
    if key_id not in known:
        raise InputError(
            f"this was signed with the key {key_id[:64]!r}, and the keys given are {', '.join(sorted(known)) or 'none'}; "
            "ask the custodian for the present keys (GET /v1/keys) and check that one you know has signed the new one"
        )
    plain = {k: v for k, v in body.items() if k != "signature"}
    if not _holds(known[key_id], str(stated["ed25519"]), _JSON + _canonical(plain)):
        raise InputError(f"the signature does not fit: this was changed after the key {key_id} signed it")
    return key_id


def trusted(listed: Any) -> list[dict[str, Any]]:
    """Public keys from a file, once each but the first is signed by one before it.

    Parameters
    ----------
    listed : list, or mapping with a list under ``keys``
        As `Keys.public` gives it, or ``GET /v1/keys``. A single key, without those before it, is taken as it is.
    """
    found = listed.get("keys") if isinstance(listed, Mapping) else listed
    known: dict[str, dict[str, Any]] = {}
    for key in found if isinstance(found, list) else ():
        if not isinstance(key, Mapping) or not isinstance(key.get("ed25519"), str):
            raise InputError("the file of keys is not one: it lists public keys as GET /v1/keys gives them")
        try:
            right = key_id_of(bytes.fromhex(key["ed25519"]))
        except ValueError:
            right = ""
        if key.get("key_id") != right:
            raise InputError("a key in the file does not have the id it says; get the keys again, from a place you trust")
        if known:
            before = known.get(str(key.get("follows")))
            rest = {k: v for k, v in key.items() if k != "signature"}
            signed = _KEY + _canonical(rest)
            if before is None or not _holds(before["ed25519"], str(key.get("signature")), signed):
                raise InputError(
                    f"no key before {right} in the file has signed it; get the keys again, from a place you trust"
                )
        known[right] = dict(key)
    if not known:
        raise InputError("the file of keys lists none; it holds public keys as GET /v1/keys gives them")
    return list(known.values())


def _canonical(body: Mapping[str, Any]) -> bytes:
    # Figures of a release may be infinite; these words for them are Python's.
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _holds(public: str, signature: str, data: bytes) -> bool:
    try:
        if bytes.fromhex(signature).hex() != signature:  # one spelling only
            return False
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if key_id_of(bytes.fromhex(found["ed25519"])) != found["key_id"]:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerError(f"the signing key {path} cannot be read; bring it back from a backup") from None
    return found


def _private(found: Mapping[str, Any], path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(found.get("private", "")) or bytes(32))
    if key.public_key().public_bytes_raw().hex() != found["ed25519"]:
        raise LedgerError(f"the signing key {path} is damaged; bring it back from a backup")
    return key


def write_durably(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that only its owner reads: whole or not at all, and on disk when this returns.

    `replace` says whether it may take the place of another one; if not, that one stays.
    """
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(draft, path)
        else:
            with suppress(FileExistsError):
                os.link(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
