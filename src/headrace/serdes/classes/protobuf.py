"""The model as a Protobuf file (proto3), and a file's descriptor as the model.

Fields are numbered by their order, or as `Wire(number=...)` says: a field that is added at the end
leaves all numbers as they are. Protobuf has no decimals, dates, times of day and UUIDs; they are
strings. It has no defaults either: those of a class stay in the class.
"""

import re
from collections.abc import Sequence
from typing import Any

from headrace.serdes.classes.model import (
    INTEGERS,
    MISSING,
    PYTHON_TYPES,
    Choice,
    DecimalOf,
    Enumeration,
    Field,
    Inexpressible,
    ListOf,
    MapOf,
    Named,
    Record,
    Scalar,
    Shape,
    Type,
    UnionOf,
    camel,
    union,
    without_null,
)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER_MAX = (1 << 29) - 1
_RESERVED = range(19_000, 20_000)

_WRITTEN: dict[Scalar, str] = {
    Scalar.ANY: "google.protobuf.Value",
    Scalar.BOOLEAN: "bool",
    Scalar.STRING: "string",
    Scalar.BYTES: "bytes",
    Scalar.DOUBLE: "double",
    Scalar.FLOAT: "float",
    Scalar.DATE: "string",
    Scalar.TIME: "string",
    Scalar.TIME_MILLIS: "string",
    Scalar.TIMESTAMP: "google.protobuf.Timestamp",
    Scalar.TIMESTAMP_MILLIS: "google.protobuf.Timestamp",
    Scalar.LOCAL_TIMESTAMP: "google.protobuf.Timestamp",
    Scalar.DURATION: "google.protobuf.Duration",
    Scalar.UUID: "string",
} | {scalar: scalar.value for scalar in INTEGERS}

_FILES = {
    "google.protobuf.Value": "google/protobuf/struct.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Duration": "google/protobuf/duration.proto",
}

# By the numbers of google.protobuf.FieldDescriptorProto.Type.
_SCALARS = {
    1: Scalar.DOUBLE,
    2: Scalar.FLOAT,
    3: Scalar.LONG,
    4: Scalar.UINT64,
    5: Scalar.INT,
    6: Scalar.FIXED64,
    7: Scalar.FIXED32,
    8: Scalar.BOOLEAN,
    9: Scalar.STRING,
    12: Scalar.BYTES,
    13: Scalar.UINT32,
    15: Scalar.SFIXED32,
    16: Scalar.SFIXED64,
    17: Scalar.SINT32,
    18: Scalar.SINT64,
}
_ENUM, _REPEATED, _REQUIRED = 14, 3, 2
_UNSPECIFIED = "UNSPECIFIED"

_WELL_KNOWN: dict[str, Type] = {
    ".google.protobuf.Timestamp": Scalar.TIMESTAMP,
    ".google.protobuf.Duration": Scalar.DURATION,
    ".google.protobuf.Value": Scalar.ANY,
    ".google.protobuf.Struct": MapOf(Scalar.ANY),
    ".google.protobuf.ListValue": ListOf(Scalar.ANY),
}
_ZEROS = {"bool": False, "str": "", "bytes": b"", "int": 0, "float": 0.0}


def write(shape: Shape) -> str:
    """The text of a file with all messages and enums of a shape."""
    return _Writer(shape).file()


