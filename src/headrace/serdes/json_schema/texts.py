"""JSON texts of schemas: read with every digit kept, written as Jackson writes them."""

from decimal import Decimal
from typing import Any

import msgspec

from headrace.serdes.schemas import InvalidSchema

SIZE_MAX = 1 << 20
"""Characters of a text. A broker takes no more in one record, so no registry could store it."""

DEPTH_MAX = 100
"""Levels of nesting: below what the validator and the stack of the interpreter can take."""

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def read(text: str) -> Any:
    """The JSON of a text. Fractions stay decimals: `1.50` is stored as it was written."""
    if len(text) > SIZE_MAX:
        raise InvalidSchema(f"The schema has {len(text)} characters; at most {SIZE_MAX} are taken")
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except msgspec.DecodeError as error:
        raise InvalidSchema(f"The schema is no JSON: {error}") from None
    _check_depth(value)
    return value


def write(value: Any) -> str:
    """The value without white space, keys in the order in which they came."""
    return _encoder.encode(value).decode()


def write_sorted(value: Any) -> str:
    """The value without white space, keys in their natural order at every level."""
    return write(_sorted(value))


def pointer(path: list[str | int] | tuple[str | int, ...]) -> str:
    """A place in a JSON document (RFC 6901), as a fragment: `#/properties/a~1b`."""
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
