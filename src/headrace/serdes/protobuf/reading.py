"""Parses a .proto text to its statements.

protoc validates the text before or afterwards. So this parser accepts anything with the form of a
statement, and reports the position of anything else.
"""

from dataclasses import dataclass, field, replace

from headrace.serdes.protobuf import elements
from headrace.serdes.protobuf.cursor import Cursor
from headrace.serdes.protobuf.reading_options import read_option, read_options
from headrace.serdes.protobuf.tokens import Kind

LABELS = frozenset({"optional", "required", "repeated"})
VISIBILITIES = frozenset({"export", "local"})
SPECIAL_OPTIONS = ("default", "json_name")


def read(text: str) -> elements.File:
    return read_file(Cursor(text))


@dataclass(slots=True)
class Body:
    """The parsed parts of a file, a message or a group."""

    fields: list[elements.Field] = field(default_factory=list)
    oneofs: list[elements.OneOf] = field(default_factory=list)
    messages: list[elements.Message] = field(default_factory=list)
    enums: list[elements.Enum] = field(default_factory=list)
    options: list[elements.Option] = field(default_factory=list)
    reserved: list[elements.Reserved] = field(default_factory=list)
    extensions: list[elements.Extensions] = field(default_factory=list)
    extends: list[elements.Extend] = field(default_factory=list)
    services: list[elements.Service] = field(default_factory=list)
    imports: list[elements.Import] = field(default_factory=list)

    def message(self, name: str) -> elements.Message:
        return elements.Message(
            name,
            tuple(self.fields),
            tuple(self.oneofs),
            tuple(self.messages),
            tuple(self.enums),
            tuple(self.options),
            tuple(self.reserved),
            tuple(self.extensions),
            tuple(self.extends),
        )


# The file.


def read_file(cursor: Cursor) -> elements.File:
    body = Body()
    syntax = edition = package = ""
    while cursor.next.kind is not Kind.END:
        if cursor.take("syntax"):
            cursor.expect("=")
            syntax = cursor.string_text()
            cursor.expect(";")
        elif cursor.take("edition"):
            cursor.expect("=")
            edition = cursor.string_text()
            cursor.expect(";")
        elif cursor.take("package"):
            package = cursor.name()
            cursor.expect(";")
        elif cursor.take("import"):
            body.imports.append(read_import(cursor))
        elif cursor.take("service"):
            body.services.append(read_service(cursor))
        else:
            read_statement(cursor, body, is_file=True)
    return elements.File(
        syntax,
        edition,
        package,
        tuple(body.imports),
        tuple(body.options),
        tuple(body.messages),
        tuple(body.enums),
        tuple(body.extends),
        tuple(body.services),
    )


def read_import(cursor: Cursor) -> elements.Import:
    kind = cursor.word() if cursor.next.kind is Kind.WORD else ""
    name = cursor.string_text()
    cursor.expect(";")
    return elements.Import(name, kind)


# Messages, and the statements within or next to them.


def read_statement(cursor: Cursor, body: Body, *, is_file: bool = False) -> None:
    if cursor.take(";"):
        return
    visibility = ""
    if cursor.next.text in VISIBILITIES and cursor.after.text in ("message", "enum"):
        visibility = cursor.word()
    if cursor.take("message"):
        body.messages.append(replace(read_message(cursor, cursor.word()), visibility=visibility))
    elif cursor.take("enum"):
        body.enums.append(replace(read_enum(cursor), visibility=visibility))
    elif cursor.take("extend"):
        body.extends.append(read_extend(cursor))
    elif cursor.take("option"):
        body.options.append(read_option(cursor))
        cursor.expect(";")
    elif is_file:
        raise cursor.refused("a statement of a file")
    elif cursor.take("oneof"):
        body.oneofs.append(read_oneof(cursor))
    elif cursor.take("reserved"):
        body.reserved.append(read_reserved(cursor, elements.NUMBER_MAX))
    elif cursor.take("extensions"):
        body.extensions.append(read_extensions(cursor))
    else:
        body.fields.append(read_field(cursor))


def read_message(cursor: Cursor, name: str) -> elements.Message:
    body = Body()
    cursor.open()
    while not cursor.closed():
        read_statement(cursor, body)
    return body.message(name)


def read_oneof(cursor: Cursor) -> elements.OneOf:
    name = cursor.word()
    fields, options = [], []
    cursor.open()
    while not cursor.closed():
        if cursor.take("option"):
            options.append(read_option(cursor))
            cursor.expect(";")
        elif not cursor.take(";"):
            fields.append(read_field(cursor))
    return elements.OneOf(name, tuple(fields), tuple(options))


