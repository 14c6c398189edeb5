"""Compile the reader of a message: bytes in, message out, in straight-line Python.

The reader is `read(data, position) -> (message, position)` over a memoryview. Neighbouring
fields of fixed width are taken by one `struct` call, together with the length byte of what
follows them. Three rules keep hostile bytes harmless:

- a position that runs off the end is noticed by `struct` or by indexing, which raise;
- a length is compared with the bytes left before anything is sliced or made;
- a count is compared with the bytes left divided by the least that an element takes.

Record sets are slices of the input, which are neither copied nor read.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, TypeAlias, TypeVar

import msgspec

from headrace.protocol import primitives
from headrace.protocol.fields import (
    FIXED_CODES,
    FIXED_SIZES,
    NO_VERSIONS,
    AnyStructure,
    Field,
    fields_of,
    size_min,
)
from headrace.protocol.message import Message
from headrace.protocol.source import Source, struct_for

_NAMES = {
    "long_length": primitives.long_length,
    "read_tag": primitives.read_tag,
    "read_tag_count": primitives.read_tag_count,
    "skip_tags": primitives.skip_tags,
    "refuse_count": primitives.refuse_count,
    "refuse_length": primitives.refuse_length,
    "refuse_tag": primitives.refuse_tag,
}

_COUNTS_REMEMBERED = 64

M = TypeVar("M", bound=Message)
Reader: TypeAlias = Callable[[memoryview, int], tuple[M, int]]
BoundedReader: TypeAlias = Callable[[memoryview, int, int], tuple[M, int]]
"""Takes the number of elements that all arrays together may have."""


def compile_reader(message: type[M], version: int) -> Reader[M]:
    """The reader of one message in one version."""
    compiler = _Compiler(version, flexible=version >= message.FLEXIBLE_FROM)
    return compiler.compile(message)


def compile_bounded_reader(message: type[M], version: int) -> BoundedReader[M]:
    """The same reader for untrusted bytes: it counts elements and stops at the limit.

    A compiled twin, because counting would slow down every small request.
    """
    compiler = _Compiler(version, flexible=version >= message.FLEXIBLE_FROM, bounded=True)
    return compiler.compile(message)


class _Unpackers(dict[int, Callable[[memoryview, int], tuple[Any, ...]]]):
    """Unpackers for counts of numbers of one width; the usual counts are cached."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code

    def __missing__(self, count: int) -> Callable[[memoryview, int], tuple[Any, ...]]:
        unpacker = Struct(f">{count}{self.code}").unpack_from
        if count < _COUNTS_REMEMBERED:
            self[count] = unpacker
        return unpacker


@cache
def _unpackers(code: str) -> _Unpackers:
    return _Unpackers(code)


