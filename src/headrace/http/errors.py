"""Errors as HTTP answers: a status, a word for programs, a sentence for people.

Products subclass the classes below and raise them where the fact is known; `error_handlers` is the
one place where they become answers: `{"error": "table_not_found", "message": "..."}`. A product
whose clients know another shape hands in its own `render`.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import HeadraceError

_log = logging.getLogger(__name__)

JSON = "application/json"


class HttpError(HeadraceError):
    """An answer other than the one that was asked for."""

    status: int = 500
    """That of its class; a product whose errors carry their own sets it on the error."""
    error: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.headers = dict(headers or {})
        self.details = dict(details or {})


class BadRequest(HttpError):
    status = 400
    error = "bad_request"


class AskerGone(BadRequest):
    """Nobody waits for the answer any more, so nobody reads this either."""


class Unauthorized(HttpError):
    status = 401
    error = "unauthorized"


class Forbidden(HttpError):
    status = 403
    error = "forbidden"


class NotFound(HttpError):
    status = 404
    error = "not_found"


class NotAcceptable(HttpError):
    status = 406
    error = "not_acceptable"


class TookTooLong(HttpError):
    status = 408
    error = "timeout"


class ContentTooLarge(HttpError):
    status = 413
    error = "too_large"


class UnsupportedMediaType(HttpError):
    status = 415
    error = "unsupported_media_type"


class Unavailable(HttpError):
    """Not now; `retry_after_s` tells when to ask again."""

    status = 503
    error = "unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after_s)})


class ErrorBody(msgspec.Struct):
    """What every answer with a status from 400 on says."""

    error: str
    message: str


Render = Callable[[HttpError], Response]


def rendered(error: HttpError) -> Response:
    """The usual shape; details stand beside `error` and `message`."""
    body = {"error": error.error, "message": str(error), **error.details}
    return Response(msgspec.json.encode(body), error.status, error.headers, JSON)


def error_handlers(render: Render = rendered) -> Mapping[Any, Callable[..., Any]]:
    """What Starlette is to do with whatever a route raises."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HttpError)
        if error.status >= 500 and error.status != 503:
            _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return render(error)

    async def translate(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return render(_of_starlette(error, request))

    async def hide(request: Request, error: Exception) -> Response:
        """Starlette logs the traceback by raising it again; the client learns no insides."""
        return render(HttpError("something is wrong on our side; the server's log says what"))

    return {HttpError: answer, HTTPException: translate, Exception: hide}


def _of_starlette(error: HTTPException, request: Request) -> HttpError:
    """What the router says of paths and methods that it does not know."""
    message = {
        404: f"there is nothing at {request.url.path}",
        405: f"{request.url.path} does not answer {request.method}",
    }.get(error.status_code, str(error.detail))
    word = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    kind = type("RouterError", (HttpError,), {"status": error.status_code, "error": word})
    translated: HttpError = kind(message, headers=dict(error.headers or {}))
    return translated
