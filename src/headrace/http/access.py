"""Who may ask: bearer tokens, users with passwords, or holders of a client certificate.

A file may hold several tokens, one per line, so that a new one can be handed out before the old
one is taken away. `NAME:TOKEN` says whose a token is, and one holder may have several. Files are
read once, at the start. Secrets are compared in constant time.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.http.errors import Render, Unauthorized, rendered
from headrace.http.principals import SCOPE_KEY, Principal
from headrace.http.tls import certificate_principal
from headrace.http.users import UserFile

_FILE_BYTES_MAX = 1 << 16
_OPEN_TO_OTHERS = 0o077


class InvalidTokenFile(HeadraceError):
    """A token file that cannot be read, or holds no token."""


@dataclass(frozen=True, slots=True)
class KnownToken:
    """Whose a token is, and its digest; the token itself is not kept."""

    holder: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class TokenFile:
    tokens: tuple[KnownToken, ...]
    is_open_to_others: bool

    def holder(self, token: str) -> str | None:
        """Whose it is; compared with every token, in the same time whichever fits."""
        digest = _digest(token)
        matches = [one.holder for one in self.tokens if hmac.compare_digest(digest, one.digest)]
        return matches[0] if matches else None


def read_tokens(path: Path) -> TokenFile:
    """The tokens of a file, one per line; empty lines and those that start with # are skipped."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTokenFile(f"the token file {path} cannot be read: {error}") from error
    if len(text) > _FILE_BYTES_MAX:
        raise InvalidTokenFile(
            f"the token file {path} is longer than {_FILE_BYTES_MAX >> 10} KB; take old tokens out"
        )
    tokens = tuple(
        _known_token(path, number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    )
    if not tokens:
        raise InvalidTokenFile(f"the token file {path} holds no token; write one on a line")
    return TokenFile(tokens, bool(mode & _OPEN_TO_OTHERS))


def _known_token(path: Path, number: int, line: str) -> KnownToken:
    """A token has no colon (RFC 6750), so one can only stand behind a name."""
    name, separator, token = (part.strip() for part in line.partition(":"))
    if not separator:
        return KnownToken(f"token-{number}", _digest(line))
    if not name or not token or ":" in token:
        raise InvalidTokenFile(
            f"line {number} of the token file {path} is neither TOKEN nor NAME:TOKEN"
        )
    return KnownToken(name, _digest(token))


@dataclass(frozen=True, slots=True)
class Door:
    """What a server lets in; one of its ways is enough. Without any, everybody may enter."""

    tokens: TokenFile | None = None
    users: UserFile | None = None
    certificates: bool = False
    """Whether a client certificate is a proof; TLS has checked it before we see it."""

    @property
    def is_open(self) -> bool:
        return self.tokens is None and self.users is None and not self.certificates


class Access:
    """Lets requests and WebSockets through that fit a door, and those for paths open to all."""

    def __init__(
        self,
        app: ASGIApp,
        door: Door,
        open_paths: Collection[str] = (),
        render: Render = rendered,
    ) -> None:
        self._app = app
        self._door = door
        self._open_paths = frozenset(open_paths)
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        principal = await self._admitted(scope)
        if principal is not None:
            scope[SCOPE_KEY] = principal  # Not in a copy: who counts reads the same scope.
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # Refused before it opens: the client sees a 403.
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        await self._render(self._refusal())(scope, receive, send)

    async def _admitted(self, scope: Scope) -> Principal | None:
        if self._door.certificates and (name := certificate_principal(scope)) is not None:
            return Principal(name)
        given = HTTPConnection(scope).headers.getlist("authorization")
        if self._door.tokens is not None and (holder := _holder(given, self._door.tokens)):
            return Principal(holder)
        users, claim = self._door.users, _basic(given)
        if users is None or claim is None:
            return None
        if not users.remembers(*claim):
            # A hash takes its time, which the event loop has not.
            if not await asyncio.to_thread(users.accepts, *claim):
                return None
            users.remember(*claim)
        return Principal(*claim)

    def _refusal(self) -> Unauthorized:
        ways, challenges = [], []
        if self._door.tokens is not None:
            ways.append("the header `Authorization: Bearer TOKEN` with a token that it knows")
            challenges.append("Bearer")
        if self._door.users is not None:
            ways.append("a user and a password (Basic authentication)")
            challenges.append('Basic realm="headrace", charset="UTF-8"')
        if self._door.certificates:
            ways.append("a client certificate by TLS")
        return Unauthorized(
            f"the server wants to know who you are: send {', or '.join(ways)}",
            headers={"WWW-Authenticate": ", ".join(challenges)} if challenges else {},
        )


class BearerAccess(Access):
    """Access by tokens alone."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenFile,
        open_paths: Collection[str] = (),
        render: Render = rendered,
    ) -> None:
        super().__init__(app, Door(tokens=tokens), open_paths, render)


def _holder(given: Sequence[str], tokens: TokenFile) -> str | None:
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(" ")
    return tokens.holder(token.strip()) if scheme.lower() == "bearer" else None


def _basic(given: Sequence[str]) -> tuple[str, str] | None:
    """The user and the password of a Basic header."""
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
