"""The definition of a config: name, type, default, limits, meaning and parser.

One `ConfigDefinition` serves every use of a config: reading `server.properties`, checking a
CreateTopics request, and answering DescribeConfigs. Types and sources carry Kafka's own ids.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TypeAlias

import msgspec

from headrace.errors import InvalidConfig

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
Validator: TypeAlias = Callable[[Value], str | None]

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DOUBLE_MAX = 1.7976931348623157e308


class ConfigType(IntEnum):
    """The type ids of DescribeConfigs; configs of plug-ins are UNKNOWN."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The origin of a value, with the ids of DescribeConfigs; lower ids win."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class UpdateMode(IntEnum):
    """The way a broker config may change while the broker runs."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2
    PER_LISTENER = 3


class ConfigDefinition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One config as Kafka defines it; `synonyms` are broker configs that give a topic's default."""

    name: str
    type: ConfigType
    default: Value
    documentation: str
    validator: Validator | None = None
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    synonyms: tuple[str, ...] = ()
    is_internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        """A value that is never shown, neither on the wire nor in a log."""
        return self.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)

    @property
    def is_read_only(self) -> bool:
        return self.update_mode is UpdateMode.READ_ONLY

    def parse(self, text: str) -> Value:
        """The typed value; the error names the config and the valid values."""
        value = self.read(text)
        self.check(value)
        return value

    def read(self, text: str) -> Value:
        """The typed value of a stored text, without a check of its limits."""
        return _PARSERS[self.type](self.name, text)

    def check(self, value: Value) -> None:
        """Raise unless the limits of this config hold."""
        complaint = self.validator(value) if self.validator is not None else None
        if complaint is not None:
            shown = "that" if self.is_sensitive else self.render(value) or "an empty value"
            raise InvalidConfig(f"{self.name} {complaint}, not {shown}")

    def render(self, value: Value) -> str | None:
        """The value as Kafka writes it on the wire."""
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case float():
                return _java_double(value)
            case tuple():
                return ",".join(value)
            case _:
                return str(value)


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name, ready to be appended to an error message."""
    from difflib import get_close_matches  # Only ever needed on the way to an error.

    matches = get_close_matches(name, list(names), n=1, cutoff=0.7)
    return f". Did you mean {matches[0]}?" if matches else ""


def at_least(low: float) -> Validator:
    def check(value: Value) -> str | None:
        too_low = isinstance(value, int | float) and value < low
        return f"must be at least {low}" if too_low else None

    return check


def between(low: float, high: float, *also: int) -> Validator:
    """Limits on both sides; `also` lists values outside of them that mean something special."""

    def check(value: Value) -> str | None:
        if not isinstance(value, int | float) or low <= value <= high or value in also:
            return None
        special = "".join(f" or {number}" for number in also)
        return f"must be between {low} and {high}{special}"

    return check


def one_of(*choices: str) -> Validator:
    def check(value: Value) -> str | None:
        refused = value is not None and value not in choices
        return f"must be one of {', '.join(choices)}" if refused else None

    return check


def each_of(*choices: str) -> Validator:
    """Check the items of a list; an empty list is valid."""

    def check(value: Value) -> str | None:
        if isinstance(value, tuple) and not set(value) <= set(choices):
            return f"must be a list of {', '.join(choices)}"
        return None

    return check


def not_empty(value: Value) -> str | None:
    return None if value else "must not be empty"


def _parse_boolean(name: str, text: str) -> Value:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise InvalidConfig(f"{name} must be true or false, not {text!r}")


def _integer(bits: int) -> Callable[[str, str], Value]:
    limit = 1 << (bits - 1)

    def parse(name: str, text: str) -> Value:
        digits = text.strip()
        unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
        if not (unsigned.isascii() and unsigned.isdecimal() and len(unsigned) <= 30):
            raise InvalidConfig(f"{name} must be a whole number, not {text!r}")
        number = int(digits)
        if not -limit <= number < limit:
            raise InvalidConfig(f"{name} must fit in {bits} bits, which {digits} does not")
        return number

    return parse


def _parse_double(name: str, text: str) -> Value:
    number = text.strip().replace("_", "?")
    if number[-1:] in ("f", "F", "d", "D"):
        number = number[:-1]  # Java lets a number carry its own type.
    try:
        value = float(number)
    except ValueError:
        raise InvalidConfig(f"{name} must be a number, not {text!r}") from None
    if value != value:
        raise InvalidConfig(f"{name} must be a number, not {text!r}")
    return value


def _parse_list(name: str, text: str) -> Value:
    """Comma-separated; repeated and empty items do not count, as in Kafka."""
    return tuple(dict.fromkeys(item for part in text.split(",") if (item := part.strip())))


def _parse_text(name: str, text: str) -> Value:
    return text.strip()


def _parse_unknown(name: str, text: str) -> Value:
    return text


_PARSERS: Mapping[ConfigType, Callable[[str, str], Value]] = {
    ConfigType.UNKNOWN: _parse_unknown,
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.STRING: _parse_text,
    ConfigType.INT: _integer(32),
    ConfigType.SHORT: _integer(16),
    ConfigType.LONG: _integer(64),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.LIST: _parse_list,
    ConfigType.CLASS: _parse_text,
    ConfigType.PASSWORD: _parse_text,
}


def _java_double(value: float) -> str:
    """A double as Java's `Double.toString` writes it, so that tools compare equal text."""
    text = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    if abs(value) == float("inf"):
        return "Infinity" if value > 0 else "-Infinity"
    digits, _, exponent = text.partition("e")
    if not exponent:  # Python stays with plain digits longer than Java does.
        digits, exponent = _mantissa(text), f"{value:.17e}".partition("e")[2]
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _mantissa(text: str) -> str:
    """The significant digits of a plain decimal, with the point after the first."""
    sign = "-" if text.startswith("-") else ""
    digits = text.lstrip("-").replace(".", "").lstrip("0").rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}"
