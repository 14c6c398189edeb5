"""Who may ask: bearer tokens from a file, compared in constant time.

A file may hold several tokens, one per line, so that a new one can be handed out before the old
one is taken away. The file is read once, at the start.
"""

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

_FILE_BYTES_MAX = 1 << 16
_OPEN_TO_OTHERS = 0o077


class InvalidTokenFile(HeadraceError):
    """A token file that cannot be read, or holds no token."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The digests of the tokens; the tokens themselves are not kept."""

    digests: tuple[bytes, ...]
    is_open_to_others: bool

    def accepts(self, token: str) -> bool:
        """Compare with every token, in the same time whichever fits."""
        digest = _digest(token)
        matches = [hmac.compare_digest(digest, known) for known in self.digests]
        return any(matches)


def read_tokens(path: Path) -> TokenFile:
    """The tokens of a file, one per line; empty lines and those that start with # are skipped."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(_FILE_BYTES_MAX).splitlines()
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTokenFile(f"the token file {path} cannot be read: {error}") from error
    tokens = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not tokens:
        raise InvalidTokenFile(f"the token file {path} holds no token; write one on a line")
    return TokenFile(tuple(map(_digest, tokens)), bool(mode & _OPEN_TO_OTHERS))


class BearerAccess:
    """Lets requests through that carry a token, and those for paths that are open to all."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenFile,
        open_paths: Collection[str] = (),
        render: Render = rendered,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._open_paths = frozenset(open_paths)
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        given = HTTPConnection(scope).headers.getlist("authorization")
        if _is_granted(given, self._tokens):
            await self._app(scope, receive, send)
            return
        refusal = Unauthorized(
            "send the header `Authorization: Bearer TOKEN` with a token that the server knows",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await self._render(refusal)(scope, receive, send)


def _is_granted(given: Sequence[str], tokens: TokenFile) -> bool:
    if len(given) != 1:
        return False
    scheme, _, token = given[0].partition(" ")
    return scheme.lower() == "bearer" and tokens.accepts(token.strip())


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