class _Compiler:
    def __init__(self, version: int, *, flexible: bool, bounded: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.bounded = bounded
        self.source = Source(f"read(data, position{', elements_left' * bounded})", _NAMES)
        self.run: list[tuple[str, str]] = []
        """Codes and variables of the fixed-width values that wait for their `struct` call."""

    def compile(self, message: type[Message]) -> Callable[..., Any]:
        self.source.add("size = len(data)")
        result = self.structure(message)
        self.source.add(f"return {result}, position")
        return self.source.function(f"reader of {message.__name__} v{self.version}")

    def structure(self, structure: AnyStructure) -> str:
        """Read the fields of a structure; the expression that makes it of them."""
        values: dict[
            str, str | None
        ] = {}  # None: the version lacks the field, so the default is used.
        tagged = []
        fields = fields_of(structure)
        for field in fields:
            values[field.name] = None
            if self.version not in field.versions:
                continue
            if field.tag is None:
                values[field.name] = self.field(field)
            else:
                values[field.name] = self.source.fresh(field.name)
                tagged.append(field)
        if self.flexible:
            self.tags([(field, values[field.name] or "") for field in tagged])
        self.flush()
        present = [position for position, field in enumerate(fields) if values[field.name]]
        arguments = (
            values[field.name] or self.source.literal(field.default)
            for field in fields[: present[-1] + 1 if present else 0]
        )
        return f"{self.source.constant(structure.__name__, structure)}({', '.join(arguments)})"

    def field(self, field: Field) -> str:
        """Read one field; the variable that will hold it after the next `flush`."""
        variable = self.source.fresh(field.name)
        if field.is_array:
            self.array(field, variable)
        elif field.structure is not None:
            self.nested(field, field.structure, variable)
        elif field.kind in FIXED_CODES:
            self.run.append((FIXED_CODES[field.kind], variable))
        else:
            self.sized(field, variable)
        return variable

    def flush(self) -> None:
        """Take the waiting fixed-width values, with one call."""
        if not self.run:
            return
        codes = [code for code, _ in self.run]
        variables = ", ".join(variable for _, variable in self.run)
        self.run = []
        if codes == ["B"]:
            self.source.add(f"{variables} = data[position]")
        else:
            unpack = self.source.constant("unpack", struct_for("".join(codes)).unpack_from)
            comma = "," if len(codes) == 1 else ""
            self.source.add(f"{variables}{comma} = {unpack}(data, position)")
        width = sum(FIXED_SIZES.get(code, 1) for code in codes)
        self.source.add(f"position += {width}")

    def nested(self, field: Field, structure: AnyStructure, variable: str) -> None:
        """A structure in place; a marker for null precedes a nullable structure.

        Kafka writes the marker as a signed byte, negative for null, but within a tagged field as
        an unsigned byte, zero for null.
        """
        if self.version not in field.nullable:
            self.source.add(f"{variable} = {self.structure(structure)}")
            return
        marker = self.source.fresh("marker")
        self.run.append(("b", marker))
        self.flush()
        with self.source.block(f"if {marker} {'< 0' if field.tag is None else '== 0'}:"):
            self.source.add(f"{variable} = None")
        with self.source.block("else:"):
            result = self.structure(structure)
            self.source.add(f"{variable} = {result}")

    def length(self, field: Field) -> tuple[str, str]:
        """Read a length: the expressions for it and for "it is null".

        The flexible encoding counts from one, and zero is null; the other counts from zero,
        and anything below is null.
        """
        variable = self.source.fresh("length")
        if not self.flexible:
            is_short = field.kind == "string" and not field.is_array
            self.run.append(("h" if is_short else "i", variable))
            self.flush()
            return variable, f"{variable} < 0"
        self.run.append(("B", variable))
        self.flush()
        with self.source.block(f"if {variable} > 127:"):
            self.source.add(f"{variable}, position = long_length(data, position, {variable})")
        return f"{variable} - 1", f"not {variable}"

    def sized(self, field: Field, variable: str) -> None:
        """A string, bytes or a record set: its length, then itself."""
        length, is_null = self.length(field)
        if self.version in field.nullable:
            with self.source.block(f"if {is_null}:"):
                self.source.add(f"{variable} = None")
            with self.source.block("else:"):
                self.take(field, variable, length, 1)
        else:
            self.take(field, variable, length, 1)

    def take(self, field: Field, variable: str, length: str, width: int) -> None:
        """Slice or unpack `length` things of `width` bytes, when they are all there."""
        if width > 1:
            length = f"({length})"
            self.source.add(f"end = position + {length} * {width}")
        else:
            self.source.add(f"end = position + {length}")
        with self.source.block("if not position <= end <= size:"):
            self.source.add(f"refuse_length({field.name!r}, {length})")
        self.source.add(f"{variable} = {self.taken(field, length)}")
        self.source.add("position = end")

    def taken(self, field: Field, length: str) -> str:
        """The expression for the bytes between `position` and `end`."""
        match field.kind:
            case "string":
                return "data[position:end].tobytes().decode()"
            case "bytes":
                return "data[position:end].tobytes()"
            case "records":
                return "data[position:end]"
            case "uuid":
                return "[data[i : i + 16].tobytes() for i in range(position, end, 16)]"
            case fixed:
                unpackers = self.source.constant("unpackers", _unpackers(FIXED_CODES[fixed]))
                return f"[*{unpackers}[{length}](data, position)]"

    def array(self, field: Field, variable: str) -> None:
        length, is_null = self.length(field)
        if self.version in field.nullable:
            with self.source.block(f"if {is_null}:"):
                self.source.add(f"{variable} = None")
            with self.source.block("else:"):
                self.elements(field, variable, length)
        else:
            self.elements(field, variable, length)

    def elements(self, field: Field, variable: str, length: str) -> None:
        width = size_min(field, self.version, flexible=self.flexible)
        if self.bounded:
            self.source.add(f"elements_left -= {length}")
            with self.source.block("if elements_left < 0:"):
                self.source.add(f"refuse_count({field.name!r})")
        if field.kind in FIXED_CODES:
            self.take(field, variable, length, width)
            return
        self.source.add(f"count = {length}")
        with self.source.block(f"if count < 0 or count * {max(width, 1)} > size - position:"):
            self.source.add(f"refuse_length({field.name!r}, count)")
        self.source.add(f"{variable} = []")
        with self.source.block("for _ in range(count):"):
            if field.structure is not None:
                element = self.structure(field.structure)
            else:
                element = self.source.fresh(field.name)
                self.sized(
                    msgspec.structs.replace(field, is_array=False, nullable=NO_VERSIONS), element
                )
            self.source.add(f"{variable}.append({element})")

    def tags(self, tagged: list[tuple[Field, str]]) -> None:
        """Read the tagged fields at the end of a structure; skip unknown fields."""
        count = self.source.fresh("tags")
        self.run.append(("B", count))
        self.flush()
        if not tagged:
            with self.source.block(f"if {count}:"):
                self.source.add(f"position = skip_tags(data, position, {count})")
            return
        for field, variable in tagged:
            self.source.add(f"{variable} = {self.source.literal(field.default)}")
        with self.source.block(f"if {count}:"):
            self.source.add(f"{count}, position = read_tag_count(data, position, {count})")
            with self.source.block(f"for _ in range({count}):"):
                self.tag(tagged)

    def tag(self, tagged: list[tuple[Field, str]]) -> None:
        tag, end = self.source.fresh("tag"), self.source.fresh("end")
        self.source.add(f"{tag}, position, {end} = read_tag(data, position)")
        for field, variable in tagged:
            with self.source.block(f"if {tag} == {field.tag}:"):
                value = self.field(field)
                self.flush()
                self.source.add(f"{variable} = {value}")
                with self.source.block(f"if position != {end}:"):
                    self.source.add(f"refuse_tag({tag})")
        self.source.add(f"position = {end}")
