"""Errors as HTTP answers: a status, a word for programs, a sentence for people.

Products subclass the classes below and raise them where the fact is known; `product.Application`
is the one place where they become answers: `{"error": "table_not_found", "message": "..."}`. A
product whose clients expect another shape has `ErrorAnswers` of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from starlette.responses import Response

from headrace.errors import HeadraceError

JSON = "application/json"


class HttpError(HeadraceError):
    """An answer with a status from 400 on."""

    status: int = 500
    """Usually set by the class; a product may set it on the error."""
    error: ClassVar[str] = "internal_error"

    def __init_subclass__(cls, *, status: int | None = None, error: str | None = None) -> None:
        super().__init_subclass__()
        cls.status = cls.status if status is None else status
        cls.error = cls.error if error is None else error

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


# fmt: off
class BadRequest(HttpError, status=400, error="bad_request"): ...
class Unauthorized(HttpError, status=401, error="unauthorized"): ...
class Forbidden(HttpError, status=403, error="forbidden"): ...
class NotFound(HttpError, status=404, error="not_found"): ...
class MethodNotAllowed(HttpError, status=405, error="method_not_allowed"): ...
class NotAcceptable(HttpError, status=406, error="not_acceptable"): ...
class TookTooLong(HttpError, status=408, error="timeout"): ...
class ContentTooLarge(HttpError, status=413, error="too_large"): ...
class UnsupportedMediaType(HttpError, status=415, error="unsupported_media_type"): ...
# fmt: on


class ClientDisconnected(BadRequest):
    """The client has disconnected, so this answer has no reader."""


class NoSuchPath(NotFound):
    """No operation has this path."""


class Unavailable(HttpError, status=503, error="unavailable"):
    """A temporary refusal; clients retry after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after_s)})


class ErrorBody(msgspec.Struct):
    """The body of every answer with a status from 400 on."""

    error: str
    message: str


Render = Callable[[HttpError], Response]


def rendered(error: HttpError) -> Response:
    """Answer in the default shape, with the details as further members."""
    body = {"error": error.error, "message": str(error), **error.details}
    return Response(msgspec.json.encode(body), error.status, error.headers, JSON)


def http_error(error: HeadraceError) -> HttpError:
    """Return errors that are answers as they are; hide the text of any other."""
    return error if isinstance(error, HttpError) else internal_error()


def internal_error() -> HttpError:
    return HttpError("internal error; the server's log has the details")


@dataclass(frozen=True, slots=True)
class ErrorAnswers:
    """The shape of a product's errors, and the answer to errors of other packages."""

    render: Render = rendered
    body: type = ErrorBody
    """The type of the rendered body, for OpenAPI."""
    translate: Callable[[HeadraceError], HttpError] = http_error


DEFAULT_ERRORS = ErrorAnswers()
