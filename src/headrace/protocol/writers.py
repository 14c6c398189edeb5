"""Compile the writer of a message: appends its bytes to a bytearray, in straight-line Python.

The writer is `write(message, out)`. Neighbouring fields of fixed width, arrays of numbers among
them, are packed by one `struct` call together with the length byte of what follows: most of
the cost of a large answer is the number of calls.
"""

from collections.abc import Callable
from itertools import chain, islice
from struct import Struct, pack
from typing import NoReturn

import msgspec

from headrace.errors import UnsupportedVersion
from headrace.protocol.fields import FIXED_CODES, NO_VERSIONS, AnyStructure, Field, fields_of
from headrace.protocol.message import Message
from headrace.protocol.primitives import STRING_SIZE_MAX, uvarint
from headrace.protocol.source import Source, struct_for

Writer = Callable[[Message, bytearray], None]

_RUNS_MAX = 64


def compile_writer(message: type[Message], version: int) -> Writer:
    """The writer of one message in one version."""
    compiler = _Compiler(version, flexible=version >= message.FLEXIBLE_FROM)
    return compiler.compile(message)


class _Value(msgspec.Struct, frozen=True):
    """A fixed-width value that waits for its `struct` call."""

    code: str
    expression: str


class _Numbers(msgspec.Struct, frozen=True):
    """An array of fixed-width values that waits for it, with the variable of its length."""

    code: str
    expression: str
    length: str


