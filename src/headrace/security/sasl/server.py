"""The server's side of a SASL login, independent of connections.

An exchange receives the client's messages in order and returns an answer to each, until it is
complete or raises. `SaslAuthenticationFailed` has a text for the client. `LoginRejected` has one
for this node only, because it may reveal which part of the credentials was wrong.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from headrace.errors import HeadraceError
from headrace.security.principals import Principal


class LoginRejected(HeadraceError):
    """Invalid credentials or an invalid message; the client gets a general text."""


class Login(msgspec.Struct, frozen=True):
    """The result of a complete exchange."""

    principal: Principal
    expires_at_ms: int | None = None
    """The end of a token's life; None for credentials that do not expire."""
    extensions: Mapping[str, str] = {}


class ServerExchange(Protocol):
    """One authentication from the server's side."""

    login: Login | None
    """The result; None until the exchange is complete."""

    def answer(self, message: bytes) -> bytes:
        """Take a message of the client and return the answer."""
        ...


NewExchange = Callable[[], ServerExchange]
"""Starts an exchange of one mechanism on one listener."""


def decoded(message: bytes) -> str:
    """Decode a message; raise `LoginRejected` for bytes that are not text."""
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise LoginRejected("the message is not UTF-8 text") from None
