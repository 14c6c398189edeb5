"""Requests of other sites' pages: refused unless the server's owner lists the origin.

A browser asks for permission before most requests of another site's page, but not before simple
ones, such as a POST without a type; it only hides the answer from the page. Requests that change
something are therefore refused here. Programs other than browsers send no origin.
"""

from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.http.errors import Forbidden, Render, rendered

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


class InvalidOrigin(HeadraceError):
    """An origin that no browser sends."""


def check_origins(origins: Sequence[str]) -> None:
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if origin != "*" and (not separator or scheme not in ("http", "https") or "/" in host):
            raise InvalidOrigin(
                f"invalid origin {origin!r}; write it as https://example.com, without a path"
            )


class OwnPages:
    """Refuses changes by pages of origins that are neither the server's own nor listed."""

    def __init__(
        self, app: ASGIApp, origins: Collection[str] = (), render: Render = rendered
    ) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _SAFE_METHODS and _has_origin(scope):
            foreign = foreign_origin(Headers(scope=scope), self._origins)
            if foreign is not None:
                error = Forbidden(
                    f"pages of {foreign!r} may not send requests that change something"
                )
                await self._render(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _has_origin(scope: Scope) -> bool:
    """Check for an Origin header; cheaper than `Headers` for programs, which send none."""
    return any(name == b"origin" for name, _ in scope["headers"])


def foreign_origin(headers: Headers, origins: Collection[str]) -> str | None:
    """Return the origin of a request if it is neither listed nor the server's own.

    The server's own origin is recognized by its host: the scheme may be that of a reverse proxy.
    """
    for origin in headers.getlist("origin"):
        _, _, host = origin.partition("://")
        is_own = host != "" and host.lower() == headers.get("host", "").lower()
        if not is_own and origin not in origins and "*" not in origins:
            return origin
    return None
