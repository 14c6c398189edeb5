"""Parses Avro schemas as strictly as Java's Avro does when a registry receives a new one.

Beyond Java, defaults of enums, fixed and bytes are validated. `lenient=True` is for schemas stored
elsewhere: names may have letters of all scripts, as with Confluent's registry, and defaults may be
anything, as with `validateDefaults=false`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from headrace.serdes.avro.defaults import INT_RANGE, double_of_text, is_default
from headrace.serdes.avro.json_text import read_json, write_json
from headrace.serdes.avro.logical import logical_of
from headrace.serdes.avro.model import (
    MISSING,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Node,
    Primitive,
    Properties,
    Record,
    Union,
    branch_name,
)
from headrace.serdes.avro.printing import print_definition, print_schema
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.schemas import Dependency, InvalidSchema

TEXT_MAX: Final = 4 << 20
"""More characters than the default size limit of a record."""

DEPTH_MAX: Final = 64
"""Limit of nested types; values nest as deep, and each level uses frames of the stack."""

STRICT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LENIENT_NAME = re.compile(r"[^\W\d]\w*")

SCHEMA_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
ENUM_RESERVED: Final = SCHEMA_RESERVED | {"default"}
FIELD_RESERVED: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
N = TypeVar("N", Record, Enum, Fixed)

ORDERS: Final = frozenset(("ascending", "descending", "ignore"))


def parse(
    text: str, dependencies: Sequence[Dependency] = (), *, lenient: bool = False
) -> AvroSchema:
    """Parse a schema; it can use the types of its dependencies by their full names."""
    parser = _Parser(lenient)
    try:
        known = [_parse_dependency(parser, dependency) for dependency in dependencies]
        return AvroSchema(parser.parse(text), frozenset(known))
    except RecursionError:
        raise InvalidSchema("the schema nests too deep") from None


def _parse_dependency(parser: "_Parser", dependency: Dependency) -> str:
    try:
        return branch_name(parser.parse(dependency.text))
    except InvalidSchema as error:
        raise InvalidSchema(f"the referenced schema {dependency.name}: {error}") from error


class _Parser:
    """Parses texts in sequence; later ones can use the names of earlier ones."""

    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient
        self._valid_name = LENIENT_NAME if lenient else STRICT_NAME
        self._names: dict[str, Named] = {}
        self._open: set[str] = set()
        """Records whose fields are being parsed."""

        self._document: Any = None
        self._definitions: dict[str, Definition] | None = None
        """Definitions of the document, collected at the first unknown name."""

    def parse(self, text: str) -> Node:
        if len(text) > TEXT_MAX:
            raise InvalidSchema(f"the schema has more than {TEXT_MAX} characters")
        try:
            schema = read_json(text)
        except ValueError as error:
            raise InvalidSchema(f"the schema is not JSON: {error}") from error
        self._document, self._definitions = schema, None
        return self._node(schema, "", "", 0)

    def _node(self, schema: Any, namespace: str, path: str, depth: int) -> Node:
        if depth > DEPTH_MAX:
            fail(path, f"types nest more than {DEPTH_MAX} deep")
        match schema:
            case str():
                return self._by_name(schema, namespace, path, depth)
            case list():
                return self._union(schema, namespace, path, depth + 1)
            case dict():
                return self._complex(schema, namespace, path, depth + 1)
        raise InvalidSchema(at(path, f"a type is a name, an object or a list, not {shown(schema)}"))

    def _complex(self, schema: dict[str, Any], namespace: str, path: str, depth: int) -> Node:
        kind = schema.get("type")
        if not isinstance(kind, str):
            fail(path, f'No type: "type" must be a text in {shown(schema)}')
        if kind in PRIMITIVES:
            properties = properties_of(schema, SCHEMA_RESERVED)
            return Primitive(kind, properties, logical_of(kind, properties))
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, path, depth)
            case "enum":
                return self._enum(schema, namespace, path)
            case "fixed":
                return self._fixed(schema, namespace, path)
            case "array":
                if "items" not in schema:
                    fail(path, f"Array has no items type: {shown(schema)}")
                items = self._node(schema["items"], namespace, f"{path}/items", depth)
                return Array(items, properties_of(schema, SCHEMA_RESERVED))
            case "map":
                if "values" not in schema:
                    fail(path, f"Map has no values type: {shown(schema)}")
                values = self._node(schema["values"], namespace, f"{path}/values", depth)
                return Map(values, properties_of(schema, SCHEMA_RESERVED))
        return self._by_name(kind, namespace, path, depth)

    def _by_name(self, text: str, namespace: str, path: str, depth: int) -> Node:
        """Resolve a primitive, or a named type of this namespace or of the empty one."""
        if text in PRIMITIVES:
            return Primitive(text)
        full = Name.of(text, namespace).full
        found = self._names.get(full) or self._names.get(text)
        return found or self._defined_later(text, full, path, depth)

    def _defined_later(self, text: str, full: str, path: str, depth: int) -> Node:
        """Resolve a type that the text defines further down, as Java does."""
        if self._definitions is None:
            found = definitions_in(self._document, "", "")
            self._definitions = {definition.name: definition for definition in found}
        later = self._definitions.get(full) or self._definitions.get(text)
        if later is None:
            fail(path, f"Undefined schema: {text}; define it, or refer to its schema")
        return self._node(later.schema, later.namespace, later.path, depth)

    def _union(self, schema: list[Any], namespace: str, path: str, depth: int) -> Union:
        branches: dict[str, Node] = {}
        for position, part in enumerate(schema):
            here = f"{path}/{position}"
            branch = self._node(part, namespace, here, depth)
            if isinstance(branch, Union):
                fail(here, "Nested union: a union's branch cannot be a union")
            name = branch_name(branch)
            if name in branches:
                fail(here, f"Duplicate in union: {name}")
            branches[name] = branch
        return Union(tuple(branches.values()))

    def _record(self, schema: dict[str, Any], namespace: str, path: str, depth: int) -> Record:
        name = self._name(schema, namespace, path)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            fail(path, f"Record has no fields: {shown(schema)}")
        if name.full in self._open:
            fail(path, f"Can't redefine: {name.full}")
        properties = properties_of(schema, SCHEMA_RESERVED)
        record = Record(name, (), doc_of(schema), self._aliases(schema, name, path), properties)
        record.is_error = schema["type"] == "error"
        earlier = self._names.get(name.full)
        self._names[name.full] = record
        self._open.add(name.full)
        record.fields = self._fields(fields, name, f"{path}/fields", depth)
        self._open.discard(name.full)
        return self._defined(record, earlier, path)

    def _fields(self, parts: list[Any], record: Name, path: str, depth: int) -> tuple[Field, ...]:
        fields: dict[str, Field] = {}
        for position, part in enumerate(parts):
            here = f"{path}/{position}"
            field = self._field(part, record, here, depth)
            if field.name in fields:
                fail(here, f"Duplicate field {field.name} in record {record.full}")
            fields[field.name] = field
        return tuple(fields.values())

    def _field(self, part: Any, record: Name, path: str, depth: int) -> Field:
        if not isinstance(part, dict) or not isinstance(part.get("name"), str):
            fail(path, f"No field name: {shown(part)}")
        name: str = part["name"]
        self._check_name(name, f"{path}/name")
        if "type" not in part:
            fail(path, f"No field type: field {name} of record {record.full} needs one")
        node = self._node(part["type"], record.namespace, f"{path}/type", depth)
        order = part.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in ORDERS:
            fail(f"{path}/order", f"field {name} has no order {shown(order)}")
        default = self._default(part, name, node, path)
        aliases = tuple(dict.fromkeys(alias_texts(part, path)))
        properties = properties_of(part, FIELD_RESERVED)
        return Field(name, node, doc_of(part), default, order.lower(), aliases, properties)

    def _default(self, part: dict[str, Any], name: str, node: Node, path: str) -> Any:
        default = part.get("default", MISSING)
        if node.kind in ("float", "double") and isinstance(default, str):
            number = double_of_text(default)
            default = default if number is None else number
        if default is MISSING or self._lenient or is_default(node, default):
            return default
        reason = f"Invalid default for field {name}: {shown(default)} not a {print_schema(node)}"
        raise InvalidSchema(at(f"{path}/default", reason))

    def _enum(self, schema: dict[str, Any], namespace: str, path: str) -> Enum:
        name = self._name(schema, namespace, path)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list):
            fail(path, f"Enum has no symbols: {shown(schema)}")
        known: set[str] = set()
        for position, symbol in enumerate(symbols):
            here = f"{path}/symbols/{position}"
            self._check_name(symbol, here)
            if symbol in known:
                fail(here, f"Duplicate enum symbol: {symbol}")
            known.add(symbol)
        default = schema.get("default")
        if default is not None and default not in symbols:
            reason = f"The Enum Default: {shown(default)} is not in the enum symbol set"
            fail(f"{path}/default", f"{reason}: {shown(symbols)}")
        aliases = self._aliases(schema, name, path)
        properties = properties_of(schema, ENUM_RESERVED)
        enum = Enum(name, tuple(symbols), default, doc_of(schema), aliases, properties)
        return self._defined(enum, self._names.get(name.full), path)

    def _fixed(self, schema: dict[str, Any], namespace: str, path: str) -> Fixed:
        name = self._name(schema, namespace, path)
        size = schema.get("size")
        if type(size) is not int or size < 0 or size not in INT_RANGE:
            fail(path, f"Invalid or no size: {shown(schema)}")
        properties = properties_of(schema, SCHEMA_RESERVED)
        aliases = self._aliases(schema, name, path)
        logical = logical_of("fixed", properties, size)
        fixed = Fixed(name, size, doc_of(schema), aliases, properties, logical)
        return self._defined(fixed, self._names.get(name.full), path)

    def _defined(self, node: N, earlier: Named | None, path: str) -> N:
        """Register a definition; as in Java an identical one may be repeated."""
        full = node.name.full
        if earlier is None:
            self._names[full] = node
        elif print_definition(earlier) == print_definition(node):
            self._names[full] = earlier
            assert isinstance(earlier, type(node))
            return earlier
        else:
            fail(path, f"Can't redefine: {full}")
        return node

    def _name(self, schema: dict[str, Any], namespace: str, path: str) -> Name:
        text, space = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(text, str):
            fail(path, f"No name in schema: {shown(schema)}")
        if not isinstance(space, str):
            fail(f"{path}/namespace", f"a namespace is a text, not {shown(space)}")
        name = Name.of(text, space)
        self._check_name(name.simple, f"{path}/name")
        if name.namespace and not self._lenient:
            for part in name.namespace.split("."):
                self._check_name(part, f"{path}/namespace")
        if name.full in PRIMITIVES:
            fail(f"{path}/name", f"Schemas may not be named after primitives: {name.full}")
        return name

    def _aliases(self, schema: dict[str, Any], name: Name, path: str) -> tuple[Name, ...]:
        aliases = [Name.of(alias, name.namespace) for alias in alias_texts(schema, path)]
        for alias in aliases:
            self._check_name(alias.simple, f"{path}/aliases")
        return tuple(dict.fromkeys(aliases))

    def _check_name(self, name: Any, path: str) -> None:
        if not isinstance(name, str) or self._valid_name.fullmatch(name) is None:
            rule = "letters, digits and _, and no digit first"
            fail(path, f"Illegal name: {shown(name)}; names have {rule}")


class Definition(NamedTuple):
    """A definition of a type in a text, with its enclosing namespace."""

    name: str
    schema: dict[str, Any]
    namespace: str
    path: str


def definitions_in(schema: Any, namespace: str, path: str) -> Iterator[Definition]:
    """Yield the definitions of a text that may still be invalid."""
    match schema:
        case list():
            for position, part in enumerate(schema):
                yield from definitions_in(part, namespace, f"{path}/{position}")
        case {"type": "record" | "error" | "enum" | "fixed", "name": str() as text}:
            name = Name.of(text, str(schema.get("namespace", namespace)))
            yield Definition(name.full, schema, namespace, path)
            for position, field in enumerate(json_list(schema.get("fields"))):
                if isinstance(field, dict):
                    inner = f"{path}/fields/{position}/type"
                    yield from definitions_in(field.get("type"), name.namespace, inner)
        case {"type": "array" | "map" as kind}:
            member = "items" if kind == "array" else "values"
            yield from definitions_in(schema.get(member), namespace, f"{path}/{member}")


def json_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def alias_texts(schema: dict[str, Any], path: str) -> list[str]:
    aliases = schema.get("aliases", [])
    if not isinstance(aliases, list):
        fail(f"{path}/aliases", f"aliases not an array: {shown(aliases)}")
    for alias in aliases:
        if not isinstance(alias, str):
            fail(f"{path}/aliases", f"alias not a string: {shown(alias)}")
    return aliases


def doc_of(schema: dict[str, Any]) -> str | None:
    doc = schema.get("doc")
    return doc if isinstance(doc, str) else None


def properties_of(schema: dict[str, Any], reserved: frozenset[str]) -> Properties:
    return {name: value for name, value in schema.items() if name not in reserved}


def shown(value: Any) -> str:
    """Format a part of a schema for a message, shortened if long."""
    text = write_json(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def fail(path: str, reason: str) -> NoReturn:
    raise InvalidSchema(at(path, reason))


def at(path: str, reason: str) -> str:
    return f"{reason} (at {path or '/'})"