class _Compiler:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        names = {"uvarint": uvarint, "long_string": _long_string, "refuse_fields": _refuse_fields}
        self.source = Source("write(message, out)", names)
        self.out = "out"
        self.run: list[_Value | _Numbers] = []

    def compile(self, message: type[Message]) -> Writer:
        self.structure(message, "message")
        self.flush()
        self.source.add("return")
        return self.source.function(f"writer of {message.__name__} v{self.version}")

    def structure(self, structure: AnyStructure, variable: str) -> None:
        fields = fields_of(structure)
        self.check_absent(fields, variable)
        for field in fields:
            if self.version in field.versions and field.tag is None:
                self.field(field, f"{variable}.{field.name}")
        if self.flexible:
            self.tags([field for field in fields if is_tagged(field, self.version)], variable)

    def check_absent(self, fields: tuple[Field, ...], variable: str) -> None:
        """Reject a value that the version has no field for, unless it may be ignored."""
        absent = [
            field
            for field in fields
            if self.version not in field.versions and not field.is_ignorable
        ]
        if absent:
            with self.source.block(f"if {self.any_set(absent, variable)}:"):
                expected = {field.name: field.default for field in absent}
                constant = self.source.constant("expected", expected)
                self.source.add(f"refuse_fields({variable}, {self.version}, {constant})")

    def any_set(self, fields: list[Field], variable: str) -> str:
        return " or ".join(self.is_set(field, f"{variable}.{field.name}") for field in fields)

    def is_set(self, field: Field, expression: str) -> str:
        """The condition that a field has another value than its default."""
        if field.default is None:
            return f"{expression} is not None"
        if field.is_array and field.nullable == NO_VERSIONS:
            return expression
        default = self.source.literal(field.default)
        if field.structure is not None:
            return f"{expression} is not {default} and {expression} != {default}"
        return f"{expression} != {default}"

    def field(self, field: Field, expression: str) -> None:
        if field.is_array:
            self.array(field, expression)
        elif field.structure is not None:
            self.nested(field, field.structure, expression)
        elif field.kind in FIXED_CODES:
            self.run.append(_Value(FIXED_CODES[field.kind], expression))
        else:
            self.sized(field, expression)

    def nested(self, field: Field, structure: AnyStructure, expression: str) -> None:
        """A structure in place; `readers.py` describes the marker of a nullable structure."""
        variable = self.source.fresh(field.name)
        self.source.add(f"{variable} = {expression}")
        if self.version not in field.nullable:
            self.structure(structure, variable)
            return
        self.flush()
        with self.source.block(f"if {variable} is None:"):
            self.source.add(f"{self.out}.append({255 if field.tag is None else 0})")
        with self.source.block("else:"):
            self.source.add(f"{self.out}.append(1)")
            self.structure(structure, variable)
            self.flush()

    def sized(self, field: Field, expression: str) -> None:
        """A string, bytes or a record set: its length, then itself."""
        value = self.source.fresh(field.name)
        encoded = f"{value}.encode()" if field.kind == "string" else value
        length = self.measure(field, expression, value, encoded, 'b""')
        self.flush_with_length(field, length)
        self.source.add(f"{self.out} += {value}")

    def measure(self, field: Field, expression: str, value: str, encoded: str, nothing: str) -> str:
        """Bind `value` to the encoded bytes, `nothing` for null; return the variable of the length.

        The length is as on the wire: in the flexible encoding one more than the size.
        """
        length = self.source.fresh("length")
        more = " + 1" if self.flexible else ""
        self.source.add(f"{value} = {expression}")
        if self.version in field.nullable:
            with self.source.block(f"if {value} is None:"):
                self.source.add(f"{value} = {nothing}")
                self.source.add(f"{length} = {0 if self.flexible else -1}")
            with self.source.block("else:"):
                self.bind(value, encoded)
                self.source.add(f"{length} = len({value}){more}")
        else:
            self.bind(value, encoded)
            self.source.add(f"{length} = len({value}){more}")
        return length

    def bind(self, variable: str, expression: str) -> None:
        if variable != expression:
            self.source.add(f"{variable} = {expression}")

    def array(self, field: Field, expression: str) -> None:
        value = self.source.fresh(field.name)
        length = self.measure(field, expression, value, value, "()")
        if field.kind in FIXED_CODES:
            self.run.append(_Numbers(FIXED_CODES[field.kind], value, length))
            return
        self.flush_with_length(field, length)
        element = self.source.fresh("each")
        with self.source.block(f"for {element} in {value}:"):
            if field.structure is not None:
                self.structure(field.structure, element)
            else:
                one = msgspec.structs.replace(field, is_array=False, nullable=NO_VERSIONS)
                self.sized(one, element)
            self.flush()

    def flush_with_length(self, field: Field, length: str) -> None:
        """Write what waits and a length after it, which is a single byte nearly always."""
        is_string = field.kind == "string" and not field.is_array
        if not self.flexible:
            self.run.append(_Value("h" if is_string else "i", length))
            self.flush()
            return
        waiting = list(self.run)
        with self.source.block(f"if {length} < 128:"):
            self.run.append(_Value("B", length))
            self.flush()
        with self.source.block("else:"):
            self.run = waiting
            self.flush()
            function = "long_string" if is_string else "uvarint"
            self.source.add(f"{self.out} += {function}({length})")

    def flush(self) -> None:
        """Write what waits, with one call."""
        run, self.run = self.run, []
        if not run:
            return
        if any(isinstance(one, _Numbers) for one in run):
            self.flush_numbers(run)
        elif [one.code for one in run] == ["B"]:
            self.source.add(f"{self.out}.append({run[0].expression})")
        else:
            codes = "".join(one.code for one in run)
            pack = self.source.constant("pack", struct_for(codes).pack)
            arguments = ", ".join(one.expression for one in run if one.expression)
            self.source.add(f"{self.out} += {pack}({arguments})")

    def flush_numbers(self, run: list[_Value | _Numbers]) -> None:
        arrays = [one for one in run if isinstance(one, _Numbers)]
        arguments = chain.from_iterable(
            (one.length, f"*{one.expression}") if isinstance(one, _Numbers) else (one.expression,)
            for one in run
            if one.expression
        )
        shape = [(one.code, isinstance(one, _Numbers)) for one in run]
        packers = self.source.constant("packers", _Packers(shape, flexible=self.flexible))
        lengths = ", ".join(one.length for one in arrays) + ("," if len(arrays) == 1 else "")
        self.source.add(f"{self.out} += {packers}[{lengths}]({', '.join(arguments)})")

    def tags(self, tagged: list[Field], variable: str) -> None:
        """Close a structure with those tagged fields that do not have their default."""
        if not tagged:
            self.run.append(_Value("x", ""))
            return
        waiting = list(self.run)
        with self.source.block(f"if {self.any_set(tagged, variable)}:"):
            self.flush()
            self.write_tags(tagged, variable)
        with self.source.block("else:"):
            self.run = [*waiting, _Value("x", "")]
            self.flush()

    def write_tags(self, tagged: list[Field], variable: str) -> None:
        out, count, section = self.out, self.source.fresh("count"), self.source.fresh("section")
        self.source.add(f"{count} = 0")
        self.source.add(f"{section} = bytearray()")
        for field in sorted(tagged, key=lambda one: one.tag or 0):
            expression = f"{variable}.{field.name}"
            with self.source.block(f"if {self.is_set(field, expression)}:"):
                self.out = self.source.fresh("content")
                self.source.add(f"{self.out} = bytearray()")
                self.field(field, expression)
                self.flush()
                self.source.add(f"{count} += 1")
                self.source.add(f"{section} += uvarint({field.tag}) + uvarint(len({self.out}))")
                self.source.add(f"{section} += {self.out}")
        self.out = out
        self.source.add(f"{out} += uvarint({count})")
        self.source.add(f"{out} += {section}")


