"""Parses options of a .proto text, and their values."""

from headrace.serdes.protobuf.cursor import Cursor
from headrace.serdes.protobuf.elements import Fields, Items, Option, Quoted, Value, Word
from headrace.serdes.protobuf.tokens import Kind


def read_options(cursor: Cursor) -> tuple[Option, ...]:
    if not cursor.take("["):
        return ()
    options = [read_option(cursor)]
    while cursor.take(","):
        options.append(read_option(cursor))
    cursor.expect("]")
    return tuple(options)


def read_option(cursor: Cursor) -> Option:
    name = read_option_name(cursor)
    while cursor.take("."):
        name += f".{read_option_name(cursor)}"
    cursor.expect("=")
    return Option(name, read_value(cursor))


def read_option_name(cursor: Cursor) -> str:
    if not cursor.take("("):
        return cursor.word()
    name = cursor.name()
    cursor.expect(")")
    return f"({name})"


def read_value(cursor: Cursor) -> Value:
    if cursor.next.kind is Kind.STRING:
        return Quoted(cursor.string())
    if cursor.next.text in ("{", "<"):
        return read_fields(cursor)
    if cursor.next.text == "[":
        return read_items(cursor)
    sign = "-" if cursor.take("-") else ""
    if cursor.next.kind not in (Kind.WORD, Kind.NUMBER):
        raise cursor.refused("a value")
    return Word(sign + cursor.step().text)


def read_items(cursor: Cursor) -> Items:
    cursor.expect("[")
    cursor.enter()
    values = []
    while not cursor.take("]"):
        values.append(read_value(cursor))
        if cursor.next.text != "]":
            cursor.expect(",")
    cursor.depth -= 1
    return Items(tuple(values))


def read_fields(cursor: Cursor) -> Fields:
    """Parse a message's text format. A repeated key has a list of values."""
    end = "}" if cursor.step().text == "{" else ">"
    cursor.enter()
    found: dict[str, list[Value]] = {}
    while not cursor.take(end):
        key = read_key(cursor)
        if not cursor.take(":") and cursor.next.text not in ("{", "<"):
            raise cursor.refused("':'")
        found.setdefault(key, []).append(read_value(cursor))
        if not cursor.take(","):
            cursor.take(";")
    cursor.depth -= 1
    return Fields(tuple((key, together(values)) for key, values in found.items()))


def read_key(cursor: Cursor) -> str:
    if not cursor.take("["):
        return cursor.word()
    name = cursor.name()
    while cursor.take("/"):
        name += f"/{cursor.name()}"
    cursor.expect("]")
    return f"[{name}]"


def together(values: list[Value]) -> Value:
    """Join several values to one flat list; a single value is unchanged."""
    if len(values) == 1:
        return values[0]
    return Items(
        tuple(
            one
            for value in values
            for one in (value.values if isinstance(value, Items) else (value,))
        )
    )
