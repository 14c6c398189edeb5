"""Schemas as text: in the form of Java's `Schema.toString`, and Avro's parsing canonical form."""

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.serdes.avro import model
from headrace.serdes.avro.json_text import quoted, write_json

KINDS = model.PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}

Members = list[tuple[str, str]]
"""Names and JSON texts of an object's members, in order."""


def print_schema(root: model.Node, known: Iterable[str] = ()) -> str:
    """Format a schema as compact JSON with every attribute, and `known` types by their names."""
    return _print(root, set(known), "")


def print_definition(node: model.Named) -> str:
    """Format the definition of one type, with all other types by name."""
    return _print_definition(node, _Everything(), "")


class _Everything(set[str]):
    """A set that contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


def print_parsing_canonical_form(root: model.Node) -> str:
    """Format Avro's parsing canonical form: only attributes that affect the encoding, full
    names."""
    return _print_canonical(root, set())


def qualified(name: model.Name, namespace: str) -> str:
    """Return the shortest text that names a type from within a namespace."""
    is_near = name.namespace == namespace and namespace and name.simple not in KINDS
    return name.simple if is_near else name.full


def _print(node: model.Node, known: set[str], namespace: str) -> str:
    match node:
        case model.Primitive():
            if not node.properties:
                return quoted(node.kind)
            return _object([("type", quoted(node.kind)), *_properties(node.properties)])
        case model.Union():
            return f"[{','.join(_print(branch, known, namespace) for branch in node.branches)}]"
        case model.Array():
            items = ("items", _print(node.items, known, namespace))
            return _object([("type", '"array"'), items, *_properties(node.properties)])
        case model.Map():
            values = ("values", _print(node.values, known, namespace))
            return _object([("type", '"map"'), values, *_properties(node.properties)])
        case model.Record() | model.Enum() | model.Fixed():
            if node.name.full in known:
                return quoted(qualified(node.name, namespace))
            known.add(node.name.full)
            return _print_definition(node, known, namespace)


def _print_definition(node: model.Named, known: set[str], namespace: str) -> str:
    kind = "error" if isinstance(node, model.Record) and node.is_error else node.kind
    members = [("type", quoted(kind)), ("name", quoted(node.name.simple))]
    if node.name.namespace != namespace:
        members.append(("namespace", quoted(node.name.namespace)))
    if node.doc is not None:
        members.append(("doc", quoted(node.doc)))
    match node:
        case model.Record():
            fields = [_print_field(field, known, node.name.namespace) for field in node.fields]
            members.append(("fields", f"[{','.join(fields)}]"))
        case model.Enum():
            members.append(("symbols", write_json(list(node.symbols))))
            if node.default is not None:
                members.append(("default", quoted(node.default)))
        case model.Fixed():
            members.append(("size", str(node.size)))
    members += _properties(node.properties)
    aliases = [qualified(alias, node.name.namespace) for alias in node.aliases]
    return _object(members + _aliases(aliases))


def _print_field(field: model.Field, known: set[str], namespace: str) -> str:
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


def _properties(properties: model.Properties) -> Members:
    return [(name, write_json(value)) for name, value in properties.items()]


def _object(members: Members) -> str:
    return f"{{{','.join(f'{quoted(name)}:{text}' for name, text in members)}}}"


def _print_canonical(node: model.Node, known: set[str]) -> str:
    match node:
        case model.Primitive():
            return quoted(node.kind)
        case model.Union():
            return f"[{','.join(_print_canonical(branch, known) for branch in node.branches)}]"
        case model.Array():
            return _object([("type", '"array"'), ("items", _print_canonical(node.items, known))])
        case model.Map():
            return _object([("type", '"map"'), ("values", _print_canonical(node.values, known))])
    full = quoted(node.name.full)
    if node.name.full in known:
        return full
    known.add(node.name.full)
    return _object([("name", full), ("type", quoted(node.kind)), _canonical_content(node, known)])


def _canonical_content(node: model.Named, known: set[str]) -> tuple[str, str]:
    match node:
        case model.Enum():
            return "symbols", write_json(list(node.symbols))
        case model.Fixed():
            return "size", str(node.size)
        case model.Record():
            fields = [
                _object([("name", quoted(f.name)), ("type", _print_canonical(f.type, known))])
                for f in node.fields
            ]
            return "fields", f"[{','.join(fields)}]"


def sorted_json(value: Any) -> Any:
    """Sort the members of all objects by name."""
    match value:
        case dict():
            return {name: sorted_json(value[name]) for name in sorted(value)}
        case list():
            return [sorted_json(part) for part in value]
    return value
