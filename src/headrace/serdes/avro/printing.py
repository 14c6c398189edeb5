"""Schemas as text: as Java's `Schema.toString` prints them, and Avro's parsing canonical form."""

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.serdes.avro.json_text import quoted, write_json
from headrace.serdes.avro.model import (
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
)

KINDS = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}

Members = list[tuple[str, str]]
"""Names and JSON texts of an object's members, in order."""


def print_schema(root: Node, known: Iterable[str] = ()) -> str:
    """Compact JSON with every attribute. Names of `known` types stand for their definitions."""
    return _print(root, set(known), "")


def print_definition(node: Named) -> str:
    """The definition of one type, in which all others are names."""
    return _print_definition(node, _Everything(), "")


class _Everything(set[str]):
    """A set of names in which each is."""

    def __contains__(self, name: object) -> bool:
        return True


def print_parsing_canonical_form(root: Node) -> str:
    """Avro's parsing canonical form: only what says how values are written, names in full."""
    return _print_canonical(root, set())


def qualified(name: Name, namespace: str) -> str:
    """The shortest text that names a type from within a namespace."""
    is_near = name.namespace == namespace and namespace and name.simple not in KINDS
    return name.simple if is_near else name.full


def _print(node: Node, known: set[str], namespace: str) -> str:
    match node:
        case Primitive():
            if not node.properties:
                return quoted(node.kind)
            return _object([("type", quoted(node.kind)), *_properties(node.properties)])
        case Union():
            return f"[{','.join(_print(branch, known, namespace) for branch in node.branches)}]"
        case Array():
            items = ("items", _print(node.items, known, namespace))
            return _object([("type", '"array"'), items, *_properties(node.properties)])
        case Map():
            values = ("values", _print(node.values, known, namespace))
            return _object([("type", '"map"'), values, *_properties(node.properties)])
        case Record() | Enum() | Fixed():
            if node.name.full in known:
                return quoted(qualified(node.name, namespace))
            known.add(node.name.full)
            return _print_definition(node, known, namespace)


def _print_definition(node: Named, known: set[str], namespace: str) -> str:
    kind = "error" if isinstance(node, Record) and node.is_error else node.kind
    members = [("type", quoted(kind)), ("name", quoted(node.name.simple))]
    if node.name.namespace != namespace:
        members.append(("namespace", quoted(node.name.namespace)))
    if node.doc is not None:
        members.append(("doc", quoted(node.doc)))
    match node:
        case Record():
            fields = [_print_field(field, known, node.name.namespace) for field in node.fields]
            members.append(("fields", f"[{','.join(fields)}]"))
        case Enum():
            members.append(("symbols", write_json(list(node.symbols))))
            if node.default is not None:
                members.append(("default", quoted(node.default)))
        case Fixed():
            members.append(("size", str(node.size)))
    members += _properties(node.properties)
    aliases = [qualified(alias, node.name.namespace) for alias in node.aliases]
    return _object(members + _aliases(aliases))


def _print_field(field: Field, known: set[str], namespace: str) -> str:
    members = [("name", quoted(field.name)), ("type", _print(field.type, known, namespace))]
    if field.doc is not None:
        members.append(("doc", quoted(field.doc)))
    if field.has_default:
        members.append(("default", write_json(field.default)))
    if field.order != "ascending":
        members.append(("order", quoted(field.order)))
    return _object(members + _aliases(field.aliases) + _properties(field.properties))


def _aliases(aliases: Sequence[str]) -> Members:
    return [("aliases", write_json(list(aliases)))] if aliases else []


def _properties(properties: Properties) -> Members:
    return [(name, write_json(value)) for name, value in properties.items()]


def _object(members: Members) -> str:
    return f"{{{','.join(f'{quoted(name)}:{text}' for name, text in members)}}}"


def _print_canonical(node: Node, known: set[str]) -> str:
    match node:
        case Primitive():
            return quoted(node.kind)
        case Union():
            return f"[{','.join(_print_canonical(branch, known) for branch in node.branches)}]"
        case Array():
            return _object([("type", '"array"'), ("items", _print_canonical(node.items, known))])
        case Map():
            return _object([("type", '"map"'), ("values", _print_canonical(node.values, known))])
    full = quoted(node.name.full)
    if node.name.full in known:
        return full
    known.add(node.name.full)
    return _object([("name", full), ("type", quoted(node.kind)), _canonical_content(node, known)])


def _canonical_content(node: Named, known: set[str]) -> tuple[str, str]:
    match node:
        case Enum():
            return "symbols", write_json(list(node.symbols))
        case Fixed():
            return "size", str(node.size)
        case Record():
            fields = [
                _object([("name", quoted(f.name)), ("type", _print_canonical(f.type, known))])
                for f in node.fields
            ]
            return "fields", f"[{','.join(fields)}]"


def sorted_json(value: Any) -> Any:
    """The value with the members of all objects in the order of their names."""
    match value:
        case dict():
            return {name: sorted_json(value[name]) for name in sorted(value)}
        case list():
            return [sorted_json(part) for part in value]
    return value
