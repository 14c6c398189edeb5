"""PLAIN from both sides."""

import pytest

from headrace.errors import InvalidConfig, SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl.plain import PlainServer, authenticate, users_of
from headrace.security.sasl.server import LoginRejected
from headrace.security.sasl.users_file import UsersFile, parse_users

USERS = {"ada": "secret", "grüße": "пароль"}


def server() -> PlainServer:
    return PlainServer(USERS.get)


@pytest.mark.parametrize("name", USERS)
def test_the_right_password_logs_a_user_in(name: str) -> None:
    exchange = server()
    assert exchange.answer(next(authenticate(name, USERS[name]))) == b""
    assert exchange.login is not None
    assert exchange.login.principal == Principal(USER, name)


@pytest.mark.parametrize(
    "message", [b"\0ada\0wrong", b"\0bob\0secret", b"\0ada\0secre", b"\0ADA\0secret", b"x\0bob\0x"]
)
def test_wrong_user_and_wrong_password_get_the_same_error(message: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailed) as failed:
        server().answer(message)
    assert str(failed.value) == "Authentication failed: Invalid username or password"


def test_a_user_cannot_log_in_as_another() -> None:
    assert server().answer(b"ada\0ada\0secret") == b""
    with pytest.raises(SaslAuthenticationFailed, match="different from username"):
        server().answer(b"bob\0ada\0secret")


@pytest.mark.parametrize(
    "message", [b"", b"\0ada", b"\0ada\0", b"\0\0secret", b"\0ada\0secret\0", b"\0ada\0\xff"]
)
def test_a_malformed_message_is_rejected(message: bytes) -> None:
    with pytest.raises(LoginRejected):
        server().answer(message)


def test_a_complete_exchange_takes_no_further_message() -> None:
    exchange = server()
    exchange.answer(b"\0ada\0secret")
    with pytest.raises(LoginRejected):
        exchange.answer(b"\0ada\0secret")


def test_users_come_from_options_of_jaas() -> None:
    assert users_of({"username": "admin", "user_ada": "x", "user_": "y"}) == {"ada": "x", "": "y"}


def test_a_file_of_users_has_a_user_in_each_line() -> None:
    text = "# people\n\nada = secret \nbob=a=b\n"
    assert parse_users(text) == {"ada": "secret", "bob": "a=b"}


@pytest.mark.parametrize("text", ["secret", "ada=", "=secret", "ada=1\nada=secret"])
def test_an_invalid_file_of_users_is_rejected_by_line(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"line [12] ") as refused:
        parse_users(text)
    assert "secret" not in str(refused.value)


class Disk:
    """A file whose content the test sets."""

    def __init__(self, text: str) -> None:
        self.text: str | None = text
        self.changes = 0
        self.failures: list[str] = []

    def write(self, text: str | None) -> None:
        self.text = text
        self.changes += 1

    def stamp(self) -> tuple[int, int, int] | None:
        return None if self.text is None else (0, 0, self.changes)

    def read(self) -> str:
        assert self.text is not None
        return self.text


def test_a_changed_file_replaces_the_users() -> None:
    disk = Disk("ada=1")
    users = UsersFile(disk.stamp, disk.read, disk.failures.append)
    assert not users.refresh()
    disk.write("bob=2")
    assert users.refresh()
    assert users.users == {"bob": "2"}


def test_an_invalid_or_missing_file_keeps_the_users() -> None:
    disk = Disk("ada=1")
    users = UsersFile(disk.stamp, disk.read, disk.failures.append)
    disk.write("bob")
    assert not users.refresh()
    disk.write(None)
    assert not users.refresh()
    assert users.users == {"ada": "1"}
    assert disk.failures == [
        "line 1 of the file of users is not name=password",
        "the file is missing",
    ]
