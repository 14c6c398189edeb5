"""JSON as Java's Avro reads it (with comments) and writes it (with Jackson's numbers and
escapes)."""

import json
import math
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)

ESCAPE = re.compile(r"\\(?:u....|.)")

DEPTH_MAX: Final = 200
"""Far above the need of schemas, and low enough for recursive printing."""


def read_json(text: str) -> Any:
    """Parse a JSON text; ValueError gives the reason of a failure."""
    try:
        value = _loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if text.count("[") + text.count("{") > DEPTH_MAX and depth_of(value) > DEPTH_MAX:
        raise ValueError(f"it nests more than {DEPTH_MAX} deep")
    return value


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        if "/*" not in text and "//" not in text:
            raise
        return json.loads(COMMENT.sub(r"\1", text), parse_constant=_refuse)


def depth_of(value: Any) -> int:
    """Return the nesting depth of objects and lists."""
    level, depth = list(containers_in([value])), 0
    while level:
        depth += 1
        level = [part for outer in level for part in containers_in(outer)]
    return depth


def containers_in(value: Any) -> Iterable[Any]:
    """Yield the objects and lists directly within one."""
    parts = value.values() if isinstance(value, dict) else value
    return (part for part in parts if isinstance(part, dict | list))


def write_json(value: Any) -> str:
    """Format a value from `read_json` as compact JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int():
            return str(value)
        case float():
            return double_text(value)
        case list():
            return f"[{','.join(map(write_json, value))}]"
        case dict():
            members = (f"{quoted(name)}:{write_json(part)}" for name, part in value.items())
            return f"{{{','.join(members)}}}"
    raise TypeError(f"{type(value).__name__} has no JSON")


def quoted(text: str) -> str:
    escaped = encode_basestring(text)
    if "\\u00" not in escaped:
        return escaped
    return ESCAPE.sub(_as_jackson, escaped)


def _as_jackson(escape: re.Match[str]) -> str:
    """Use capitals in the codes of control characters, as Jackson does."""
    text = escape[0]
    return f"\\u{text[2:].upper()}" if text.startswith("\\u") else text


def double_text(number: float) -> str:
    """Format a double as Java does: with an exponent below 0.001 and from ten million on."""
    if not math.isfinite(number):
        return quoted("NaN" if math.isnan(number) else "-Infinity" if number < 0 else "Infinity")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    return _scientific(number)


def _scientific(number: float) -> str:
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The position of the first digit other than zero gives the power of ten.
    leading = len(whole) if whole != "0" else len(fraction.lstrip("0")) - len(fraction)
    power = int(exponent or 0) + leading - 1
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
