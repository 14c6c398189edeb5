"""Scripts of other sites: none may ask, unless the server's owner lists their origins.

Browsers ask before they send most requests of another site's page, but not before simple ones, as a
POST without a type is; they only keep the answer from the page. What changes something is therefore
refused here. Programs that are no browsers send no origin, and are not concerned.
"""

from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.http.errors import Forbidden, Render, rendered

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_HEADERS = ("Accept", "Authorization", "Content-Type")


class InvalidOrigin(HeadraceError):
    """An origin that no browser would send."""


def middleware(origins: Sequence[str]) -> list[Middleware]:
    """What lets the pages of these origins ask; nothing where there are none."""
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if origin != "*" and (not separator or scheme not in ("http", "https") or "/" in host):
            raise InvalidOrigin(
                f"{origin!r} is no origin; write it as https://example.com, without a path"
            )
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=list(_METHODS),
            allow_headers=list(_HEADERS),
        )
    ]


class OwnPages:
    """Refuses what pages of origins that are neither ours nor listed would change."""

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
                error = Forbidden(f"pages of {foreign!r} may change nothing here")
                await self._render(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _has_origin(scope: Scope) -> bool:
    """Programs send none, and for them this costs less than `Headers` does."""
    return any(name == b"origin" for name, _ in scope["headers"])


def foreign_origin(headers: Headers, origins: Collection[str]) -> str | None:
    """The origin of a request, if it is neither listed nor the server's own.

    The own one is known by its host, as the scheme may be that of a proxy before us.
    """
    for origin in headers.getlist("origin"):
        _, _, host = origin.partition("://")
        is_own = host != "" and host.lower() == headers.get("host", "").lower()
        if not is_own and origin not in origins and "*" not in origins:
            return origin
    return None
