"""Request bodies, bounded in size and time, JSON bodies by type, and disconnects."""

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from headrace.http.errors import BadRequest, ContentTooLarge, TookTooLong

T = TypeVar("T")

_BODY_S_MAX = 30.0


async def read_body(request: Request, bytes_max: int, seconds_max: float = _BODY_S_MAX) -> bytes:
    """Read the whole body; never hold more than `bytes_max` of it."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise _too_large(bytes_max)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds_max):
            async for piece in request.stream():
                body += piece
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
    except TimeoutError as error:
        raise TookTooLong(f"the body did not arrive within {seconds_max:g} seconds") from error
    except ClientDisconnect as error:
        raise BadRequest("the connection ended before the body did") from error
    return bytes(body)


async def until_gone(receive: Receive) -> None:
    """Wait until the client disconnects; call it only after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def decode_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8: {error.reason} at byte {error.start}") from error


def decode_json(body: bytes, type: type[T]) -> T:
    """Decode a value of this type; the error names the invalid field."""
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"invalid body: {error}") from error


def media_type(request: Request) -> str:
    """Return the Content-Type without parameters, or an empty text."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _too_large(bytes_max: int) -> ContentTooLarge:
    return ContentTooLarge(
        f"the body is larger than {bytes_max:,} bytes", headers={"Connection": "close"}
    )
