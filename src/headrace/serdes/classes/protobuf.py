"""Converts Protobuf files (proto3) and descriptors to and from the model.

Fields are numbered in order, or by `Wire(number=...)`: a field added at the end keeps all numbers.
Protobuf has no decimals, dates, times of day and UUIDs; they are strings. It has no defaults
either: they stay in the class.
"""

import re
from collections.abc import Sequence
from typing import Any

from headrace.serdes.classes import model

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER_MAX = (1 << 29) - 1
_RESERVED = range(19_000, 20_000)

_WRITTEN: dict[model.Scalar, str] = {
    model.Scalar.ANY: "google.protobuf.Value",
    model.Scalar.BOOLEAN: "bool",
    model.Scalar.STRING: "string",
    model.Scalar.BYTES: "bytes",
    model.Scalar.DOUBLE: "double",
    model.Scalar.FLOAT: "float",
    model.Scalar.DATE: "string",
    model.Scalar.TIME: "string",
    model.Scalar.TIME_MILLIS: "string",
    model.Scalar.TIMESTAMP: "google.protobuf.Timestamp",
    model.Scalar.TIMESTAMP_MILLIS: "google.protobuf.Timestamp",
    model.Scalar.LOCAL_TIMESTAMP: "google.protobuf.Timestamp",
    model.Scalar.DURATION: "google.protobuf.Duration",
    model.Scalar.UUID: "string",
} | {scalar: scalar.value for scalar in model.INTEGERS}

_FILES = {
    "google.protobuf.Value": "google/protobuf/struct.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Duration": "google/protobuf/duration.proto",
}

# By the numbers of google.protobuf.FieldDescriptorProto.Type.
_SCALARS = {
    1: model.Scalar.DOUBLE,
    2: model.Scalar.FLOAT,
    3: model.Scalar.LONG,
    4: model.Scalar.UINT64,
    5: model.Scalar.INT,
    6: model.Scalar.FIXED64,
    7: model.Scalar.FIXED32,
    8: model.Scalar.BOOLEAN,
    9: model.Scalar.STRING,
    12: model.Scalar.BYTES,
    13: model.Scalar.UINT32,
    15: model.Scalar.SFIXED32,
    16: model.Scalar.SFIXED64,
    17: model.Scalar.SINT32,
    18: model.Scalar.SINT64,
}
_ENUM, _REPEATED, _REQUIRED = 14, 3, 2
_UNSPECIFIED = "UNSPECIFIED"

_WELL_KNOWN: dict[str, model.Type] = {
    ".google.protobuf.Timestamp": model.Scalar.TIMESTAMP,
    ".google.protobuf.Duration": model.Scalar.DURATION,
    ".google.protobuf.Value": model.Scalar.ANY,
    ".google.protobuf.Struct": model.MapOf(model.Scalar.ANY),
    ".google.protobuf.ListValue": model.ListOf(model.Scalar.ANY),
}
_ZEROS = {"bool": False, "str": "", "bytes": b"", "int": 0, "float": 0.0}


def write(shape: model.Shape) -> str:
    """Format a file with all messages and enums of a shape."""
    return _Writer(shape).file()


def read(file: Any, message: str | None = None, dependencies: Sequence[Any] = ()) -> model.Shape:
    """Return the model of a message, the first by default, from a `FileDescriptorProto`.

    `dependencies` are descriptors of the imported files. Comments become docstrings if the
    descriptor was compiled with its source info.
    """
    reader = _Reader()
    for each in (*dependencies, file):
        reader.add_file(each)
    prefix = f".{file.package}." if file.package else "."
    if message is None:
        if not file.message_type:
            raise model.Inexpressible(f"{file.name} has no message")
        message = file.message_type[0].name
    return model.Shape(reader.named(prefix + message.removeprefix(prefix[1:])), reader.definitions)


