"""Options of commands that serve HTTP."""

from pathlib import Path

import pytest

from headrace.cli.listener_options import ListenerOptions


def test_the_command_for_an_open_listener_needs_no_options() -> None:
    assert ListenerOptions("none").curl() == "curl"


def test_the_command_for_a_secured_listener_has_authority_and_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1: the printed command works on a node of `headrace up --secure`."""
    monkeypatch.chdir(tmp_path)
    certificate, users = tmp_path / "node-1.pem", tmp_path / "http.users"
    options = ListenerOptions("none", user_file=users, tls_certificate=certificate)
    assert options.curl() == "curl --cacert CA.crt --user NAME"
    (tmp_path / "ca.crt").touch()
    assert options.curl() == "curl --cacert ca.crt --user NAME"


def test_the_command_for_a_listener_with_tokens_sends_one(tmp_path: Path) -> None:
    options = ListenerOptions("none", token_file=tmp_path / "tokens")
    assert options.curl() == "curl --oauth2-bearer TOKEN"
