"""The types of schemas that a registry takes: how each is read, and compared.

The libraries behind them are large, so each is imported when its first schema has to be read, and
what was read is kept for a while: the same few schemas are asked for again and again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from headrace.registry.compatibility.levels import Policy
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema, SchemaType

Incompatibilities = Callable[[Any, Any], list[str]]
"""What keeps a reader of the first schema from reading data of the second."""

PARSED_MAX = 1_000
_TEXT_KEPT_MAX = 1 << 20


class MissingLibrary(InvalidSchema):
    """This installation has not what reads schemas of a type."""


class Kind(NamedTuple):
    """The functions of one type."""

    parse: Callable[..., ParsedSchema]
    incompatibilities: Callable[..., list[str]]
    has_lenient_reading: bool = False
    has_lenient_comparison: bool = False
    """Whether `incompatibilities` has a keyword `policy`."""
    has_namespaces: bool = False
    """Whether `incompatibilities` has a keyword `full_names`."""


Kinds = Callable[[str], Kind]


@cache
def installed_kind(name: str) -> Kind:
    """The type as this installation has it."""
    package = {
        SchemaType.AVRO: "avro",
        SchemaType.JSON: "json_schema",
        SchemaType.PROTOBUF: "protobuf",
    }[SchemaType(name)]
    try:
        parsing = import_module(f"headrace.serdes.{package}.parsing")
        comparing = import_module(f"headrace.registry.compatibility.{package}")
    except ModuleNotFoundError as error:
        raise MissingLibrary(
            f"this registry cannot read schemas of type {name}, as {error.name} is not installed;"
            " where it runs, pip install '/path/to/headrace[registry]'"
        ) from error
    is_avro = name == SchemaType.AVRO
    return Kind(
        parsing.parse,
        comparing.incompatibilities,
        has_lenient_reading=is_avro,
        has_lenient_comparison=name == SchemaType.JSON,
        has_namespaces=is_avro,
    )


class SchemaTypes:
    """Reads schemas, and remembers the last thousand of them.

    Several threads may ask. What is remembered is locked, reading is not: at worst two threads
    read the same schema.
    """

    names = (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)
    """In the order in which Confluent's registry lists them."""

    def __init__(
        self,
        kinds: Kinds = installed_kind,
        *,
        is_lenient: bool = False,
        full_names: bool = False,
        parsed_max: int = PARSED_MAX,
    ) -> None:
        self._kinds = kinds
        self._is_lenient = is_lenient
        self._full_names = full_names
        self._parsed: OrderedDict[tuple[Any, ...], ParsedSchema] = OrderedDict()
        self._parsed_max = parsed_max
        self._lock = threading.Lock()

    def parse(
        self, type: str, text: str, dependencies: Sequence[Dependency], *, is_new: bool
    ) -> ParsedSchema:
        """The schema that a text is, or `InvalidSchema`.

        What is stored already was good enough for whoever stored it; only new schemas are read
        strictly, and these not where leniency is wanted.
        """
        is_lenient = self._is_lenient or not is_new
        key = (type, text, tuple(dependencies), is_lenient)
        with self._lock:
            found = self._parsed.get(key)
            if found is not None:
                self._parsed.move_to_end(key)
                return found
        kind = self._kinds(type)
        if kind.has_lenient_reading:
            found = kind.parse(text, dependencies, lenient=is_lenient)
        else:
            found = kind.parse(text, dependencies)
        if len(text) <= _TEXT_KEPT_MAX:
            with self._lock:
                self._parsed[key] = found
                if len(self._parsed) > self._parsed_max:
                    self._parsed.popitem(last=False)
        return found

    def incompatibilities(self, type: str, policy: Policy = Policy.STRICT) -> Incompatibilities:
        """How schemas of a type are compared."""
        kind = self._kinds(type)
        if kind.has_lenient_comparison:
            return partial(kind.incompatibilities, policy=policy)
        if kind.has_namespaces and self._full_names:
            return partial(kind.incompatibilities, full_names=True)
        return kind.incompatibilities
