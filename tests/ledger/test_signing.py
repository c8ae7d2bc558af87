"""Keys: made once, kept to oneself, followed from one to the next; and what they sign cannot be changed."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InputError, LedgerError
from sfumato.ledger.signing import Keys, keys_at, signed_json, trusted, verify_signed


def test_keys_are_made_once_and_read_by_their_owner_alone(tmp_path: Path) -> None:
    keys = Keys.opened(tmp_path / "keys")
    again = Keys.opened(tmp_path / "keys")
    assert keys.current == again.current
    (path,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    private = json.loads(path.read_text())["private"]
    assert private not in json.dumps(keys.public())
    assert "private" not in keys.public()[0]


def test_a_new_key_signs_at_once_everywhere_and_old_signatures_stay(tmp_path: Path) -> None:
    keys, elsewhere = Keys.opened(tmp_path), Keys.opened(tmp_path)
    old = signed_json(keys, {"a": 1})
    first = keys.current
    second = elsewhere.rotate()
    new = signed_json(keys, {"a": 1})
    assert [old["signature"]["key_id"], new["signature"]["key_id"]] == [first, second]
    listed = trusted(keys.public())
    assert [verify_signed(one, listed) for one in (old, new)] == [first, second]
    with pytest.raises(InputError, match=second):
        verify_signed(new, listed[:1])
    third = keys.rotate()
    assert [key["key_id"] for key in trusted({"keys": keys.public()})] == [first, second, third]
    assert trusted(keys.public()[1:])  # who begins with a later one trusts that


def test_a_key_that_nobody_signed_is_not_followed(tmp_path: Path) -> None:
    keys, strangers = Keys.opened(tmp_path / "a"), Keys.opened(tmp_path / "b")
    strangers.rotate()
    keys.rotate()
    forged = [keys.public()[0], strangers.public()[1]]
    with pytest.raises(InputError, match="has signed it"):
        trusted(forged)
    renamed = {**strangers.public()[1], "follows": keys.public()[0]["key_id"]}
    with pytest.raises(InputError, match="has signed it"):
        trusted([keys.public()[0], renamed])
    for field in ("key_id", "ed25519", "since", "signature"):
        one = dict(keys.public()[1])
        one[field] = one[field][:-1] + ("0" if one[field][-1] != "0" else "1")
        with pytest.raises(InputError):
            trusted([keys.public()[0], one])


@pytest.mark.parametrize("change", [{"a": 2}, {"b": 1}, {"a": "1"}, {"a": 1.0}, {"a": True}])
def test_what_was_signed_cannot_change(tmp_path: Path, change: dict[str, Any]) -> None:
    keys = Keys.opened(tmp_path)
    signed = signed_json(keys, {"a": 1})
    assert verify_signed(json.loads(json.dumps(signed)), keys.public()) == keys.current
    with pytest.raises(InputError, match="was changed"):
        verify_signed({**signed, **change}, keys.public())


@pytest.mark.parametrize(
    "signature",
    [None, {}, {"key_id": "a"}, {"key_id": "a", "ed25519": "b", "c": 1}, "x", {"key_id": ["a"], "ed25519": 1}],
)
def test_what_is_not_a_signature(tmp_path: Path, signature: Any) -> None:
    with pytest.raises(InputError):
        verify_signed({"a": 1, "signature": signature}, Keys.opened(tmp_path).public())


def test_a_signature_has_one_spelling(tmp_path: Path) -> None:
    keys = Keys.opened(tmp_path)
    signed = signed_json(keys, {"a": 1})
    text = signed["signature"]["ed25519"]
    for other in (text.upper(), text + " ", text[:2] + " " + text[2:], "0x" + text):
        forged = {**signed, "signature": {**signed["signature"], "ed25519": other}}
        with pytest.raises(InputError, match="was changed"):
            verify_signed(forged, keys.public())


def test_a_damaged_key_says_so(tmp_path: Path) -> None:
    keys = Keys.opened(tmp_path)
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "private": "00" * 32}))
    with pytest.raises(LedgerError, match="damaged"):
        keys.sign(b"a")
    path.write_text("{}")
    with pytest.raises(LedgerError, match="cannot be read"):
        keys.sign(b"a")


def test_many_at_once_make_one_key(tmp_path: Path) -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(Keys.opened(tmp_path / "keys").current)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert len(list((tmp_path / "keys").iterdir())) == 1


def test_the_environment_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys_at(None) is None
    monkeypatch.setenv("SFUMATO_SIGNING_KEYS", str(tmp_path / "keys"))
    found = keys_at(None)
    assert found is not None
    assert found.folder == tmp_path / "keys"
