"""Writes the statements of a .proto file in the layout of Confluent's registry.

A registry compares schemas by this text, so blank lines and the order of parts are those of the
original: fields, then oneofs, groups, extensions, nested messages and nested enums.
"""

from collections.abc import Iterable

from headrace.serdes.protobuf import elements

ESCAPES = {
    ord("\a"): "\\a", ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r",
    ord("\t"): "\\t", ord("\v"): "\\v", ord("\\"): "\\\\", ord("'"): "\\'", ord('"'): '\\"',
    **{code: f"\\{code:03o}" for code in (*range(7), *range(14, 32), 127)},
}  # fmt: skip


def print_file(file: elements.File) -> str:
    """Format a file."""
    head = ""
    if file.syntax:
        head += f'syntax = "{file.syntax}";\n'
    if file.edition:
        head += f'edition = "{file.edition}";\n'
    if file.package:
        head += f"package {file.package};\n"
    return head + "".join(
        section(parts)
        for parts in (
            import_lines(file),
            map(option_line, file.options),
            [*map(message_text, file.messages), *map(enum_text, file.enums)],
            map(extend_text, file.extends),
            map(service_text, file.services),
        )
    )


# Statements.


def import_lines(file: elements.File) -> list[str]:
    """Format imports, plain ones first as in the original."""
    return [
        f"import {found.kind}{' ' * bool(found.kind)}{quoted(found.name)};\n"
        for found in sorted(file.imports, key=lambda found: bool(found.kind))
    ]


def message_text(message: elements.Message) -> str:
    return f"{opening('message', message)} {{{message_body(message)}}}\n"


def message_body(message: elements.Message) -> str:
    plain = [field for field in message.fields if field.group is None]
    groups = [field for field in message.fields if field.group is not None]
    reserved = "".join(reserved_line(found, elements.NUMBER_MAX) for found in message.reserved)
    return "".join(
        section(map(indented, parts))
        for parts in (
            [reserved] if reserved else [],
            map(option_line, message.options),
            map(field_text, plain),
            map(oneof_text, message.oneofs),
            map(field_text, groups),
            map(extensions_line, message.extensions),
            map(extend_text, message.extends),
            [*map(message_text, message.messages), *map(enum_text, message.enums)],
        )
    )


def enum_text(enum: elements.Enum) -> str:
    lines = [
        *(reserved_line(found, elements.ENUM_NUMBER_MAX) for found in enum.reserved),
        *map(option_line, enum.options),
        *map(constant_line, enum.constants),
    ]
    return f"{opening('enum', enum)} {{{section(map(indented, lines))}}}\n"


def opening(kind: str, type_: elements.Message | elements.Enum) -> str:
    return f"{type_.visibility} {kind} {type_.name}".lstrip()


def constant_line(constant: elements.Constant) -> str:
    return f"{constant.name} = {constant.number}{bracketed(constant.options)};\n"


def oneof_text(oneof: elements.OneOf) -> str:
    plain = [field for field in oneof.fields if field.group is None]
    groups = [field for field in oneof.fields if field.group is not None]
    body = "".join(
        section(map(indented, parts))
        for parts in (
            map(option_line, oneof.options),
            map(field_text, plain),
            map(field_text, groups),
        )
    )
    return f"oneof {oneof.name} {{{body}}}\n"


def extend_text(extend: elements.Extend) -> str:
    return f"extend {extend.name} {{{section(map(indented, map(field_text, extend.fields)))}}}\n"


def field_text(field: elements.Field) -> str:
    label = f"{field.label} " if field.label else ""
    options = bracketed(field.options)
    if field.group is not None:
        body = message_body(field.group)
        return f"{label}group {field.group.name} = {field.number}{options} {{{body}}}\n"
    return f"{label}{field.type} {field.name} = {field.number}{options};\n"


def reserved_line(reserved: elements.Reserved, last: int) -> str:
    values = [
        range_text(value, last) if isinstance(value, tuple) else value_text(value)
        for value in reserved.values
    ]
    return f"reserved {', '.join(values)};\n"


def extensions_line(extensions: elements.Extensions) -> str:
    ranges = ", ".join(range_text(found, elements.NUMBER_MAX) for found in extensions.ranges)
    return f"extensions {ranges}{bracketed(extensions.options)};\n"


def range_text(numbers: elements.Range, last: int) -> str:
    start, end = numbers
    if start == end:
        return str(start)
    return f"{start} to {'max' if end >= last else end}"


def service_text(service: elements.Service) -> str:
    options = section(indented(option_line(option)) for option in service.options)
    rpcs = section(indented(rpc_text(rpc)) for rpc in service.rpcs)
    return f"service {service.name} {{{options}{rpcs}}}\n"


def rpc_text(rpc: elements.Rpc) -> str:
    request = f"{'stream ' * rpc.is_request_streamed}{rpc.request}"
    response = f"{'stream ' * rpc.is_response_streamed}{rpc.response}"
    lines = "".join(indented(option_line(option)) for option in rpc.options)
    body = f" {{\n{lines}}}" if lines else ""
    return f"rpc {rpc.name} ({request}) returns ({response}){body};\n"


# Options and their values.


def option_line(option: elements.Option) -> str:
    return f"option {option_text(option)};\n"


def bracketed(options: tuple[elements.Option, ...]) -> str:
    if not options:
        return ""
    return f" {listed(list(map(option_text, options)), is_one_inline=True)}"


def option_text(option: elements.Option) -> str:
    value = option.value
    if isinstance(value, elements.Items):
        return f"{option.name} = {listed(list(map(value_text, value.values)), is_one_inline=True)}"
    return f"{option.name} = {value_text(value)}"


def value_text(value: elements.Value) -> str:
    match value:
        case elements.Quoted(content):
            return f'"{escaped(content)}"'
        case elements.Word(text):
            return text
        case elements.Items(values):
            return listed(list(map(value_text, values)), is_one_inline=False)
        case elements.Fields(pairs):
            lines = [f"{key}: {value_text(found)}" for key, found in pairs]
            return f"{{\n{comma_separated(lines)}}}"


def listed(texts: list[str], *, is_one_inline: bool) -> str:
    if is_one_inline and len(texts) == 1:
        return f"[{texts[0]}]"
    return f"[\n{comma_separated(texts)}]"


def comma_separated(texts: list[str]) -> str:
    last = len(texts) - 1
    return "".join(
        indented(f"{text}{',' if index < last else ''}\n") for index, text in enumerate(texts)
    )


def quoted(text: str) -> str:
    return f'"{escaped(text.encode())}"'


def escaped(content: bytes) -> str:
    """Escape text, with bytes that are not text in octal."""
    decoded = content.decode("utf-8", "surrogateescape")
    return "".join(
        f"\\{ord(sign) - 0xDC00:03o}" if 0xDC80 <= ord(sign) <= 0xDCFF else sign
        for sign in decoded.translate(ESCAPES)
    )


# Layout.


def section(parts: Iterable[str]) -> str:
    """Join parts after a blank line or an opening brace; empty without parts."""
    text = "".join(parts)
    return f"\n{text}" if text else ""


def indented(text: str) -> str:
    """Indent all lines. Blank lines are indented too, as in the original."""
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))
