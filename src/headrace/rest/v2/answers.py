"""Bodies of version 2: read by type, written under the type that the caller likes."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.bodies import read_body
from headrace.rest.errors import RestError, bad_request, unprocessable
from headrace.rest.formats import answer_type, check_control_type

T = TypeVar("T")

_CONTROL_BYTES_MAX = 1 << 20


def answer(request: Request, value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=answer_type(request))


def nothing() -> Response:
    return Response(status_code=204)


async def control_body(request: Request, type: type[T]) -> T:
    """The body of a request that carries no records."""
    check_control_type(request)
    body = await read_body(request, _CONTROL_BYTES_MAX)
    if not body.strip():
        raise unprocessable("Null input provided. Data is required.")
    return parsed(body, msgspec.json.Decoder(type))


async def optional_body(request: Request, type: type[T]) -> T | None:
    """Like `control_body`, where no body means something, too."""
    check_control_type(request)
    body = await read_body(request, _CONTROL_BYTES_MAX)
    return parsed(body, msgspec.json.Decoder(type)) if body.strip() else None


def parsed(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """400 for what is no JSON, 422 for JSON of another shape; the place is told."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(error) from None


def invalid_json(error: Exception) -> RestError:
    if isinstance(error, msgspec.ValidationError):
        return unprocessable(f"the body is not what it should be: {error}")
    return bad_request(f"the body is no JSON: {error}")