def is_tagged(field: Field, version: int) -> bool:
    return version in field.versions and field.tag is not None


class _Packers(dict[tuple[int, ...], Callable[..., bytes]]):
    """The pack functions of a run with arrays in it, by the lengths of the arrays.

    Arrays of replicas have few lengths, so nearly every run finds its function made.
    """

    def __init__(self, shape: list[tuple[str, bool]], *, flexible: bool) -> None:
        super().__init__()
        self.shape = shape
        self.flexible = flexible

    def __missing__(self, lengths: tuple[int, ...]) -> Callable[..., bytes]:
        if len(self) >= _RUNS_MAX:
            self.clear()
        packer = self.piecewise if self.flexible and max(lengths) > 127 else self.whole(lengths)
        self[lengths] = packer
        return packer

    def whole(self, lengths: tuple[int, ...]) -> Callable[..., bytes]:
        """One `struct` call; a length is a byte, or four in the older encoding."""
        left = iter(lengths)
        codes = [
            self.length_code + code * self.count(next(left)) if is_array else code
            for code, is_array in self.shape
        ]
        return Struct(">" + "".join(codes)).pack

    def piecewise(self, *values: object) -> bytes:
        """Write arrays whose length takes more than one byte."""
        left = iter(values)
        out = bytearray()
        for code, is_array in self.shape:
            if is_array:
                length = next(left)
                assert isinstance(length, int)
                numbers = list(islice(left, self.count(length)))
                out += uvarint(length) + pack(">" + code * len(numbers), *numbers)
            else:
                out += pack(">" + code, *(() if code == "x" else (next(left),)))
        return bytes(out)

    @property
    def length_code(self) -> str:
        return "B" if self.flexible else "i"

    def count(self, length: int) -> int:
        """The number of elements for a length of the wire."""
        return max(length - 1 if self.flexible else length, 0)


def _long_string(length: int) -> bytes:
    if length - 1 > STRING_SIZE_MAX:
        raise ValueError(f"a string of {length - 1} bytes; Kafka takes {STRING_SIZE_MAX}")
    return uvarint(length)


def _refuse_fields(structure: object, version: int, expected: dict[str, object]) -> NoReturn:
    names = [name for name, default in expected.items() if getattr(structure, name) != default]
    raise UnsupportedVersion(
        f"{type(structure).__name__}: version {version} cannot carry {', '.join(names)}"
    )
