"""Bodies of version 2: decoded by type, encoded with the media type that the caller accepts."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.bodies import read_body
from headrace.rest.errors import unprocessable
from headrace.rest.formats import answer_type, check_control_type
from headrace.rest.payloads import decoded_body, invalid_body

T = TypeVar("T")

_CONTROL_BYTES_MAX = 1 << 20


def answer(request: Request, value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=answer_type(request))


async def control_body(request: Request, type: type[T]) -> T:
    """Decode the body of a request that carries no records."""
    found = await optional_body(request, type)
    if found is None:
        raise unprocessable("Null input provided. Data is required.")
    return found


async def optional_body(request: Request, type: type[T]) -> T | None:
    """Decode a body like `control_body`; return None for an empty one."""
    check_control_type(request)
    body = await read_body(request, _CONTROL_BYTES_MAX)
    if not body.strip():
        return None
    return decoded_body(body, msgspec.json.Decoder(type), invalid_body)