class _Writer:
    def __init__(self, shape: model.Shape) -> None:
        self._shape = shape
        self._package = shape.root.name.rpartition(".")[0]
        self._imports: set[str] = set()
        self._enums: dict[str, str] = {}

    def file(self) -> str:
        for name, each in self._shape.definitions.items():
            if isinstance(each, model.Enumeration):
                local = self._local(name)
                self._enums[local] = _enumeration(local, each.members, each.doc)
        messages = [
            self._message(each)
            for each in self._shape.definitions.values()
            if isinstance(each, model.Record)
        ]
        head = ['syntax = "proto3";']
        if self._package:
            head.append(f"package {self._package};")
        if self._imports:
            head.append("\n".join(f'import "{name}";' for name in sorted(self._imports)))
        enums = [text for _, text in sorted(self._enums.items())]
        return "\n\n".join([*head, *messages, *enums]) + "\n"

    def _message(self, record: model.Record) -> str:
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
            raise model.Inexpressible(
                f"{name} is not in the package {self._package or '(none)'} of the schema, and a "
                "Protobuf file has one"
            )
        if not _NAME.fullmatch(local):
            raise model.Inexpressible(f"'{local}' is not a name in Protobuf; rename it with @named")
        return local

    def _field(self, record: model.Record, field: model.Field, number: int) -> list[str]:
        where = f"{self._local(record.name)}.{field.name}"
        if not _NAME.fullmatch(field.name):
            raise model.Inexpressible(
                f"{where}: '{field.name}' is not a name in Protobuf; use Wire(name=...)"
            )
        indent = "    " if field.oneof else "  "
        text = f"{indent}{self._labelled(field, where)} {field.name} = {number};"
        return [*_comment(field.doc, indent), text]

    def _labelled(self, field: model.Field, where: str) -> str:
        match field.type:
            case model.ListOf(item):
                return f"repeated {self._single(item, where)}"
            case model.MapOf(value, key):
                return f"map<{_WRITTEN[key]}, {self._single(value, where)}>"
            case model.UnionOf():
                inner = model.without_null(field.type)
                if inner is None or isinstance(inner, model.UnionOf):
                    raise model.Inexpressible(
                        f"{where}: Protobuf has no unions of types; make a field for each of them, "
                        'with Wire(oneof="...")'
                    )
                if isinstance(inner, model.ListOf | model.MapOf):
                    raise model.Inexpressible(
                        f"{where}: a list or dict cannot be null in Protobuf; use an empty one"
                    )
                single = self._single(inner, where)
                return single if field.oneof or self._is_message(inner) else f"optional {single}"
            case _:
                return self._single(field.type, where)

    def _is_message(self, type_: model.Type) -> bool:
        """Return whether a type is a message, which may be absent without being optional."""
        if isinstance(type_, model.Named):
            return isinstance(self._shape.definitions[type_.name], model.Record)
        return isinstance(type_, model.Scalar) and _WRITTEN.get(type_) in _FILES

    def _single(self, type_: model.Type, where: str) -> str:
        match type_:
            case model.Scalar() if type_ in _WRITTEN:
                name = _WRITTEN[type_]
                if name in _FILES:
                    self._imports.add(_FILES[name])
                return name
            case model.DecimalOf():
                return "string"
            case model.Named(name):
                return self._local(name)
            case model.Choice(values):
                return self._choice(values, where)
            case _:
                inner = (
                    model.PYTHON_TYPES[type_]
                    if isinstance(type_, model.Scalar)
                    else "a list, dict or union"
                )
                raise model.Inexpressible(
                    f"{where}: {inner} is not possible here in Protobuf; use a record"
                )

    def _choice(self, values: tuple[str | int | bool, ...], where: str) -> str:
        name = model.camel(*where.split("."))
        members = tuple((str(value), str(value)) for value in values)
        self._enums[name] = _enumeration(name, members, None)
        return name


