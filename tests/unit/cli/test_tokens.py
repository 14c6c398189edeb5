"""Logins and arguments of `headrace tokens`."""

import click
import pytest

from headrace.cli.tokens import login_settings, principal, secret_of
from headrace.client.tokens import Token, Tokens
from headrace.errors import HeadraceError
from headrace.security.principals import Principal

TOKEN = Token(
    id="abc",
    secret="c2VjcmV0",
    owner="User:ada",
    issued_at_ms=0,
    expires_at_ms=1,
    max_ends_at_ms=2,
)


class Listed(Tokens):
    """The tokens of a cluster that has one."""

    def __init__(self) -> None: ...

    def describe(self, owners: object = None) -> list[Token]:
        return [TOKEN]


def test_a_token_logs_in_by_its_id_and_secret() -> None:
    """SEC-5: Java's clients recognise a token by `tokenauth`."""
    login = login_settings(TOKEN)["sasl.jaas.config"]
    assert login.endswith('username="abc" password="c2VjcmV0" tokenauth="true";')


def test_a_token_is_named_by_its_id() -> None:
    assert secret_of(Listed(), "abc") == "c2VjcmV0"
    with pytest.raises(HeadraceError, match="headrace tokens list"):
        secret_of(Listed(), "abd")


def test_a_principal_may_leave_out_its_type() -> None:
    assert principal("ada") == Principal("User", "ada")
    with pytest.raises(click.BadParameter):
        principal("User:")
