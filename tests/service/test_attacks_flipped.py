"""A flipped byte anywhere in what a recipient downloads: certificate, figures, proof or checkpoint.

The release was made by the runner, downloaded over HTTP and is checked without the service, as a recipient would.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.releases import verify
from support.service_world import World

FLIPS = 40


@pytest.fixture(scope="module")
def downloaded(clinics: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `release` with the bundle, and beside it the keys and a checkpoint."""
    place, client = tmp_path_factory.mktemp("downloaded"), clinics.client("analyst")
    things = clinics.things["analyst"]
    bundle = client.get(f"/v1/releases/{things['release']}/bundle")
    assert bundle.status_code == 200, bundle.text
    with zipfile.ZipFile(io.BytesIO(bundle.content)) as archive:
        archive.extractall(place)  # the folder `release`, and what the service puts beside it
    (place / "keys.json").write_bytes(client.get("/v1/keys").content)
    made = json.loads((place / "release" / "certificate.json").read_text())
    (place / "checkpoint.json").write_bytes(client.get(f"/v1/log/{things['dataset']}/checkpoint").content)
    kept = json.loads((place / "checkpoint.json").read_text())
    query = {"old": made["log"]["checkpoint"]["size"], "new": kept["size"]}
    (place / "consistency.json").write_bytes(client.get(f"/v1/log/{things['dataset']}/consistency", params=query).content)
    return place


def _holds(place: Path) -> bool:
    """Whether everything is believed."""
    beside = {name: place / f"{name}.json" for name in ("keys", "checkpoint", "consistency")}
    try:
        return verify(place / "release", **beside).holds
    except SfumatoError:
        return False


def test_what_was_downloaded_is_verified(downloaded):
    assert _holds(downloaded)


def test_a_flipped_byte_anywhere_is_noticed(downloaded, tmp_path):
    """Bytes all over every file, each with one bit flipped; never an error of ours, and never believed."""
    place = tmp_path / "copy"
    shutil.copytree(downloaded, place)
    believed = []
    # Not the keys: they are what a recipient trusts to begin with; see below for other keys.
    proofs = [place / "checkpoint.json", place / "consistency.json"]
    for file in sorted([*(file for file in (place / "release").rglob("*") if file.is_file()), *proofs]):
        right = file.read_bytes()
        step = max(1, len(right) // (FLIPS if file.suffix == ".json" else FLIPS // 6))
        for number in range(step // 2, len(right), step):
            wrong = bytearray(right)
            wrong[number] ^= 1 << (number % 7)
            file.write_bytes(wrong)
            if _holds(place):
                believed.append((file.name, number, right[max(0, number - 20) : number + 20]))
        file.write_bytes(right)
    assert _holds(place)
    assert [(name, at.decode("utf-8", "replace")) for name, _, at in believed] == []


def test_a_certificate_of_another_release_is_not_believed(clinics, downloaded, tmp_path):
    """Each is right in itself; put together they are not."""
    place, client = tmp_path / "mixed", clinics.client("officer")
    shutil.copytree(downloaded, place)
    other = client.get(f"/v1/releases/{clinics.things['custodian']['release']}/files/certificate.json")
    (place / "release" / "certificate.json").write_bytes(other.content)
    assert not _holds(place)


def test_keys_of_another_house_are_not_believed(downloaded, tmp_path):
    from sfumato.ledger.signing import Keys

    place = tmp_path / "elsewhere"
    shutil.copytree(downloaded, place)
    (place / "keys.json").write_text(json.dumps({"keys": Keys.opened(tmp_path / "others").public()}))
    assert not _holds(place)
