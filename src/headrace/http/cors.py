"""Scripts of other sites: none may ask, unless the server's owner lists their origins."""

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from headrace.errors import HeadraceError

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
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
