"""Authentication and roles: bearer tokens, users with passwords, client certificates.

A token file may contain several tokens, one per line, so that a new one can be handed out before
the old one is withdrawn. `NAME:TOKEN` names the holder of a token, and a holder may have several.
Files are read once, at the start. Secrets are compared in constant time.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.http.errors import Forbidden, Render, Unauthorized, rendered
from headrace.http.tls import certificate_principal
from headrace.http.users import UserFile, secret_lines

SCOPE_KEY = "headrace.principal"
_FILE_BYTES_MAX = 1 << 16


class InvalidTokenFile(HeadraceError):
    """A token file that is unreadable or has no valid token."""


class Role(IntEnum):
    """Roles in ascending order; each includes those before it."""

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated name, and its password if one proved it; `repr` hides the password."""

    name: str
    password: str | None = field(default=None, repr=False)


def principal_of(scope: Mapping[str, Any]) -> Principal | None:
    """Return the sender of a request; None where the server asks for no authentication."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Principal) else None


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles by principal, and the role of everyone else; None refuses them."""

    by_name: Mapping[str, Role] = field(default_factory=dict)
    default: Role | None = Role.ADMIN

    def check(self, principal: Principal | None, needed: Role) -> None:
        role = self.default if principal is None else self.by_name.get(principal.name, self.default)
        if role is None or role < needed:
            raise Forbidden(f"this needs the role {needed.name.lower()}")


UNRESTRICTED = Roles()


@dataclass(frozen=True, slots=True)
class KnownToken:
    """The holder of a token and its digest; the token itself is not kept."""

    holder: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class TokenFile:
    tokens: tuple[KnownToken, ...]
    is_open_to_others: bool
    path: Path | None = None

    def holder(self, token: str) -> str | None:
        """Return the holder of a token, in the same time for every token."""
        digest = _digest(token)
        matches = [one.holder for one in self.tokens if hmac.compare_digest(digest, one.digest)]
        return matches[0] if matches else None


def read_tokens(path: Path) -> TokenFile:
    """Read tokens, one per line."""
    lines, is_open = secret_lines(path, "token file", _FILE_BYTES_MAX, InvalidTokenFile)
    tokens = tuple(_known_token(path, number, line) for number, line in lines)
    if not tokens:
        raise InvalidTokenFile(f"the token file {path} has no token; write one per line")
    return TokenFile(tokens, is_open, path)


def _known_token(path: Path, number: int, line: str) -> KnownToken:
    # A token contains no colon (RFC 6750), so text before a colon is a name.
    name, separator, token = (part.strip() for part in line.partition(":"))
    if not separator:
        return KnownToken(f"token-{number}", _digest(line))
    if not name or not token or ":" in token:
        raise InvalidTokenFile(
            f"line {number} of the token file {path} is neither TOKEN nor NAME:TOKEN"
        )
    return KnownToken(name, _digest(token))


@dataclass(frozen=True, slots=True)
class Authentication:
    """The accepted ways to authenticate, one of which is enough; without any, access is open."""

    tokens: TokenFile | None = None
    users: UserFile | None = None
    certificates: bool = False
    """Accept client certificates; TLS has verified them before."""

    @property
    def is_open(self) -> bool:
        return self.tokens is None and self.users is None and not self.certificates


OPEN = Authentication()


class Access:
    """Passes authenticated requests and WebSockets on, and all requests for open paths."""

    def __init__(
        self,
        app: ASGIApp,
        authentication: Authentication,
        open_paths: Collection[str] = (),
        render: Render = rendered,
    ) -> None:
        self._app = app
        self._authentication = authentication
        self._open_paths = frozenset(open_paths)
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        principal = await self._authenticated(scope)
        if principal is not None:
            scope[SCOPE_KEY] = principal  # Not in a copy: the request counter reads this scope.
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # Refused before it opens: the client sees a 403.
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        await self._render(self._refusal())(scope, receive, send)

    async def _authenticated(self, scope: Scope) -> Principal | None:
        if self._authentication.certificates and (name := certificate_principal(scope)) is not None:
            return Principal(name)
        given = HTTPConnection(scope).headers.getlist("authorization")
        if self._authentication.tokens is not None and (
            holder := _holder(given, self._authentication.tokens)
        ):
            return Principal(holder)
        users, claim = self._authentication.users, _basic(given)
        if users is None or claim is None:
            return None
        if not users.remembers(*claim):
            # A password hash takes too long for the event loop.
            if not await asyncio.to_thread(users.accepts, *claim):
                return None
            users.remember(*claim)
        return Principal(*claim)

    def _refusal(self) -> Unauthorized:
        ways, challenges = [], []
        if self._authentication.tokens is not None:
            ways.append("the header `Authorization: Bearer TOKEN` with a valid token")
            challenges.append("Bearer")
        if self._authentication.users is not None:
            ways.append("a user and a password (Basic authentication)")
            challenges.append('Basic realm="headrace", charset="UTF-8"')
        if self._authentication.certificates:
            ways.append("a client certificate by TLS")
        return Unauthorized(
            f"authentication is required: send {', or '.join(ways)}",
            headers={"WWW-Authenticate": ", ".join(challenges)} if challenges else {},
        )


def _holder(given: Sequence[str], tokens: TokenFile) -> str | None:
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(" ")
    return tokens.holder(token.strip()) if scheme.lower() == "bearer" else None


def _basic(given: Sequence[str]) -> tuple[str, str] | None:
    """Return the user and the password of a Basic header."""
    if len(given) != 1:
        return None
    scheme, _, text = given[0].partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, separator, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (name, password) if separator else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
