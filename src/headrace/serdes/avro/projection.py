"""Reads values of a writer's schema as values of a reader's, by the rules of Java's resolver.

A pair of types is compiled once into a function `(data, position) -> (value, position)`. fastavro
resolves too, but takes the first possible branch of a reader's union, where Java takes the equal
one, and returns defaults in their JSON form.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from fastavro.logical_readers import LOGICAL_READERS

from headrace.serdes.avro.logical import converts
from headrace.serdes.avro.model import (
    PROMOTIONS,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Union,
    can_read,
)
from headrace.serdes.avro.primitives import DOUBLE, FLOAT
from headrace.serdes.avro.unfit import Unfit
from headrace.serdes.avro.writing import default_payload
from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.varints import varint_at

Read = Callable[[bytes, int], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The Python form of decoded values."""

    primitives: dict[str, Read]
    fixed: Callable[[int], Read]
    branch: Callable[[Read, Union, Node], Read]
    """Wraps values of a branch of the reader's union."""

    convert: Callable[[Read, Node, Node], Read]
    """Converts values of a logical type, given the writer's and the reader's type."""


def projection(writer: Node, reader: Node, shape: Shape) -> Read:
    """Compile a function that reads values of `writer` as values of `reader`.

    It raises `CorruptPayload` for values that cannot be projected, and IndexError and similar
    errors for truncated or invalid bytes.
    """
    return _Compiler(shape).compile(writer, reader)


class Refusal:
    """Replaces a function where values cannot be read; a union may never contain such a value."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, data: bytes, position: int) -> tuple[Any, int]:
        raise CorruptPayload(self.reason)


class Default:
    """The default of a reader's field that was not written, fresh for each record."""

    def __init__(self, field: Field, read: Read) -> None:
        self._field = field
        self._read = read
        self._written: bytes | None = None

    def __call__(self) -> Any:
        if self._written is None:
            self._written = self._write()
        return self._read(self._written, 0)[0]

    def _write(self) -> bytes:
        try:
            return default_payload(self._field)
        except Unfit as error:
            raise CorruptPayload(f"{self._field.name}: {error.reason}") from None


class _Compiler:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._records: dict[tuple[int, int], Read] = {}

    def compile(self, writer: Node, reader: Node) -> Read:
        read = self._compile(writer, reader)
        return read if isinstance(writer, Union) else self._shape.convert(read, writer, reader)

    def _compile(self, writer: Node, reader: Node) -> Read:
        match writer, reader:
            case Union(), _:
                return self._union(writer, reader)
            case _, Union():
                branch = self._matching_branch(writer, reader)
                if branch is None:
                    return Refusal(f"no branch of the reader's union takes a {writer.kind}")
                return self._shape.branch(self.compile(writer, branch), reader, branch)
            case Primitive(), Primitive() if can_read(writer.kind, reader.kind):
                return self._primitive(writer.kind, reader.kind)
            case Array(), Array():
                return _array(self.compile(writer.items, reader.items))
            case Map(), Map():
                return _map(self.compile(writer.values, reader.values))
            case Fixed(), Fixed() if _is_same_name(writer, reader) and writer.size == reader.size:
                return self._shape.fixed(writer.size)
            case Enum(), Enum() if _is_same_name(writer, reader):
                return _enum(writer, reader)
            case Record(), Record():
                return self._record(writer, reader)
        return Refusal(f"the writer has {_shown(writer)}, the reader {_shown(reader)}")

    def _primitive(self, writer: str, reader: str) -> Read:
        match writer, reader:
            case "int" | "long", "float" | "double":
                return _read_float_of_long
            case "string" | "bytes", _:
                return self._shape.primitives[reader]
        return self._shape.primitives[writer]

    def _union(self, writer: Union, reader: Node) -> Read:
        if writer is reader:
            return _union(
                [
                    self._shape.branch(self.compile(part, part), writer, part)
                    for part in writer.branches
                ]
            )
        return _union([self.compile(branch, reader) for branch in writer.branches])

    def _record(self, writer: Record, reader: Record) -> Read:
        """Compile a record; its function is registered before its fields, which may be
        recursive."""
        pair = (id(writer), id(reader))
        if pair in self._records:
            return self._records[pair]
        taken = _fields_by_written_name(writer, reader)
        given = {field.name for field in taken.values()}
        for field in reader.fields:
            if field.name not in given and not field.has_default:
                reason = f"{field.name}: the field is missing and has no default"
                self._records[pair] = Refusal(f"{reason} in {reader.name.full}")
                return self._records[pair]
        steps: list[tuple[str | None, Read]] = []
        defaults: list[tuple[str, Default]] = []
        template = dict.fromkeys(field.name for field in reader.fields)
        self._records[pair] = _record(template, steps, defaults)
        for field in writer.fields:
            target = taken.get(field.name)
            node = field.type if target is None else target.type
            steps.append((None if target is None else target.name, self.compile(field.type, node)))
        written = {name for name, _ in steps}
        defaults += [
            (field.name, Default(field, self.compile(field.type, field.type)))
            for field in reader.fields
            if field.name not in written
        ]
        return self._records[pair]

    def _matching_branch(self, writer: Node, reader: Union) -> Node | None:
        """Find the equal type, or a record of the same shape, or a type that the writer's widens
        to."""
        alike: Node | None = None
        for branch in reader.branches:
            if branch.kind != writer.kind:
                continue
            if not isinstance(writer, Named) or not isinstance(branch, Named):
                return branch
            if writer.name == branch.name or writer.name in branch.aliases:
                return branch
            is_alike = isinstance(writer, Record) and self._has_shape(writer, branch)
            if is_alike and (alike is None or writer.name.simple == branch.name.simple):
                alike = branch
        if alike is not None:
            return alike
        wider = PROMOTIONS.get(writer.kind, ())
        return next((branch for branch in reader.branches if branch.kind in wider), None)

    def _has_shape(self, writer: Record, branch: Named) -> bool:
        assert isinstance(branch, Record)
        if isinstance(self._record(writer, branch), Refusal):
            return False
        taken = _fields_by_written_name(writer, branch)
        return not any(
            isinstance(self.compile(field.type, taken[field.name].type), Refusal)
            for field in writer.fields
            if field.name in taken
        )


