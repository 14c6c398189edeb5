"""JSON texts of schemas: parsed with every digit kept, written as Jackson writes them."""

from decimal import Decimal
from typing import Any

import msgspec

from headrace.serdes.schemas import InvalidSchema

SIZE_MAX = 1 << 20
"""Maximum number of characters, the default size limit of a record."""

DEPTH_MAX = 100
"""Levels of nesting, within the limits of the validator and the interpreter's stack."""

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def read(text: str) -> Any:
    """Parse a JSON text. Fractions stay decimals: `1.50` is stored as written."""
    if len(text) > SIZE_MAX:
        raise InvalidSchema(f"The schema has {len(text)} characters; the limit is {SIZE_MAX}")
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}") from None
    _check_depth(value)
    return value


def write(value: Any) -> str:
    """Format a value without white space, with keys in their given order."""
    return _encoder.encode(value).decode()


def write_sorted(value: Any) -> str:
    """Format a value without white space, with keys sorted at every level."""
    return write(_sorted(value))


def pointer(path: list[str | int] | tuple[str | int, ...]) -> str:
    """Format a path in a JSON document (RFC 6901) as a fragment: `#/properties/a~1b`."""
    return "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _sorted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def _too_deep() -> InvalidSchema:
    return InvalidSchema(
        f"The schema is nested more than {DEPTH_MAX} levels deep; move inner parts to definitions"
    )