def read_extend(cursor: Cursor) -> elements.Extend:
    name = cursor.name()
    fields = []
    cursor.open()
    while not cursor.closed():
        if not cursor.take(";"):
            fields.append(read_field(cursor))
    return elements.Extend(name, tuple(fields))


def read_field(cursor: Cursor) -> elements.Field:
    label = cursor.word() if cursor.next.text in LABELS else None
    if cursor.next.text == "group" and cursor.after.kind is Kind.WORD:
        return read_group(cursor, label)
    type_ = read_type(cursor)
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = with_special_options_last(read_options(cursor))
    cursor.expect(";")
    return elements.Field(label, type_, name, number, options)


def read_group(cursor: Cursor, label: str | None) -> elements.Field:
    cursor.expect("group")
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = with_special_options_last(read_options(cursor))
    return elements.Field(label, "group", name.lower(), number, options, read_message(cursor, name))


def read_type(cursor: Cursor) -> str:
    if cursor.next.text != "map" or cursor.after.text != "<":
        return cursor.name()
    cursor.expect("map")
    cursor.expect("<")
    key = cursor.name()
    cursor.expect(",")
    value = cursor.name()
    cursor.expect(">")
    return f"map<{key}, {value}>"


def read_reserved(cursor: Cursor, last: int) -> elements.Reserved:
    values: list[elements.Range | elements.Quoted | elements.Word] = []
    while True:
        if cursor.next.kind is Kind.STRING:
            values.append(elements.Quoted(cursor.string()))
        elif cursor.next.kind is Kind.WORD:
            values.append(elements.Word(cursor.word()))
        else:
            values.append(read_range(cursor, last))
        if not cursor.take(","):
            break
    cursor.expect(";")
    return elements.Reserved(tuple(values))


def read_extensions(cursor: Cursor) -> elements.Extensions:
    ranges = [read_range(cursor, elements.NUMBER_MAX)]
    while cursor.take(","):
        ranges.append(read_range(cursor, elements.NUMBER_MAX))
    options = read_options(cursor)
    cursor.expect(";")
    return elements.Extensions(tuple(ranges), options)


def read_range(cursor: Cursor, last: int) -> elements.Range:
    start = cursor.integer()
    if not cursor.take("to"):
        return start, start
    return start, last if cursor.take("max") else cursor.integer()


# Enums and services.


def read_enum(cursor: Cursor) -> elements.Enum:
    name = cursor.word()
    constants, options, reserved = [], [], []
    cursor.open()
    while not cursor.closed():
        if cursor.take(";"):
            continue
        is_constant = cursor.after.text == "="
        if not is_constant and cursor.take("option"):
            options.append(read_option(cursor))
            cursor.expect(";")
        elif not is_constant and cursor.take("reserved"):
            reserved.append(read_reserved(cursor, elements.ENUM_NUMBER_MAX))
        else:
            constants.append(read_constant(cursor))
    return elements.Enum(name, tuple(constants), tuple(options), tuple(reserved))


def read_constant(cursor: Cursor) -> elements.Constant:
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = read_options(cursor)
    cursor.expect(";")
    return elements.Constant(name, number, options)


def read_service(cursor: Cursor) -> elements.Service:
    name = cursor.word()
    rpcs, options = [], []
    cursor.open()
    while not cursor.closed():
        if cursor.take("option"):
            options.append(read_option(cursor))
            cursor.expect(";")
        elif cursor.take("rpc"):
            rpcs.append(read_rpc(cursor))
        else:
            cursor.expect(";")
    return elements.Service(name, tuple(rpcs), tuple(options))


def read_rpc(cursor: Cursor) -> elements.Rpc:
    name = cursor.word()
    request, is_request_streamed = read_rpc_type(cursor)
    cursor.expect("returns")
    response, is_response_streamed = read_rpc_type(cursor)
    options = []
    if not cursor.take(";"):
        cursor.open()
        while not cursor.closed():
            if not cursor.take(";"):
                cursor.expect("option")
                options.append(read_option(cursor))
                cursor.expect(";")
    return elements.Rpc(
        name, request, response, is_request_streamed, is_response_streamed, tuple(options)
    )


def read_rpc_type(cursor: Cursor) -> tuple[str, bool]:
    cursor.expect("(")
    is_streamed = cursor.take("stream")
    name = cursor.name()
    cursor.expect(")")
    return name, is_streamed


def with_special_options_last(options: tuple[elements.Option, ...]) -> tuple[elements.Option, ...]:
    """Move `default` and `json_name`, which are not real options, to the end, as Confluent does."""
    special = [option for name in SPECIAL_OPTIONS for option in options if option.name == name]
    return (*(option for option in options if option.name not in SPECIAL_OPTIONS), *special)