def _fields_by_written_name(writer: Record, reader: Record) -> dict[str, Field]:
    """Map the writer's field names to the reader's fields; aliases apply to the same type only."""
    has_aliases = writer.name == reader.name or writer.name in reader.aliases
    written = {field.name for field in writer.fields}
    found: dict[str, Field] = {}
    for field in reader.fields:
        names = (field.name, *field.aliases) if has_aliases else (field.name,)
        source = next((name for name in names if name in written), None)
        if source is not None:
            found.setdefault(source, field)
    return found


def _is_same_name(writer: Named, reader: Named) -> bool:
    return writer.name.simple == reader.name.simple or writer.name in reader.aliases


def _record(
    template: dict[str, Any],
    steps: list[tuple[str | None, Read]],
    defaults: list[tuple[str, Default]],
) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        value = template.copy()
        for name, read_field in steps:
            part, position = read_field(data, position)
            if name is not None:
                value[name] = part
        for default_name, default in defaults:
            value[default_name] = default()
        return value, position

    return read


def _union(branches: list[Read]) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        index, position = read_long(data, position)
        if not 0 <= index < len(branches):
            raise CorruptPayload(f"a union of {len(branches)} has no branch {index}")
        return branches[index](data, position)

    return read


def _array(read_item: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        items: list[Any] = []
        count, position = _block(data, position)
        while count:
            for _ in range(count):
                item, position = read_item(data, position)
                items.append(item)
            count, position = _block(data, position)
        return items, position

    return read


def _map(read_part: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        members: dict[str, Any] = {}
        count, position = _block(data, position)
        while count:
            for _ in range(count):
                name, position = read_string(data, position)
                members[name], position = read_part(data, position)
            count, position = _block(data, position)
        return members, position

    return read


def _block(data: bytes, position: int) -> tuple[int, int]:
    """Return the number of items of a block. A negative count is followed by the size in bytes."""
    count, position = read_long(data, position)
    if count < 0:
        _, position = read_long(data, position)
        return -count, position
    return count, position


def _enum(writer: Enum, reader: Enum) -> Read:
    symbols = [symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols]

    def read(data: bytes, position: int) -> tuple[Any, int]:
        index, position = read_long(data, position)
        if not 0 <= index < len(symbols):
            raise CorruptPayload(f"the enum {writer.name.full} has no symbol {index}")
        symbol = symbols[index]
        if symbol is None:
            missing = writer.symbols[index]
            raise CorruptPayload(f"the reader's enum {reader.name.full} has no symbol {missing}")
        return symbol, position

    return read


def read_fixed(size: int) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        return _slice(data, position, size)

    return read


def read_long(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:  # Most numbers are lengths, counts and branches.
        return (byte >> 1) ^ -(byte & 1), position + 1
    return varint_at(data, position)


def read_string(data: bytes, position: int) -> tuple[str, int]:
    size = data[position]
    if size < 0x80:  # Inlines read_long and _slice, since calls dominate the cost.
        size = (size >> 1) ^ -(size & 1)
        position += 1
    else:
        size, position = varint_at(data, position)
    end = position + size
    if not position <= end <= len(data):
        raise CorruptPayload(f"a text of {size} bytes does not fit the payload")
    return data[position:end].decode(), end


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_long(data, position)
    return _slice(data, position, size)


def _slice(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if not position <= end <= len(data):
        raise CorruptPayload(f"a value of {size} bytes does not fit the payload")
    return data[position:end], end


def _read_null(data: bytes, position: int) -> tuple[None, int]:
    return None, position


def _read_boolean(data: bytes, position: int) -> tuple[bool, int]:
    return data[position] != 0, position + 1


def _read_float(data: bytes, position: int) -> tuple[float, int]:
    number: float = FLOAT.unpack_from(data, position)[0]
    return number, position + 4


def _read_double(data: bytes, position: int) -> tuple[float, int]:
    number: float = DOUBLE.unpack_from(data, position)[0]
    return number, position + 8


def _read_float_of_long(data: bytes, position: int) -> tuple[float, int]:
    number, position = read_long(data, position)
    return float(number), position


PLAIN: Final[dict[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": read_long,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": read_string,
}


def as_written(read: Read, writer: Node, reader: Node) -> Read:
    """Leave values of logical types in their encoded form."""
    return read


def _converted(read_plain: Read, writer: Node, reader: Node) -> Read:
    """Convert values of a logical type with fastavro, by the reader's type."""
    logical = reader.logical
    if logical is None or not converts(reader):
        return read_plain
    convert = LOGICAL_READERS[f"{reader.kind}-{logical.name}"]
    form = {"precision": logical.precision, "scale": logical.scale}

    def read(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read_plain(data, position)
        return convert(value, form, None), position

    return read


VALUES: Final = Shape(PLAIN, read_fixed, lambda read, union, branch: read, _converted)
RAW_VALUES: Final = replace(VALUES, convert=as_written)


def _shown(node: Node) -> str:
    return f"the {node.kind} {node.name.full}" if isinstance(node, Named) else node.kind
