"""Normalizes equivalent schemas, as Confluent's registry does with `normalize=true`.

Properties are sorted by name, after those of a logical type; aliases are sorted; defaults take the
form of their field's type; empty docs of types are removed.
"""

from collections.abc import Iterable
from typing import Any

from headrace.serdes.avro import model
from headrace.serdes.avro.defaults import is_default
from headrace.serdes.avro.printing import sorted_json


def normalize(root: model.Node) -> model.Node:
    """Return a copy of the tree with a canonical order."""
    return _Normalizer(keeps_values=False).node(root)


def in_order(root: model.Node) -> model.Node:
    """Return a copy in canonical order with docs and defaults unchanged, for Java's equality."""
    return _Normalizer(keeps_values=True).node(root)


class _Normalizer:
    def __init__(self, *, keeps_values: bool) -> None:
        self._keeps_values = keeps_values
        self._done: dict[int, model.Node] = {}
        """Copies of named types by the identity of the original, so that cycles stay cycles."""

    def node(self, node: model.Node) -> model.Node:
        if id(node) not in self._done:
            return self._normalized(node)
        return self._done[id(node)]

    def _normalized(self, node: model.Node) -> model.Node:
        match node:
            case model.Union():
                return model.Union(tuple(map(self.node, node.branches)))
            case model.Array():
                return model.Array(self.node(node.items), ordered(node.properties, node.logical))
            case model.Map():
                return model.Map(self.node(node.values), ordered(node.properties, node.logical))
            case model.Primitive():
                properties = ordered(node.properties, node.logical)
                return model.Primitive(node.kind, properties, node.logical)
        done: model.Node
        doc = node.doc if self._keeps_values else node.doc or None
        aliases = by_full_name(node.aliases)
        properties = ordered(node.properties, node.logical)
        match node:
            case model.Enum():
                done = self._done[id(node)] = model.Enum(
                    node.name, node.symbols, node.default, doc, aliases, properties
                )
            case model.Fixed():
                done = self._done[id(node)] = model.Fixed(
                    node.name, node.size, doc, aliases, properties, node.logical
                )
            case model.Record():
                record = model.Record(node.name, (), doc, aliases, properties)
                done = self._done[id(node)] = record
                record.fields = tuple(map(self._field, node.fields))
        return done

    def _field(self, field: model.Field) -> model.Field:
        return model.Field(
            field.name,
            self.node(field.type),
            field.doc,
            self._default(field) if field.has_default else field.default,
            field.order,
            tuple(sorted(field.aliases)),
            ordered(field.properties, None),
        )

    def _default(self, field: model.Field) -> Any:
        if self._keeps_values:
            return sorted_json(field.default)
        return default_as_written(field.type, field.default)


def ordered(properties: model.Properties, logical: model.Logical | None) -> model.Properties:
    """Sort properties by name, those of a logical type first."""
    first: model.Properties = {}
    if logical is not None:
        first["logicalType"] = logical.name
        if logical.name == "decimal":
            first["precision"] = logical.precision
            if logical.scale:
                first["scale"] = logical.scale
    rest = {name: value for name, value in properties.items() if name not in first}
    return first | {name: sorted_json(rest[name]) for name in sorted(rest)}


def by_full_name(aliases: Iterable[model.Name]) -> tuple[model.Name, ...]:
    return tuple(sorted(aliases, key=lambda alias: alias.full))


def default_as_written(node: model.Node, value: Any) -> Any:
    """Return a default in the canonical form of the field's type: 0 of a double is 0.0."""
    match node:
        case model.Primitive(kind="float" | "double") if type(value) is int:
            return float(value)
        case model.Array() if isinstance(value, list):
            return [default_as_written(node.items, item) for item in value]
        case model.Map() if isinstance(value, dict):
            return {name: default_as_written(node.values, value[name]) for name in sorted(value)}
        case model.Record() if isinstance(value, dict):
            types = {field.name: field.type for field in node.fields}
            return {
                name: default_as_written(types[name], value[name]) if name in types else value[name]
                for name in sorted(value)
            }
        case model.Union():
            fitting = (branch for branch in node.branches if is_default(branch, value))
            branch = next(fitting, None)
            return sorted_json(value) if branch is None else default_as_written(branch, value)
    return sorted_json(value)
