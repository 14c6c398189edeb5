"""Messages of every kind with random content, from a seed: for tests of the codec."""

from importlib import import_module
from pkgutil import iter_modules
from random import Random
from types import ModuleType
from typing import Any

from headrace.protocol import schemas
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fields import FIXED_CODES, AnyStructure, Field, fields_of
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import control, metadata
from headrace.protocol.uuids import ZERO

INTEGERS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
KIO_TIMES = {
    "expiry_time_period_ms": -1,
    "expiry_timestamp_ms": 0,
    "issue_timestamp_ms": 0,
    "log_append_time_ms": -1,
    "max_lifetime_ms": -1,
    "max_timestamp_ms": 0,
    "renew_period_ms": -1,
    "retention_time_ms": -1,
    "session_lifetime_ms": 0,
    "transaction_start_time_ms": 0,
}
LETTERS = "abcdefghijklmnopqrstuvwxyz.-_0123456789äß水🌊"


def messages_of(module: ModuleType) -> list[type[Message]]:
    """The messages that a schema module defines."""
    defined = (one for one in vars(module).values() if isinstance(one, type))
    return [one for one in defined if issubclass(one, Message) and one.VERSIONS]


def request_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's requests."""
    return _message_class(api_key, "Request")


def response_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's responses."""
    return _message_class(api_key, "Response")


def _message_class(api_key: ApiKey, suffix: str) -> type[Message]:
    module = import_module(f"headrace.protocol.schemas.{api_key.name.lower()}")
    found: type[Message] = getattr(module, api_key.name.title().replace("_", "") + suffix)
    return found


APIS = [
    ApiKey[module.name.upper()] for module in iter_modules(schemas.__path__) if not module.ispkg
]
REQUESTS = [request_class(api) for api in APIS]
RESPONSES = [response_class(api) for api in APIS]
METADATA_RECORDS = messages_of(metadata)
CONTROL_RECORDS = messages_of(control)


def every_version(messages: list[type[Message]]) -> list[tuple[type[Message], int]]:
    """Pairs of message and version, as parameters of a test."""
    return [(message, version) for message in messages for version in message.VERSIONS]


def sample(message: type[Message], version: int, seed: object) -> Message:
    """A message of which all that the version carries may differ from its default."""
    made = _structure(message, version, Random(f"{message.__name__} {version} {seed}"))
    assert isinstance(made, Message)
    return made


def _structure(structure: AnyStructure, version: int, random: Random) -> Any:
    return structure(
        **{
            field.name: _value(field, version, random)
            for field in fields_of(structure)
            if version in field.versions
        }
    )


def _value(field: Field, version: int, random: Random) -> object:
    if random.random() < 0.15:
        usable = field.default is not None or version in field.nullable
        if usable:
            return field.default
    if version in field.nullable and random.random() < 0.25:
        return None
    if field.is_array:
        count = random.choice((0, 1, 2, 3, random.choice((4, 130)) if _is_small(field) else 4))
        return [_element(field, version, random) for _ in range(count)]
    return _element(field, version, random)


def _is_small(field: Field) -> bool:
    return field.structure is None


def _element(field: Field, version: int, random: Random) -> object:
    if field.structure is not None:
        return _structure(field.structure, version, random)
    match field.kind:
        case "string":
            length = random.choice((0, 1, 7, 30, 140, random.randrange(400)))
            return "".join(random.choices(LETTERS, k=length))
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 61, 127, 128, 20_000)))
        case "uuid":
            return random.choice((ZERO, random.randbytes(16)))
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.choice((0.0, -1.5, random.uniform(-1e300, 1e300)))
    assert field.kind in FIXED_CODES
    return _integer(field, random)


def _integer(field: Field, random: Random) -> int:
    """Any value that fits, often an end; error codes and times are limited to kio's."""
    if field.name.endswith("error_code"):
        return random.randrange(-1, 134)
    if field.name in KIO_TIMES:
        return random.choice((KIO_TIMES[field.name], random.randrange(1 << 41)))
    low, high = INTEGERS[field.kind]
    return random.choice((low, high, 0, 1, random.randint(low, high), max(low, -1)))


def kio_class(message: type[Message], version: int) -> Any:
    """The class of this message in the independent codec `kio`."""
    name = message.__name__
    kind = next((kind for kind in ("Request", "Response") if name.endswith(kind)), "")
    folder = _snake(name.removesuffix(kind)) if kind else _snake(name)
    module = import_module(f"kio.schema.{folder}.v{version}.{kind.lower() or 'data'}")
    return getattr(module, name)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip(
        "_"
    )
