"""Schemas in the form that fastavro writes and reads by, with defaults as values."""

from typing import Any, Final

import fastavro

from headrace.serdes.avro.defaults import default_value, is_default
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Union,
    nodes_of,
)

ROOT: Final = "HeadraceRoot"
"""A record around a root that is none: fastavro keeps what it knows of a schema in records only."""

CONVERTED: Final = frozenset(
    (
        *("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros"),
        *("local-timestamp-millis", "local-timestamp-micros", "decimal"),
    )
)
"""Logical types that values are converted for; of the others they stay as they are written."""

Form = dict[str, Any]


def converts(node: Node) -> bool:
    """Whether values of this type are dates, decimals and the like, and not what is written."""
    logical = node.logical
    if logical is None:
        return False
    return logical.name in CONVERTED or (logical.name == "uuid" and node.kind == "string")


def writer_form(root: Node, *, logical: bool, wrapped: bool) -> Form:
    """What fastavro writes by, and reads what was written by it; missing fields get defaults."""
    builder = _Builder(root, logical)
    form = builder.form(root)
    if wrapped:
        form = {"type": "record", "name": ROOT, "fields": [{"name": "value", "type": form}]}
    parsed: Any = fastavro.parse_schema(form)
    # fastavro would check and write a default as the JSON that it is, which bytes cannot be.
    for name, record in builder.records.items():
        places = parsed["__named_schemas"][name]["fields"]
        for field, place in zip(record.fields, places, strict=True):
            if field.has_default:
                place["default"] = _written_default(field)
    found: Form = parsed
    return found


class _Builder:
    def __init__(self, root: Node, logical: bool) -> None:
        names = [node.name for node in nodes_of(root) if isinstance(node, Named)]
        self._has_namespaces = any(name.namespace for name in names)
        self._logical = logical
        self._known: set[str] = set()
        self.records: dict[str, Record] = {}

    def form(self, node: Node) -> Any:
        match node:
            case Primitive():
                form = self._with_logical({"type": node.kind}, node)
                return form if len(form) > 1 else node.kind  # A bare name is read faster.
            case Union():
                return [self.form(branch) for branch in node.branches]
            case Array():
                return {"type": "array", "items": self.form(node.items)}
            case Map():
                return {"type": "map", "values": self.form(node.values)}
            case Record() | Enum() | Fixed():
                name = self._name(node)
                if name in self._known:
                    return name
                self._known.add(name)
                return self._definition(node, name)

    def _name(self, node: Named) -> str:
        """A name without a namespace inherits one, unless it has a dot."""
        is_bare = self._has_namespaces and not node.name.namespace
        return f".{node.name.simple}" if is_bare else node.name.full

    def _definition(self, node: Named, name: str) -> Form:
        form: Form = {"type": node.kind, "name": name}
        match node:
            case Fixed():
                return self._with_logical(form | {"size": node.size}, node)
            case Enum():
                return form | {"symbols": list(node.symbols)}
            case Record():
                self.records[name] = node
                fields = [{"name": f.name, "type": self.form(f.type)} for f in node.fields]
                return form | {"fields": fields}

    def _with_logical(self, form: Form, node: Primitive | Fixed) -> Form:
        if not self._logical or not converts(node):
            return form
        return form | _logical_members(node.logical or Logical(""))


def _logical_members(logical: Logical) -> Form:
    members: Form = {"logicalType": logical.name}
    if logical.name == "decimal":
        members |= {"precision": logical.precision, "scale": logical.scale}
    return members


def _written_default(field: Field) -> Any:
    if not is_default(field.type, field.default):
        return field.default  # Read leniently; whoever needs it is told that it does not fit.
    return default_value(field.type, field.default)