def read(file: Any, message: str | None = None, dependencies: Sequence[Any] = ()) -> Shape:
    """The model of a message, by default the first one, from a `FileDescriptorProto`.

    `dependencies` are descriptors of the files that it imports. Comments become docstrings if the
    descriptor was compiled with its source info.
    """
    reader = _Reader()
    for each in (*dependencies, file):
        reader.take_in(each)
    prefix = f".{file.package}." if file.package else "."
    if message is None:
        if not file.message_type:
            raise Inexpressible(f"{file.name} has no message")
        message = file.message_type[0].name
    return Shape(reader.named(prefix + message.removeprefix(prefix[1:])), reader.definitions)


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._package = shape.root.name.rpartition(".")[0]
        self._imports: set[str] = set()
        self._enums: dict[str, str] = {}

    def file(self) -> str:
        for name, each in self._shape.definitions.items():
            if isinstance(each, Enumeration):
                local = self._local(name)
                self._enums[local] = _enumeration(local, each.members, each.doc)
        messages = [
            self._message(each)
            for each in self._shape.definitions.values()
            if isinstance(each, Record)
        ]
        head = ['syntax = "proto3";']
        if self._package:
            head.append(f"package {self._package};")
        if self._imports:
            head.append("\n".join(f'import "{name}";' for name in sorted(self._imports)))
        enums = [text for _, text in sorted(self._enums.items())]
        return "\n\n".join([*head, *messages, *enums]) + "\n"

    def _message(self, record: Record) -> str:
        lines = [*_comment(record.doc, ""), f"message {self._local(record.name)} {{"]
        oneof: str | None = None
        for field, number in _numbered(record):
            if field.oneof != oneof:
                lines += ["  }"] if oneof else []
                lines += [f"  oneof {field.oneof} {{"] if field.oneof else []
                oneof = field.oneof
            lines += self._field(record, field, number)
        lines += ["  }"] if oneof else []
        return "\n".join([*lines, "}"])

    def _local(self, name: str) -> str:
        package, _, local = name.rpartition(".")
        if package not in ("", self._package):
            raise Inexpressible(
                f"{name} is not in the package {self._package or '(none)'} of the schema, and a "
                "Protobuf file has one"
            )
        if not _NAME.fullmatch(local):
            raise Inexpressible(f"'{local}' is no name in Protobuf; give it one with @named")
        return local

    def _field(self, record: Record, field: Field, number: int) -> list[str]:
        where = f"{self._local(record.name)}.{field.name}"
        if not _NAME.fullmatch(field.name):
            raise Inexpressible(
                f"{where}: '{field.name}' is no name in Protobuf; give it one with Wire(name=...)"
            )
        indent = "    " if field.oneof else "  "
        text = f"{indent}{self._labelled(field, where)} {field.name} = {number};"
        return [*_comment(field.doc, indent), text]

    def _labelled(self, field: Field, where: str) -> str:
        match field.type:
            case ListOf(item):
                return f"repeated {self._single(item, where)}"
            case MapOf(value, key):
                return f"map<{_WRITTEN[key]}, {self._single(value, where)}>"
            case UnionOf():
                inner = without_null(field.type)
                if inner is None or isinstance(inner, UnionOf):
                    raise Inexpressible(
                        f"{where}: Protobuf has no unions of types; make a field for each of them, "
                        'with Wire(oneof="...")'
                    )
                if isinstance(inner, ListOf | MapOf):
                    raise Inexpressible(
                        f"{where}: a list or dict cannot be missing in Protobuf; let it be empty"
                    )
                single = self._single(inner, where)
                return single if field.oneof or self._is_message(inner) else f"optional {single}"
            case _:
                return self._single(field.type, where)

    def _is_message(self, type_: Type) -> bool:
        """A message may be missing whether it is called optional or not."""
        if isinstance(type_, Named):
            return isinstance(self._shape.definitions[type_.name], Record)
        return isinstance(type_, Scalar) and _WRITTEN.get(type_) in _FILES

    def _single(self, type_: Type, where: str) -> str:
        match type_:
            case Scalar() if type_ in _WRITTEN:
                name = _WRITTEN[type_]
                if name in _FILES:
                    self._imports.add(_FILES[name])
                return name
            case DecimalOf():
                return "string"
            case Named(name):
                return self._local(name)
            case Choice(values):
                return self._choice(values, where)
            case _:
                inner = (
                    PYTHON_TYPES[type_] if isinstance(type_, Scalar) else "a list, dict or union"
                )
                raise Inexpressible(f"{where}: {inner} cannot stand here in Protobuf; use a record")

    def _choice(self, values: tuple[str | int | bool, ...], where: str) -> str:
        name = camel(*where.split("."))
        members = tuple((str(value), str(value)) for value in values)
        self._enums[name] = _enumeration(name, members, None)
        return name