class _Reader:
    def __init__(self) -> None:
        self.definitions: dict[str, model.Record | model.Enumeration] = {}
        self._messages: dict[str, Any] = {}
        self._enums: dict[str, Any] = {}
        self._docs: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._proto2: set[str] = set()

    def add_file(self, file: Any) -> None:
        """Register the definitions of a file by full name."""
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

    def named(self, full: str) -> model.Named:
        """Return the name of a definition, which is read on its first use."""
        if full not in self._names:
            raise model.Inexpressible(f"{full.removeprefix('.')} is not defined in the files given")
        name = self._names[full]
        if name not in self.definitions:
            self.definitions[name] = model.Record(name=name, fields=())
            self.definitions[name] = self._definition(full, name)
        return model.Named(name)

    def _definition(self, full: str, name: str) -> model.Record | model.Enumeration:
        doc = _text(self._docs[full])
        if full in self._enums:
            members = tuple((value.name, value.number) for value in self._enums[full].value)
            return model.Enumeration(name=name, members=members, doc=doc)
        message, package = self._messages[full]
        fields: list[model.Field] = []
        last = 0
        for field in message.field:
            fields.append(self._field(message, field, full, package, last))
            last = field.number
        return model.Record(name=name, fields=tuple(fields), doc=doc)

    def _field(self, message: Any, field: Any, full: str, package: str, last: int) -> model.Field:
        type_, default = self._labelled(field, package)
        is_oneof = field.HasField("oneof_index") and not field.proto3_optional
        return model.Field(
            name=field.name,
            type=type_,
            default=default,
            doc=_text(self._docs.get(f"{full}.{field.name}", "")),
            number=None if field.number == _next(last) else field.number,
            oneof=message.oneof_decl[field.oneof_index].name if is_oneof else None,
        )

    def _labelled(self, field: Any, package: str) -> tuple[model.Type, Any]:
        """Return the type of a field, and the value of a message without it."""
        if field.label == _REPEATED:
            entry = self._messages.get(field.type_name)
            if entry is not None and entry[0].options.map_entry:
                key, value = entry[0].field
                return model.MapOf(self._single(value), _SCALARS[key.type]), {}
            return model.ListOf(self._single(field)), []
        single = self._single(field)
        if field.label == _REQUIRED:
            return single, model.MISSING
        may_be_missing = field.proto3_optional or field.HasField("oneof_index")
        if single is model.Scalar.ANY:
            return single, None
        if may_be_missing or package in self._proto2 or self._has_no_zero(field):
            return model.union([single, model.Scalar.NULL]), None
        if field.type == _ENUM:
            return single, self._enums[field.type_name].value[0].number
        assert isinstance(single, model.Scalar)
        return single, _ZEROS[model.PYTHON_TYPES[single]]

    def _has_no_zero(self, field: Any) -> bool:
        return field.type != _ENUM and field.type not in _SCALARS

    def _single(self, field: Any) -> model.Type:
        if field.type in _SCALARS:
            return _SCALARS[field.type]
        return _WELL_KNOWN.get(field.type_name) or self.named(field.type_name)


def _numbered(record: model.Record) -> list[tuple[model.Field, int]]:
    """Return fields with their numbers: the given number, or the next after the previous field."""
    given = {field.number for field in record.fields if field.number is not None}
    numbered: list[tuple[model.Field, int]] = []
    last = 0
    for field in record.fields:
        number = field.number
        if number is None:
            number = _next(last)
            while number in given:
                number = _next(number)
        if not 1 <= number <= _NUMBER_MAX or number in _RESERVED:
            raise model.Inexpressible(
                f"{record.name}.{field.name}: {number} is not a valid field number"
            )
        if number in [taken for _, taken in numbered]:
            raise model.Inexpressible(
                f"{record.name}.{field.name}: the number {number} is used twice"
            )
        numbered.append((field, number))
        last = number
    return numbered


def _next(number: int) -> int:
    return _RESERVED.stop if number + 1 in _RESERVED else number + 1


def _enumeration(name: str, members: tuple[tuple[str, str | int], ...], doc: str | None) -> str:
    """Format an enum; its values share the scope of the file, so each has the enum's name first."""
    prefix = _prefix(name)
    numbers = {each: value for each, value in members if isinstance(value, int)}
    if len(numbers) < len(members) or 0 not in numbers.values():
        names = [_UNSPECIFIED, *(each for each, _ in members)]
        numbers = {each: number for number, each in enumerate(names)}
    ordered = sorted(numbers.items(), key=lambda item: item[1] != 0)
    lines = [f"  {_value(prefix, each)} = {number};" for each, number in ordered]
    return "\n".join([*_comment(doc, ""), f"enum {name} {{", *lines, "}"])


def constants(name: str, members: tuple[tuple[str, str | int], ...]) -> dict[str | int, str]:
    """Return the constants of an enumeration's values, by the local name of its type."""
    prefix = _prefix(name.rpartition(".")[2])
    return {value: _value(prefix, each) for each, value in members}


def unspecified(name: str) -> str:
    """Return the constant that represents an absent value of an enumeration."""
    return _value(_prefix(name.rpartition(".")[2]), _UNSPECIFIED)


def _prefix(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper() + "_"


def _value(prefix: str, name: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9]+", "_", name).upper().strip("_") or "EMPTY"
    return name if name.startswith(prefix) else prefix + kept


def _flattened(full: str, package: str) -> str:
    """Return the name of a nested message as a top-level class."""
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
