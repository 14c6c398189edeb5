"""The types of schemas: the parser and the comparison of each.

Their libraries are large, so each is imported for its first schema. Parsed schemas are cached,
because most requests concern the same few.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from headrace.registry.compatibility.incompatibilities import Incompatibility
from headrace.registry.compatibility.levels import Incompatibilities, Policy
from headrace.runtime.installation import pip_command
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema, SchemaType

PARSED_MAX = 1_000
_TEXT_KEPT_MAX = 1 << 20


class MissingLibrary(InvalidSchema):
    """The library of a schema type is not installed."""


class Kind(NamedTuple):
    """The functions of one type."""

    parse: Callable[..., ParsedSchema]
    incompatibilities: Callable[..., list[Incompatibility]]
    has_lenient_reading: bool = False
    has_lenient_comparison: bool = False
    """True if `incompatibilities` has a keyword `policy`."""
    has_namespaces: bool = False
    """True if `incompatibilities` has a keyword `full_names`."""


Kinds = Callable[[str], Kind]


@cache
def installed_kind(name: str) -> Kind:
    """Import the functions of a type."""
    package, comparison = {
        SchemaType.AVRO: ("avro", "avro"),
        SchemaType.JSON: ("json_schema", "json_schema.comparison"),
        SchemaType.PROTOBUF: ("protobuf", "protobuf.comparing"),
    }[SchemaType(name)]
    try:
        parsing = import_module(f"headrace.serdes.{package}.parsing")
        comparing = import_module(f"headrace.registry.compatibility.{comparison}")
    except ModuleNotFoundError as error:
        raise MissingLibrary(
            f"schemas of type {name} cannot be read: {error.name} is not installed;"
            f" run {pip_command('registry')}"
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
    """Parses schemas, and caches the last ones.

    Used by several threads. The cache is locked, parsing is not: at worst two threads parse the
    same schema.
    """

    names = (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)
    """In the order of Confluent's registry."""

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
        """Parse a schema, or raise `InvalidSchema`.

        Stored schemas are parsed leniently; new ones strictly, unless configured otherwise.
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

    def incompatibilities(
        self, type: str, policy: Policy = Policy.STRICT
    ) -> Incompatibilities[Any]:
        """Return the function that compares two schemas of a type."""
        kind = self._kinds(type)
        if kind.has_lenient_comparison:
            return partial(kind.incompatibilities, policy=policy)
        if kind.has_namespaces and self._full_names:
            return partial(kind.incompatibilities, full_names=True)
        return kind.incompatibilities
