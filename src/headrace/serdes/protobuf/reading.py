"""Reads a .proto text into its statements.

protoc decides what is right: it has seen the text before, or sees it afterwards. So this reader
takes whatever has the shape of a statement, and says where one has none.
"""

from dataclasses import dataclass, field, replace

from headrace.serdes.protobuf.cursor import Cursor
from headrace.serdes.protobuf.elements import (
    ENUM_NUMBER_MAX,
    NUMBER_MAX,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Import,
    Message,
    OneOf,
    Option,
    Quoted,
    Range,
    Reserved,
    Rpc,
    Service,
    Word,
)
from headrace.serdes.protobuf.reading_options import read_option, read_options
from headrace.serdes.protobuf.tokens import Kind

LABELS = frozenset({"optional", "required", "repeated"})
VISIBILITIES = frozenset({"export", "local"})
SPECIAL_OPTIONS = ("default", "json_name")


def read(text: str) -> File:
    return read_file(Cursor(text))


@dataclass(slots=True)
class Body:
    """What has been read of a file, a message or a group so far."""

    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)

    def message(self, name: str) -> Message:
        return Message(
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


def read_file(cursor: Cursor) -> File:
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
    return File(
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


def read_import(cursor: Cursor) -> Import:
    kind = cursor.word() if cursor.next.kind is Kind.WORD else ""
    name = cursor.string_text()
    cursor.expect(";")
    return Import(name, kind)


# Messages, and what is within them or beside them.


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
        body.reserved.append(read_reserved(cursor, NUMBER_MAX))
    elif cursor.take("extensions"):
        body.extensions.append(read_extensions(cursor))
    else:
        body.fields.append(read_field(cursor))


def read_message(cursor: Cursor, name: str) -> Message:
    body = Body()
    cursor.open()
    while not cursor.closed():
        read_statement(cursor, body)
    return body.message(name)


def read_oneof(cursor: Cursor) -> OneOf:
    name = cursor.word()
    fields, options = [], []
    cursor.open()
    while not cursor.closed():
        if cursor.take("option"):
            options.append(read_option(cursor))
            cursor.expect(";")
        elif not cursor.take(";"):
            fields.append(read_field(cursor))
    return OneOf(name, tuple(fields), tuple(options))


def read_extend(cursor: Cursor) -> Extend:
    name = cursor.name()
    fields = []
    cursor.open()
    while not cursor.closed():
        if not cursor.take(";"):
            fields.append(read_field(cursor))
    return Extend(name, tuple(fields))


def read_field(cursor: Cursor) -> Field:
    label = cursor.word() if cursor.next.text in LABELS else None
    if cursor.next.text == "group" and cursor.after.kind is Kind.WORD:
        return read_group(cursor, label)
    type_ = read_type(cursor)
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = with_special_options_last(read_options(cursor))
    cursor.expect(";")
    return Field(label, type_, name, number, options)


def read_group(cursor: Cursor, label: str | None) -> Field:
    cursor.expect("group")
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = with_special_options_last(read_options(cursor))
    return Field(label, "group", name.lower(), number, options, read_message(cursor, name))


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


def read_reserved(cursor: Cursor, last: int) -> Reserved:
    values: list[Range | Quoted | Word] = []
    while True:
        if cursor.next.kind is Kind.STRING:
            values.append(Quoted(cursor.string()))
        elif cursor.next.kind is Kind.WORD:
            values.append(Word(cursor.word()))
        else:
            values.append(read_range(cursor, last))
        if not cursor.take(","):
            break
    cursor.expect(";")
    return Reserved(tuple(values))


def read_extensions(cursor: Cursor) -> Extensions:
    ranges = [read_range(cursor, NUMBER_MAX)]
    while cursor.take(","):
        ranges.append(read_range(cursor, NUMBER_MAX))
    options = read_options(cursor)
    cursor.expect(";")
    return Extensions(tuple(ranges), options)


def read_range(cursor: Cursor, last: int) -> Range:
    start = cursor.integer()
    if not cursor.take("to"):
        return start, start
    return start, last if cursor.take("max") else cursor.integer()


# Enums and services.


def read_enum(cursor: Cursor) -> Enum:
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
            reserved.append(read_reserved(cursor, ENUM_NUMBER_MAX))
        else:
            constants.append(read_constant(cursor))
    return Enum(name, tuple(constants), tuple(options), tuple(reserved))


def read_constant(cursor: Cursor) -> Constant:
    name = cursor.word()
    cursor.expect("=")
    number = cursor.integer()
    options = read_options(cursor)
    cursor.expect(";")
    return Constant(name, number, options)


def read_service(cursor: Cursor) -> Service:
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
    return Service(name, tuple(rpcs), tuple(options))


def read_rpc(cursor: Cursor) -> Rpc:
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
    return Rpc(name, request, response, is_request_streamed, is_response_streamed, tuple(options))


def read_rpc_type(cursor: Cursor) -> tuple[str, bool]:
    cursor.expect("(")
    is_streamed = cursor.take("stream")
    name = cursor.name()
    cursor.expect(")")
    return name, is_streamed


def with_special_options_last(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """`default` and `json_name` are no options proper, and Confluent writes them last."""
    special = [option for name in SPECIAL_OPTIONS for option in options if option.name == name]
    return (*(option for option in options if option.name not in SPECIAL_OPTIONS), *special)
