"""Schemas that mean the same, made equal: what Confluent's registry does with `normalize=true`.

Properties stand in order of their names, after those of a logical type; aliases in order; defaults
as the type of the field writes them; empty docs of types are left out. Docs and all else stay.
"""

from collections.abc import Iterable
from typing import Any

from headrace.serdes.avro.defaults import is_default
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Name,
    Node,
    Primitive,
    Properties,
    Record,
    Union,
)
from headrace.serdes.avro.printing import sorted_json


def normalize(root: Node) -> Node:
    """A tree of its own in which the order of what has no order is fixed."""
    return _Normalizer(keeps_values=False).node(root)


def in_order(root: Node) -> Node:
    """The same without a change to docs and defaults: equal trees are equal to Java as well."""
    return _Normalizer(keeps_values=True).node(root)


class _Normalizer:
    def __init__(self, *, keeps_values: bool) -> None:
        self._keeps_values = keeps_values
        self._done: dict[int, Node] = {}
        """Named types by the identity of what they were, so that cycles stay cycles."""

    def node(self, node: Node) -> Node:
        if id(node) not in self._done:
            return self._normalized(node)
        return self._done[id(node)]

    def _normalized(self, node: Node) -> Node:
        match node:
            case Union():
                return Union(tuple(map(self.node, node.branches)))
            case Array():
                return Array(self.node(node.items), ordered(node.properties, node.logical))
            case Map():
                return Map(self.node(node.values), ordered(node.properties, node.logical))
            case Primitive():
                properties = ordered(node.properties, node.logical)
                return Primitive(node.kind, properties, node.logical)
        done: Node
        doc = node.doc if self._keeps_values else node.doc or None
        aliases = by_full_name(node.aliases)
        properties = ordered(node.properties, node.logical)
        match node:
            case Enum():
                done = self._done[id(node)] = Enum(
                    node.name, node.symbols, node.default, doc, aliases, properties
                )
            case Fixed():
                done = self._done[id(node)] = Fixed(
                    node.name, node.size, doc, aliases, properties, node.logical
                )
            case Record():
                record = Record(node.name, (), doc, aliases, properties)
                done = self._done[id(node)] = record
                record.fields = tuple(map(self._field, node.fields))
        return done

    def _field(self, field: Field) -> Field:
        return Field(
            field.name,
            self.node(field.type),
            field.doc,
            self._default(field) if field.has_default else field.default,
            field.order,
            tuple(sorted(field.aliases)),
            ordered(field.properties, None),
        )

    def _default(self, field: Field) -> Any:
        if self._keeps_values:
            return sorted_json(field.default)
        return default_as_written(field.type, field.default)


def ordered(properties: Properties, logical: Logical | None) -> Properties:
    """A logical type in front with what belongs to it, the rest by name."""
    first: Properties = {}
    if logical is not None:
        first["logicalType"] = logical.name
        if logical.name == "decimal":
            first["precision"] = logical.precision
            if logical.scale:
                first["scale"] = logical.scale
    rest = {name: value for name, value in properties.items() if name not in first}
    return first | {name: sorted_json(rest[name]) for name in sorted(rest)}


def by_full_name(aliases: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(aliases, key=lambda alias: alias.full))


def default_as_written(node: Node, value: Any) -> Any:
    """A default in the one way that the field's type writes it: 0 of a double is 0.0."""
    match node:
        case Primitive(kind="float" | "double") if type(value) is int:
            return float(value)
        case Array() if isinstance(value, list):
            return [default_as_written(node.items, item) for item in value]
        case Map() if isinstance(value, dict):
            return {name: default_as_written(node.values, value[name]) for name in sorted(value)}
        case Record() if isinstance(value, dict):
            types = {field.name: field.type for field in node.fields}
            return {
                name: default_as_written(types[name], value[name]) if name in types else value[name]
                for name in sorted(value)
            }
        case Union():
            fitting = (branch for branch in node.branches if is_default(branch, value))
            branch = next(fitting, None)
            return sorted_json(value) if branch is None else default_as_written(branch, value)
    return sorted_json(value)
