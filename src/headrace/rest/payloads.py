"""Keys and values between JSON and bytes, for formats without schemas.

JSON stays as the caller wrote it, without white space between parts. Numbers keep their digits, and
escaped text is unescaped, so that equal keys are equal bytes and share a partition.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from headrace.rest.errors import RestError, bad_request, unprocessable
from headrace.rest.formats import Format

T = TypeVar("T")

_NULL = b"null"
_SHOWN_MAX = 80


def without_layout(body: bytes) -> bytes:
    """Remove white space between the parts of a document; may raise `DecodeError`."""
    if b" " in body or b"\n" in body or b"\t" in body or b"\r" in body:
        return msgspec.json.format(body, indent=-1)
    return body


def decoded_body(
    body: bytes,
    decoder: msgspec.json.Decoder[T],
    refusal: Callable[[msgspec.ValidationError], RestError],
    *,
    has_raw_parts: bool = False,
) -> T:
    """Decode a body; `refusal` returns the error for a wrong shape.

    Raw parts are records as they were written, without white space between their parts.
    """
    try:
        return decoder.decode(without_layout(body) if has_raw_parts else body)
    except msgspec.ValidationError as error:
        raise refusal(error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None


def invalid_body(error: msgspec.ValidationError) -> RestError:
    return unprocessable(f"the body is invalid: {error}")


def encoder(format: Format) -> Callable[[msgspec.Raw], bytes | None]:
    """Return the encoder of a format; it maps JSON's null to None."""
    return _ENCODERS[format]


def decode(format: Format, data: bytes | None) -> Any:
    """Decode a key or value for an answer; raise `ValueError` for invalid JSON."""
    if data is None:
        return None
    match format:
        case Format.JSON:
            # Returned unchanged after validation.
            msgspec.json.decode(data)
            return msgspec.Raw(data)
        case Format.BINARY:
            return base64.b64encode(data).decode("ascii")
        case Format.STRING:
            return data.decode(errors="replace")
        case _:
            raise AssertionError(f"{format} needs a schema")


def at_record(error: RestError, index: int, part: str) -> RestError:
    """Add the place to an error; records count from 0, as in the answer."""
    return RestError(error.status, error.code, f"{error} ({part} of record {index})")


def _json(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    if b"\\" in data:
        return msgspec.json.encode(msgspec.json.decode(data))
    return None if data == _NULL else data


def _string(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == _NULL else _text(data, "a string").encode()


def _binary(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    if data == _NULL:
        return None
    text = _text(data, "a base64 string").encode()
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise bad_request(f"data={_shown(data)} is not a valid base64 string.") from None


def _text(data: bytes, kind: str) -> str:
    if data[:1] != b'"':
        raise bad_request(f"data={_shown(data)} is not {kind}.")
    if b"\\" in data:
        return str(msgspec.json.decode(data, type=str))
    return data[1:-1].decode()


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


_ENCODERS: dict[Format, Callable[[msgspec.Raw], bytes | None]] = {
    Format.JSON: _json,
    Format.BINARY: _binary,
    Format.STRING: _string,
}
