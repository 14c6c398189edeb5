"""Keys and values between JSON and bytes, for the forms that need no schema.

JSON stays as the caller wrote it, without layout: numbers keep their digits, and text is written
out where it was escaped, so that equal keys are equal bytes and meet in one partition.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.rest.errors import RestError, bad_request
from headrace.rest.formats import Format

_NULL = b"null"
_SHOWN_MAX = 80


def without_layout(body: bytes) -> bytes:
    """A JSON document without the blanks between its parts; raises msgspec's `DecodeError`."""
    if b" " in body or b"\n" in body or b"\t" in body or b"\r" in body:
        return msgspec.json.format(body, indent=-1)
    return body


def encoder(format: Format) -> Callable[[msgspec.Raw], bytes | None]:
    """What makes bytes of a key or value; JSON's null is no bytes at all."""
    return _ENCODERS[format]


def decode(format: Format, data: bytes | None) -> Any:
    """What stands for a key or value in an answer; raises `ValueError` for what is no JSON."""
    if data is None:
        return None
    match format:
        case Format.JSON:
            # Shown as it is, once it is known to be JSON.
            msgspec.json.decode(data)
            return msgspec.Raw(data)
        case Format.BINARY:
            return base64.b64encode(data).decode("ascii")
        case Format.STRING:
            return data.decode(errors="replace")
        case _:
            raise AssertionError(f"{format} needs a schema")


def at_record(error: RestError, index: int, part: str) -> RestError:
    """The same error, which says whose it is; records count from 0, as in the answer."""
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