class _Reader:
    def __init__(self) -> None:
        self.definitions: dict[str, Record | Enumeration] = {}
        self._messages: dict[str, Any] = {}
        self._enums: dict[str, Any] = {}
        self._docs: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._proto2: set[str] = set()

    def take_in(self, file: Any) -> None:
        """Remember what a file defines, by full name."""
        comments = {
            tuple(each.path): each.leading_comments for each in file.source_code_info.location
        }
        prefix = f".{file.package}" if file.package else ""
        if file.syntax in ("", "proto2"):
            self._proto2.add(prefix)
        for index, each in enumerate(file.enum_type):
            self._enum(each, f"{prefix}.{each.name}", prefix, comments, (5, index))
        for index, each in enumerate(file.message_type):
            self._message(each, f"{prefix}.{each.name}", prefix, comments, (4, index))

    def _message(
        self, message: Any, name: str, package: str, comments: dict[Any, str], path: tuple[int, ...]
    ) -> None:
        self._messages[name] = (message, package)
        self._names[name] = _flattened(name, package)
        self._docs[name] = comments.get(path, "")
        for index, field in enumerate(message.field):
            self._docs[f"{name}.{field.name}"] = comments.get((*path, 2, index), "")
        for index, inner in enumerate(message.nested_type):
            self._message(inner, f"{name}.{inner.name}", package, comments, (*path, 3, index))
        for index, each in enumerate(message.enum_type):
            self._enum(each, f"{name}.{each.name}", package, comments, (*path, 4, index))

    def _enum(
        self, enum: Any, name: str, package: str, comments: dict[Any, str], path: tuple[int, ...]
    ) -> None:
        self._enums[name] = enum
        self._names[name] = _flattened(name, package)
        self._docs[name] = comments.get(path, "")

    def named(self, full: str) -> Named:
        """The definition of a full name, read when it is met for the first time."""
        if full not in self._names:
            raise Inexpressible(f"{full.removeprefix('.')} is not defined in the files given")
        name = self._names[full]
        if name not in self.definitions:
            self.definitions[name] = Record(name=name, fields=())
            self.definitions[name] = self._definition(full, name)
        return Named(name)

    def _definition(self, full: str, name: str) -> Record | Enumeration:
        doc = _text(self._docs[full])
        if full in self._enums:
            members = tuple((value.name, value.number) for value in self._enums[full].value)
            return Enumeration(name=name, members=members, doc=doc)
        message, package = self._messages[full]
        fields: list[Field] = []
        last = 0
        for field in message.field:
            fields.append(self._field(message, field, full, package, last))
            last = field.number
        return Record(name=name, fields=tuple(fields), doc=doc)

    def _field(self, message: Any, field: Any, full: str, package: str, last: int) -> Field:
        type_, default = self._labelled(field, package)
        is_oneof = field.HasField("oneof_index") and not field.proto3_optional
        return Field(
            name=field.name,
            type=type_,
            default=default,
            doc=_text(self._docs.get(f"{full}.{field.name}", "")),
            number=None if field.number == _next(last) else field.number,
            oneof=message.oneof_decl[field.oneof_index].name if is_oneof else None,
        )

    def _labelled(self, field: Any, package: str) -> tuple[Type, Any]:
        """The type and what a message without the field has for it."""
        if field.label == _REPEATED:
            entry = self._messages.get(field.type_name)
            if entry is not None and entry[0].options.map_entry:
                key, value = entry[0].field
                return MapOf(self._single(value), _SCALARS[key.type]), {}
            return ListOf(self._single(field)), []
        single = self._single(field)
        if field.label == _REQUIRED:
            return single, MISSING
        may_be_missing = field.proto3_optional or field.HasField("oneof_index")
        if single is Scalar.ANY:
            return single, None
        if may_be_missing or package in self._proto2 or self._has_no_zero(field):
            return union([single, Scalar.NULL]), None
        if field.type == _ENUM:
            return single, self._enums[field.type_name].value[0].number
        assert isinstance(single, Scalar)
        return single, _ZEROS[PYTHON_TYPES[single]]

    def _has_no_zero(self, field: Any) -> bool:
        return field.type != _ENUM and field.type not in _SCALARS

    def _single(self, field: Any) -> Type:
        if field.type in _SCALARS:
            return _SCALARS[field.type]
        return _WELL_KNOWN.get(field.type_name) or self.named(field.type_name)


def _numbered(record: Record) -> list[tuple[Field, int]]:
    """Fields with their numbers: the given ones, else the one after that of the field before."""
    given = {field.number for field in record.fields if field.number is not None}
    numbered: list[tuple[Field, int]] = []
    last = 0
    for field in record.fields:
        number = field.number
        if number is None:
            number = _next(last)
            while number in given:
                number = _next(number)
        if not 1 <= number <= _NUMBER_MAX or number in _RESERVED:
            raise Inexpressible(f"{record.name}.{field.name}: {number} is no number of a field")
        if number in [taken for _, taken in numbered]:
            raise Inexpressible(f"{record.name}.{field.name}: the number {number} is taken twice")
        numbered.append((field, number))
        last = number
    return numbered


def _next(number: int) -> int:
    return _RESERVED.stop if number + 1 in _RESERVED else number + 1


def _enumeration(name: str, members: tuple[tuple[str, str | int], ...], doc: str | None) -> str:
    """Values stand in the scope of the file, so each begins with the name of its enum."""
    prefix = _prefix(name)
    numbers = {each: value for each, value in members if isinstance(value, int)}
    if len(numbers) < len(members) or 0 not in numbers.values():
        names = [_UNSPECIFIED, *(each for each, _ in members)]
        numbers = {each: number for number, each in enumerate(names)}
    ordered = sorted(numbers.items(), key=lambda item: item[1] != 0)
    lines = [f"  {_value(prefix, each)} = {number};" for each, number in ordered]
    return "\n".join([*_comment(doc, ""), f"enum {name} {{", *lines, "}"])


def constants(name: str, members: tuple[tuple[str, str | int], ...]) -> dict[str | int, str]:
    """What the values of an enumeration are called in the schema, by the local name of its type."""
    prefix = _prefix(name.rpartition(".")[2])
    return {value: _value(prefix, each) for each, value in members}


def unspecified(name: str) -> str:
    """The constant of an enumeration that stands for none of its values."""
    return _value(_prefix(name.rpartition(".")[2]), _UNSPECIFIED)


def _prefix(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper() + "_"


def _value(prefix: str, name: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9]+", "_", name).upper().strip("_") or "EMPTY"
    return name if name.startswith(prefix) else prefix + kept


def _flattened(full: str, package: str) -> str:
    """A message inside of another becomes a class beside it."""
    local = "".join(
        part[0].upper() + part[1:] for part in full.removeprefix(f"{package}.").split(".")
    )
    return f"{package.removeprefix('.')}.{local}" if package else local


def _comment(doc: str | None, indent: str) -> list[str]:
    if not doc:
        return []
    return [f"{indent}// {line}".rstrip() for line in doc.splitlines()]


def _text(comment: str) -> str | None:
    lines = [line.removeprefix(" ").rstrip() for line in comment.splitlines()]
    return "\n".join(lines).strip() or None
