"""Principals: the identities that authentication gives to clients."""

from typing import NamedTuple

import msgspec

USER = "User"
GROUP = "Group"
"""The type of principals in rules that apply to all members of a group."""


class Principal(msgspec.Struct, frozen=True, gc=False):
    """An identity, such as `User:ada`."""

    type: str
    name: str
    is_token_authenticated: bool = False
    """True if the client used a delegation token, with which it cannot create others."""
    groups: tuple[str, ...] = ()
    """The groups that a token or certificate names."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of every client that does not authenticate."""


class Caller(NamedTuple):
    """The principal that sent a request, and the address it came from."""

    principal: Principal
    host: str
    client_id: str = ""
    """The client id of the request, by which quotas are found; empty where nothing needs it."""


UNKNOWN_CALLER = Caller(ANONYMOUS, "127.0.0.1")
"""The caller of requests that a node makes for itself."""


def parse_principal(text: str) -> Principal:
    """Return the principal of a text such as `User:ada`; raise `ValueError` for others."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r} is not a principal; write it as User:name")
    return Principal(kind, name)
