"""The changes between two Avro schemas, field by field."""

import json
from collections.abc import Iterator

from headrace.registry.evolution.changes import Change, ChangeKind
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Node,
    Record,
    Union,
    branch_name,
)
from headrace.serdes.avro.schema import AvroSchema

ADDED, REMOVED, CHANGED = ChangeKind.ADDED, ChangeKind.REMOVED, ChangeKind.CHANGED


def avro_changes(old: AvroSchema, new: AvroSchema) -> list[Change]:
    path = new.root.name.simple if isinstance(new.root, Record) else ""
    return list(_Walk().between(old.root, new.root, path))


def type_text(node: Node) -> str:
    """Return a type in a few words; named types by their names."""
    match node:
        case Array():
            return f"array of {type_text(node.items)}"
        case Map():
            return f"map of {type_text(node.values)}"
        case Union():
            return " | ".join(map(type_text, node.branches))
    name = branch_name(node)
    return f"{name} ({node.logical.name})" if node.logical else name


class _Walk:
    """Visits each pair of types once, because types may be recursive."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def between(self, old: Node, new: Node, path: str) -> Iterator[Change]:
        if (id(old), id(new)) in self._seen:
            return
        self._seen.add((id(old), id(new)))
        match old, new:
            case Record(), Record():
                yield from _renamed(old, new, path)
                yield from self._fields(old, new, path)
            case Enum(), Enum():
                yield from _renamed(old, new, path)
                yield from _symbols(old, new, path)
            case Fixed(), Fixed():
                yield from _renamed(old, new, path)
                if old.size != new.size:
                    yield Change(CHANGED, path, f"{old.size} -> {new.size} bytes")
            case Array(), Array():
                yield from self.between(old.items, new.items, f"{path}[]")
            case Map(), Map():
                yield from self.between(old.values, new.values, f"{path}{{}}")
            case Union(), Union():
                yield from self._branches(old, new, path)
            case _:
                before, after = type_text(old), type_text(new)
                if before != after:
                    yield Change(CHANGED, path, f"{before} -> {after}")

    def _fields(self, old: Record, new: Record, path: str) -> Iterator[Change]:
        before = {field.name: field for field in old.fields}
        for field in new.fields:
            here = f"{path}.{field.name}"
            name = next((one for one in (field.name, *field.aliases) if one in before), None)
            if name is None:
                yield Change(ADDED, here, f"{type_text(field.type)}, {_default_text(field)}")
                continue
            source = before.pop(name)
            if name != field.name:
                yield Change(CHANGED, here, f"was called {name}, which is an alias now")
            yield from self._field(source, field, here)
        for field in before.values():
            detail = f"{type_text(field.type)}, had {_default_text(field)}"
            yield Change(REMOVED, f"{path}.{field.name}", detail)

    def _field(self, old: Field, new: Field, path: str) -> Iterator[Change]:
        yield from self.between(old.type, new.type, path)
        if _default_text(old) != _default_text(new):
            yield Change(CHANGED, path, f"{_default_text(old)} -> {_default_text(new)}")
        if old.doc != new.doc:
            yield Change(CHANGED, path, "doc")
        if old.order != new.order:
            yield Change(CHANGED, path, f"order {old.order} -> {new.order}")

    def _branches(self, old: Union, new: Union, path: str) -> Iterator[Change]:
        before = {branch_name(branch): branch for branch in old.branches}
        after = {branch_name(branch): branch for branch in new.branches}
        for name, branch in after.items():
            if name in before:
                yield from self.between(before[name], branch, path)
            else:
                yield Change(ADDED, path, f"{type_text(branch)} in the union")
        for name, branch in before.items():
            if name not in after:
                yield Change(REMOVED, path, f"{type_text(branch)} from the union")


def _renamed(old: Record | Enum | Fixed, new: Record | Enum | Fixed, path: str) -> Iterator[Change]:
    if old.name != new.name:
        yield Change(CHANGED, path, f"name {old.name.full} -> {new.name.full}")


def _symbols(old: Enum, new: Enum, path: str) -> Iterator[Change]:
    for symbol in new.symbols:
        if symbol not in old.symbols:
            yield Change(ADDED, path, f"symbol {symbol}")
    for symbol in old.symbols:
        if symbol not in new.symbols:
            yield Change(REMOVED, path, f"symbol {symbol}")
    if old.default != new.default:
        yield Change(CHANGED, path, f"default {old.default} -> {new.default}")


def _default_text(field: Field) -> str:
    return f"default {json.dumps(field.default)}" if field.has_default else "no default"
