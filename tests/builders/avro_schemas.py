"""Random Avro schemas, their changes and values, from a seed or from hypothesis."""

import json
import random
import struct
from typing import Any

from headrace.serdes.avro.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    branch_name,
)

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 7,
    "long": 1 << 40,
    "float": 0.5,
    "double": 1.5,
    "bytes": "\u00ff\u0001",
    "string": "grün",
}


class Schemas:
    """Schemas of one seed. Names come from a short list, so two schemas have some in common."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[str] = []
        """In full, in the order of their definitions."""
        self.namespace = ""
        """That of the record whose fields are made; names without one are of it."""

    def schema(self) -> Any:
        """A schema of its own names; most of the time a record."""
        self.names = []
        self.namespace = ""
        return self.record(0) if self.random.random() < 0.8 else self.type(0)

    def type(self, depth: int) -> Any:
        chosen = self.random.random()
        if depth > 3 or chosen < 0.5:
            return self.random.choice(PRIMITIVES)
        if chosen < 0.6:
            return {"type": "array", "items": self.type(depth + 1)}
        if chosen < 0.67:
            return {"type": "map", "values": self.type(depth + 1)}
        if chosen < 0.8:
            return self.union(depth)
        if chosen < 0.86 and (known := self.known_names()):
            return self.random.choice(known)
        if chosen < 0.92:
            return self.enum()
        return self.fixed() if chosen < 0.95 else self.record(depth + 1)

    def record(self, depth: int) -> Any:
        name = self.new_name("R")
        outer, self.namespace = self.namespace, self.names[-1].rpartition(".")[0]
        fields = [self.field(f"f{n}", depth) for n in range(self.random.randrange(5))]
        self.namespace = outer
        record: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
        if self.random.random() < 0.2:
            record["aliases"] = [self.random.choice(("Old", "R0", "R1", "x.Old"))]
        if self.random.random() < 0.2:
            record |= {"doc": "A record.", "owner": {"team": "b", "cost": 1.25e9}}
        return record

    def field(self, name: str, depth: int) -> Any:
        field = {"name": name, "type": self.type(depth + 1)}
        kind = field["type"]
        if isinstance(kind, list) and kind:
            kind = kind[0]
        if isinstance(kind, str) and kind in DEFAULTS and self.random.random() < 0.5:
            field["default"] = DEFAULTS[kind]
        if self.random.random() < 0.1:
            field["aliases"] = [f"f{self.random.randrange(5, 9)}"]
        if self.random.random() < 0.1:
            field |= {"doc": "A field.", "order": "descending"}
        return field

    def union(self, depth: int) -> Any:
        branches: list[Any] = self.random.sample(PRIMITIVES, self.random.randrange(1, 4))
        if self.random.random() < 0.3:
            branches.append(self.enum())
        if self.random.random() < 0.3:
            branches.append(self.record(depth + 1))
        if self.random.random() < 0.2:
            branches.append({"type": "array", "items": self.type(depth + 1)})
        return branches

    def enum(self) -> Any:
        symbols = self.random.sample("ABCDE", self.random.randrange(1, 5))
        enum = {"type": "enum", "name": self.new_name("E"), "symbols": symbols}
        if self.random.random() < 0.3:
            enum["default"] = symbols[0]
        return enum

    def fixed(self) -> Any:
        size = self.random.randrange(1, 4)
        return {"type": "fixed", "name": self.new_name("F"), "size": size}

    def new_name(self, letter: str) -> str:
        name = f"{letter}{len(self.names)}"
        if self.random.random() < 0.1:
            name = f"com.acme.{name}"
        is_full = "." in name or not self.namespace
        self.names.append(name if is_full else f"{self.namespace}.{name}")
        return name

    def known_names(self) -> list[str]:
        """Names in scope here; those without a namespace only where there is no namespace."""
        return [name for name in self.names if "." in name or not self.namespace]

    def changed(self, schema: Any) -> Any:
        """The schema with one to three small changes, which may make it unreadable or invalid."""
        changed = json.loads(json.dumps(schema))
        for _ in range(self.random.randrange(1, 4)):
            places = [place for place in walk(changed) if isinstance(place, dict)]
            if places:
                self.change(self.random.choice(places))
        return changed

    def change(self, part: dict[str, Any]) -> None:
        choose = self.random.choice
        if "symbols" in part and self.random.random() < 0.8:
            symbol = choose("ABCDE")
            without = [other for other in part["symbols"] if other != symbol]
            part["symbols"] = without if len(without) < len(part["symbols"]) else [*without, symbol]
        elif "size" in part:
            part["size"] = choose((part["size"], part["size"] + 1))
        elif "fields" in part and self.random.random() < 0.8:
            if part["fields"] and self.random.random() < 0.5:
                part["fields"].pop(self.random.randrange(len(part["fields"])))
            else:
                new = {"name": f"n{self.random.randrange(99)}", "type": choose(PRIMITIVES)}
                if self.random.random() < 0.5:
                    new["default"] = DEFAULTS[new["type"]]
                part["fields"].insert(self.random.randrange(len(part["fields"]) + 1), new)
        elif part.get("type") in ("record", "enum", "fixed"):
            part["name"] = choose((f"x.{part['name']}", f"{part['name']}x"))
        elif "name" in part and self.random.random() < 0.3:
            old, part["name"] = part["name"], f"m{self.random.randrange(99)}"
            part["aliases"] = [old] if self.random.random() < 0.5 else []
        elif isinstance(part.get("type"), str) and part["type"] in PRIMITIVES:
            part.pop("default", None)
            part["type"] = choose((*PRIMITIVES, ["null", part["type"]]))
        elif isinstance(part.get("type"), list) and self.random.random() < 0.7:
            part.pop("default", None)
            self.random.shuffle(part["type"])
            part["type"] = part["type"][self.random.randrange(2) :] or ["null"]

    def json_value(self, node: Node, depth: int = 0) -> Any:
        """A value of a type, in Avro's JSON encoding."""
        match node:
            case Primitive():
                return self.primitive(node.kind)
            case Enum():
                return self.random.choice(node.symbols)
            case Fixed():
                return self.bytes_text(node.size)
            case Array():
                return [self.json_value(node.items, depth + 1) for _ in range(self.few(depth))]
            case Map():
                keys = [f"k{n}" for n in range(self.few(depth))]
                return {key: self.json_value(node.values, depth + 1) for key in keys}
            case Union():
                return self.tagged(node, depth)
            case Record():
                return {f.name: self.json_value(f.type, depth + 1) for f in node.fields}

    def tagged(self, union: Union, depth: int) -> Any:
        """A branch with its name; deep down one that ends there, where there is one."""
        flat = [branch for branch in union.branches if not isinstance(branch, Record)]
        branches = flat if depth > 5 and flat else union.branches
        branch = self.random.choice(branches)
        value = self.json_value(branch, depth + 1)
        return None if branch.kind == "null" else {branch_name(branch): value}

    def few(self, depth: int) -> int:
        return 0 if depth > 5 else self.random.randrange(3)

    def primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self.random.random() < 0.5
            case "int":
                return self.random.choice((0, -1, 64, (1 << 31) - 1, -(1 << 31)))
            case "long":
                return self.random.choice((0, -64, 1 << 40, (1 << 63) - 1, -(1 << 63)))
            case "float":
                exact: float = struct.unpack("<f", struct.pack("<f", self.random.gauss(0, 9)))[0]
                return exact
            case "double":
                return self.random.gauss(0, 1e6)
            case "bytes":
                return self.bytes_text(self.random.randrange(4))
        return "".join(self.random.choices('aé\u4e2d\U0001f600"\\', k=self.random.randrange(6)))

    def bytes_text(self, size: int) -> str:
        return self.random.randbytes(size).decode("latin-1")


def walk(schema: Any) -> list[Any]:
    """Every part of a schema that is an object or a list."""
    if isinstance(schema, dict):
        inner = [schema.get(name) for name in ("type", "fields", "items", "values")]
        return [schema, *(part for value in inner for part in walk(value))]
    if isinstance(schema, list):
        return [schema, *(part for value in schema for part in walk(value))]
    return []
