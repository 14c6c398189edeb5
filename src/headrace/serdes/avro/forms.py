"""Schemas in the form that fastavro reads and writes by, with defaults as values.

fastavro would hand out the default of a schema as its JSON: the text of bytes, a number for a date,
one and the same list for every record. So defaults are decoded here, and those that could be
changed by who gets them are `Fresh`, to be replaced by a copy of one's own.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import fastavro

from headrace.serdes.avro.defaults import default_value, is_default
from headrace.serdes.avro.errors import CorruptPayload
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
)

ROOT: Final = "headrace.Root"
"""A record around a root that is none: fastavro keeps what it knows of a schema in records only."""

CONVERTED: Final = frozenset(
    (
        *("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros"),
        *("local-timestamp-millis", "local-timestamp-micros", "decimal"),
    )
)
"""Logical types that values are converted for; of the others they stay as they are written."""

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fresh:
    """A default that each record needs a copy of, or one that its field cannot have."""

    value: Any
    failure: str = ""

    def copy(self) -> Any:
        if self.failure:
            raise CorruptPayload(self.failure)
        return deepcopy(self.value)


def converts(node: Node) -> bool:
    """Whether values of this type are dates, decimals and the like, and not what is written."""
    logical = node.logical
    if logical is None:
        return False
    return logical.name in CONVERTED or (logical.name == "uuid" and node.kind == "string")


def writer_form(root: Node, *, logical: bool, wrapped: bool) -> Form:
    """What fastavro writes by; a missing field gets its default."""
    return _form(root, logical, wrapped, _written_default)


def reader_form(root: Node, *, logical: bool, wrapped: bool) -> tuple[Form, bool]:
    """What fastavro reads by, and whether values may hold a `Fresh` default."""
    found: list[bool] = [False]

    def default(field: Field) -> Any:
        value = _read_default(field, logical)
        found[0] |= isinstance(value, Fresh)
        return value

    return _form(root, logical, wrapped, default), found[0]


def _form(root: Node, logical: bool, wrapped: bool, default: Callable[[Field], Any]) -> Form:
    builder = _Builder(logical)
    form = builder.form(root)
    if wrapped:
        form = {"type": "record", "name": ROOT, "fields": [{"name": "value", "type": form}]}
    parsed: Any = fastavro.parse_schema(form)
    # The parsed form has defaults as they are in JSON, and checks them; ours come after that.
    for name, record in builder.records.items():
        for field, place in zip(
            record.fields, parsed["__named_schemas"][name]["fields"], strict=True
        ):
            if field.has_default:
                place["default"] = default(field)
    found: Form = parsed
    return found


class _Builder:
    def __init__(self, logical: bool) -> None:
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
                if node.name.full in self._known:
                    return node.name.full
                self._known.add(node.name.full)
                return self._definition(node)

    def _definition(self, node: Named) -> Form:
        form: Form = {"type": node.kind, "name": node.name.full}
        if node.aliases:
            form["aliases"] = [alias.full for alias in node.aliases]
        match node:
            case Fixed():
                return self._with_logical(form | {"size": node.size}, node)
            case Enum():
                default = {} if node.default is None else {"default": node.default}
                return form | {"symbols": list(node.symbols)} | default
            case Record():
                self.records[node.name.full] = node
                return form | {"fields": [self._field(field) for field in node.fields]}

    def _field(self, field: Field) -> Form:
        form = {"name": field.name, "type": self.form(field.type)}
        return form | {"aliases": list(field.aliases)} if field.aliases else form

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


def _read_default(field: Field, logical: bool) -> Any:
    if not is_default(field.type, field.default):
        return Fresh(None, f"{field.name}: the schema's default {field.default!r} does not fit")
    value = default_value(field.type, field.default)
    if logical:
        value = _converted(field.type, value)
    return Fresh(value) if isinstance(value, dict | list) else value


def _converted(node: Node, value: Any) -> Any:
    """The value with logical types, by way of its bytes."""
    written = BytesIO()
    plain = writer_form(node, logical=False, wrapped=True)
    fastavro.schemaless_writer(written, plain, {"value": value})
    written.seek(0)
    form = writer_form(node, logical=True, wrapped=True)
    read: Any = fastavro.schemaless_reader(written, form, None)
    return read["value"]


def with_fresh_defaults(value: Any) -> Any:
    """The value with a copy of its own in the place of each default that could be changed."""
    match value:
        case Fresh():
            return value.copy()
        case dict():
            for name, part in value.items():
                if isinstance(part, dict | list | Fresh):
                    value[name] = with_fresh_defaults(part)
        case list():
            for position, part in enumerate(value):
                if isinstance(part, dict | list | Fresh):
                    value[position] = with_fresh_defaults(part)
    return value
