"""The configuration: file, environment, mistakes, secrets."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from sfumato.errors import InputError
from sfumato.service.context import Service
from sfumato.service.settings import Settings
from sfumato.service.settings_keys import SECTIONS, SOURCE, example, variable

SECRET = "correct-horse-7"


def written(folder: Path, text: str) -> Path:
    path = folder / "sfumato.toml"
    path.write_text(text)
    return path


def test_the_example_is_readable_as_it_is_and_with_every_key_in_use(tmp_path: Path) -> None:
    bare = Settings.read(written(tmp_path, example()), {})
    assert bare == Settings.in_folder(tmp_path / "state", file=tmp_path / "sfumato.toml", secure_cookies=False)
    told = "\n".join(
        line[2:] if line.startswith("# ") and (" = " in line or line.startswith("# [")) else line
        for line in example().splitlines()
        if not line.startswith("# #") and "like go before" not in line
    )
    document = tomllib.loads(told)
    assert {s: list(t) for s, t in document.items() if s != "sources"} == {
        s: [k.name for k in v] for s, v in SECTIONS.items()
    }
    assert list(document["sources"]["clinic"]) == [k.name for k in SOURCE]
    whole = Settings.read(written(tmp_path, told), {"METRICS_TOKEN": "m" * 20, "OIDC_SECRET": "s" * 20})
    assert whole.oidc is not None
    assert whole.oidc.client_secret == "s" * 20
    assert whole.sources["clinic"].location == str(tmp_path / "clinic.parquet")
    assert whole.database == bare.database
    assert whole.limits == bare.limits


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[service]\nstate = "here"\nport = 1\nallowed_hosts = ["a"]\n[limits]\nbody = 5000\n')
    environ = {
        "SFUMATO_SERVICE_PORT": "9",
        "SFUMATO_SERVICE_SECURE_COOKIES": "false",
        "SFUMATO_SERVICE_ALLOWED_HOSTS": "b, c",
        "SFUMATO_LIMITS_BODY": "6000",
        "SFUMATO_TEST_POSTGRES": "none of ours",
    }
    settings = Settings.read(path, environ)
    assert (settings.port, settings.secure_cookies, settings.limits.body) == (9, False, 6000)
    assert settings.hosts == ("127.0.0.1", "b", "c")
    assert settings.state == tmp_path / "here"


def test_all_mistakes_are_told_at_once_with_what_is_known(tmp_path: Path) -> None:
    wrong = """
        surprise = 1
        [service]
        stat = "x"
        port = 70000
        slot = true
        base_url = "ftp://x"
        allowed_hosts = "one"
        session_idle = 100
        session_longest = 99
        [sources."../x"]
        location = "a"
        [sources.clinic]
        place = "b"
        [oidc]
        client_id = "x"
    """
    with pytest.raises(InputError) as caught:
        Settings.read(written(tmp_path, wrong), {"SFUMATO_SERVICE_SLOTS": "1", "SFUMATO_LIMITS_BODY": "many"})
    said = str(caught.value)
    for words in (
        "unknown key 'surprise'; Known: service, limits, keys, oidc, sources",
        "unknown key 'stat'; did you mean 'state'? Known: state, database,",
        "[service] port must be a whole number from 0 to 65535",
        "[service] slot must be a whole number",
        "[service] base_url must be an address",
        "[service] allowed_hosts must be a list",
        "[service] needs `state`",
        "[sources.../x] must be named",
        "[sources.clinic] has an unknown key 'place'; Known: location,",
        "[sources.clinic] needs `location`",
        "[oidc] needs issuer, client_secret too",
        "unknown key 'SFUMATO_SERVICE_SLOTS'; did you mean 'SFUMATO_SERVICE_SLOT'?",
        "SFUMATO_LIMITS_BODY must be a whole number",
    ):
        assert words in said


@pytest.mark.parametrize(
    "line",
    [
        f'database = "postgresql://ann:{SECRET}@host/db"',
        f'ledger = "postgresql://ann:{SECRET}@host/db"',
        f'metrics_token = "{SECRET}"',
        f'metrics_token = "x${{NAME}}{SECRET}"',
    ],
)
def test_a_secret_in_the_file_is_refused_without_being_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError) as caught:
        Settings.read(written(tmp_path, f'[service]\nstate = "s"\n{line}\n'), {"NAME": "x"})
    assert "NAME_FILE" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_secrets_come_from_variables_and_files_and_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    text = """
        [service]
        state = "s"
        database = "postgresql://ann:${PW}@host/db"
        metrics_token = "${PW}"
        [sources.far]
        location = "postgresql://ann:${PW}@host/clinic"
        [oidc]
        issuer = "https://example.org"
        client_id = "x"
    """
    named = {"PW_FILE": str(tmp_path / "secret"), "SFUMATO_OIDC_CLIENT_SECRET_FILE": str(tmp_path / "secret")}
    settings = Settings.read(written(tmp_path, text), named)
    assert settings.oidc is not None
    held = [settings.database, settings.metrics_token, settings.sources["far"].location, settings.oidc.client_secret]
    assert all(SECRET in (text or "") for text in held)
    assert SECRET not in repr(settings)
    assert SECRET not in str(InputError(f"something with {SECRET}"))
    outside = {
        "SFUMATO_SERVICE_LEDGER": f"postgresql://bo:{SECRET}2@host/db",
        "SFUMATO_SERVICE_METRICS_TOKEN": "whole-secret",
    }
    settings = Settings.read(written(tmp_path, '[service]\nstate = "s"\n'), outside)
    assert settings.metrics_token == "whole-secret"
    assert "whole-secret" not in repr(settings) + str(InputError("whole-secret"))
    web = Settings.read(written(tmp_path, text), named, places=False)
    assert web.sources["far"].location == ""
    only = '[service]\nstate = "s"\n[sources.far]\nlocation = "postgresql://ann:${PW}@host/clinic"\n'
    assert list(Settings.read(written(tmp_path, only), {}, places=False).sources) == ["far"]  # it needs no secret of theirs
    with pytest.raises(InputError, match=r"names the variable \$\{PW\}, which is not set"):
        Settings.read(written(tmp_path, text), {})


def test_a_key_folder_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, '[service]\nstate = "s"\n')
    settings = Settings.read(path, {})
    Service.opened(settings)
    assert {p.name for p in settings.keys.iterdir()} >= {"service.key"}
    assert Settings.read(path, {}) == settings
    for victim in (settings.keys, settings.keys / "service.key"):
        mode = victim.stat().st_mode
        for open_to in (0o004, 0o001, 0o020):
            os.chmod(victim, mode | open_to)
            with pytest.raises(InputError, match="can be read by everybody"):
                Settings.read(path, {})
        os.chmod(victim, mode | 0o040)  # the runner's user is in the group
        Settings.read(path, {})
        os.chmod(victim, mode)


def test_the_service_is_not_its_own_source_nor_its_own_ledger(tmp_path: Path) -> None:
    same = '[service]\nstate = "s"\nledger = "s/service.db"\n[sources.x]\nlocation = "s/service.db"\n'
    with pytest.raises(InputError, match=r"(?s)the same file.*the service's own database"):
        Settings.read(written(tmp_path, same), {})


def test_no_proxy_is_everybody(tmp_path: Path) -> None:
    given = '[service]\nstate = "s"\nproxies = ["10.0.0.5", "10.0.0.0/24", "::1"{}]\n'
    assert len(Settings.read(written(tmp_path, given.format("")), {}).proxies) == 3
    for wrong in ("*", "proxy.internal", "10.0.0.0/99"):
        with pytest.raises(InputError, match=r"proxies has .* each is an address"):
            Settings.read(written(tmp_path, given.format(f', "{wrong}"')), {})


def test_every_key_has_a_variable_of_its_own() -> None:
    names = [variable(section, key) for section, keys in SECTIONS.items() for key in keys]
    assert len(set(names)) == len(names)


def test_a_source_may_have_a_time_of_its_own(tmp_path):
    lines = ["[service]", 'state = "state"', "longest = 600", "[sources.visits]", 'location = "v.parquet"']
    file = tmp_path / "sfumato.toml"
    file.write_text("\n".join([*lines, "longest = 20", "[sources.scans]", 'location = "s.parquet"']), encoding="utf-8")
    for places in (True, False):
        found = Settings.read(file, {}, places=places)
        assert [found.longest_of(name) for name in ("visits", "scans", None)] == [20, 600, 600]
    for wrong in ("0", "true", '"20"', "20.5", "10000000"):
        file.write_text("\n".join([*lines, f"longest = {wrong}"]), encoding="utf-8")
        with pytest.raises(InputError, match="longest must be a whole number of seconds"):
            Settings.read(file, {})
