"""The credentials of a node, from its settings."""

from pathlib import Path

import pytest

from headrace.errors import SaslAuthenticationFailed
from headrace.peers.own_login import own_login
from headrace.settings.broker_loading import load
from headrace.settings.listener_logins import MechanismSettings


def settings_of(mechanism: str, options: str) -> MechanismSettings:
    name = f"listener.name.in.{mechanism.lower()}.sasl.jaas.config"
    settings = load({name: f"x.LoginModule required {options};"})[0]
    return MechanismSettings(settings, "IN", mechanism)


def test_no_login_is_needed_without_sasl() -> None:
    assert own_login(None) is None


def test_plain_sends_name_and_password() -> None:
    login = own_login(settings_of("PLAIN", 'username="node" password="secret"'))
    assert login is not None
    assert next(login.exchange()) == b"\0node\0secret"
    assert "secret" not in repr(login)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_begins_each_time_with_another_nonce(mechanism: str) -> None:
    login = own_login(settings_of(mechanism, 'username="node" password="secret"'))
    assert login is not None
    first, second = next(login.exchange()), next(login.exchange())
    assert first.startswith(b"n,,n=node,r=")
    assert first != second


def test_a_token_comes_from_a_file_that_may_change(tmp_path: Path) -> None:
    path = tmp_path / "token"
    login = own_login(settings_of("OAUTHBEARER", f'tokenFile="{path}"'))
    assert login is not None
    with pytest.raises(SaslAuthenticationFailed, match="cannot be read"):
        login.exchange()
    for token in ("a.b.c", "d.e.f"):
        path.write_text(f"{token}\n")
        assert f"Bearer {token}".encode() in next(login.exchange())
