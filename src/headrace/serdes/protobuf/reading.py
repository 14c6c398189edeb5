"""Reads a .proto text into its statements.

protoc decides what is right: it has seen the text before, or sees it afterwards. So this reader
takes whatever has the shape of a statement, and says where one has none.
"""

from dataclasses import dataclass, field, replace

from headrace.serdes.protobuf.elements import (
    ENUM_NUMBER_MAX,
    NUMBER_MAX,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Fields,
    File,
    Import,
    Items,
    Message,
    OneOf,
    Option,
    Quoted,
    Range,
    Reserved,
    Rpc,
    Service,
    Value,
    Word,
)
from headrace.serdes.protobuf.tokens import Kind, Token, place, tokens_of, unquoted
from headrace.serdes.schemas import InvalidSchema

DEPTH_MAX = 64
LABELS = frozenset({"optional", "required", "repeated"})
VISIBILITIES = frozenset({"export", "local"})
SPECIAL_OPTIONS = ("default", "json_name")


def read(text: str) -> File:
    return Reader(text).file()


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


class Reader:
    """Walks over the tokens of one text, by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.next = self.tokens[0]
        self.depth = 0

    # The file.

    def file(self) -> File:
        body = Body()
        syntax = edition = package = ""
        while self.next.kind is not Kind.END:
            if self.take("syntax"):
                self.expect("=")
                syntax = self.string_text()
                self.expect(";")
            elif self.take("edition"):
                self.expect("=")
                edition = self.string_text()
                self.expect(";")
            elif self.take("package"):
                package = self.name()
                self.expect(";")
            elif self.take("import"):
                body.imports.append(self.import_())
            elif self.take("service"):
                body.services.append(self.service())
            else:
                self.statement(body, is_file=True)
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

    def import_(self) -> Import:
        kind = self.word() if self.next.kind is Kind.WORD else ""
        name = self.string_text()
        self.expect(";")
        return Import(name, kind)

    # Messages, and what is within them or beside them.

    def statement(self, body: Body, *, is_file: bool = False) -> None:
        if self.take(";"):
            return
        visibility = ""
        if self.next.text in VISIBILITIES and self.after.text in ("message", "enum"):
            visibility = self.word()
        if self.take("message"):
            body.messages.append(replace(self.message(self.word()), visibility=visibility))
        elif self.take("enum"):
            body.enums.append(replace(self.enum(), visibility=visibility))
        elif self.take("extend"):
            body.extends.append(self.extend())
        elif self.take("option"):
            body.options.append(self.option())
            self.expect(";")
        elif is_file:
            raise self.refused("a statement of a file")
        elif self.take("oneof"):
            body.oneofs.append(self.oneof())
        elif self.take("reserved"):
            body.reserved.append(self.reserved(NUMBER_MAX))
        elif self.take("extensions"):
            body.extensions.append(self.extensions())
        else:
            body.fields.append(self.field())

    def message(self, name: str) -> Message:
        body = Body()
        self.open()
        while not self.closed():
            self.statement(body)
        return body.message(name)

    def oneof(self) -> OneOf:
        name = self.word()
        fields, options = [], []
        self.open()
        while not self.closed():
            if self.take("option"):
                options.append(self.option())
                self.expect(";")
            elif not self.take(";"):
                fields.append(self.field())
        return OneOf(name, tuple(fields), tuple(options))

    def extend(self) -> Extend:
        name = self.name()
        fields = []
        self.open()
        while not self.closed():
            if not self.take(";"):
                fields.append(self.field())
        return Extend(name, tuple(fields))

    def field(self) -> Field:
        label = self.word() if self.next.text in LABELS else None
        if self.next.text == "group" and self.after.kind is Kind.WORD:
            return self.group(label)
        type_ = self.type()
        name = self.word()
        self.expect("=")
        number = self.integer()
        options = with_special_options_last(self.options())
        self.expect(";")
        return Field(label, type_, name, number, options)

    def group(self, label: str | None) -> Field:
        self.expect("group")
        name = self.word()
        self.expect("=")
        number = self.integer()
        options = with_special_options_last(self.options())
        return Field(label, "group", name.lower(), number, options, self.message(name))

    def type(self) -> str:
        if self.next.text != "map" or self.after.text != "<":
            return self.name()
        self.expect("map")
        self.expect("<")
        key = self.name()
        self.expect(",")
        value = self.name()
        self.expect(">")
        return f"map<{key}, {value}>"

    def reserved(self, last: int) -> Reserved:
        values: list[Range | Quoted | Word] = []
        while True:
            if self.next.kind is Kind.STRING:
                values.append(Quoted(self.string()))
            elif self.next.kind is Kind.WORD:
                values.append(Word(self.word()))
            else:
                values.append(self.range(last))
            if not self.take(","):
                break
        self.expect(";")
        return Reserved(tuple(values))

    def extensions(self) -> Extensions:
        ranges = [self.range(NUMBER_MAX)]
        while self.take(","):
            ranges.append(self.range(NUMBER_MAX))
        options = self.options()
        self.expect(";")
        return Extensions(tuple(ranges), options)

    def range(self, last: int) -> Range:
        start = self.integer()
        if not self.take("to"):
            return start, start
        return start, last if self.take("max") else self.integer()

    # Enums and services.

    def enum(self) -> Enum:
        name = self.word()
        constants, options, reserved = [], [], []
        self.open()
        while not self.closed():
            if self.take(";"):
                continue
            is_constant = self.after.text == "="
            if not is_constant and self.take("option"):
                options.append(self.option())
                self.expect(";")
            elif not is_constant and self.take("reserved"):
                reserved.append(self.reserved(ENUM_NUMBER_MAX))
            else:
                constants.append(self.constant())
        return Enum(name, tuple(constants), tuple(options), tuple(reserved))

    def constant(self) -> Constant:
        name = self.word()
        self.expect("=")
        number = self.integer()
        options = self.options()
        self.expect(";")
        return Constant(name, number, options)

    def service(self) -> Service:
        name = self.word()
        rpcs, options = [], []
        self.open()
        while not self.closed():
            if self.take("option"):
                options.append(self.option())
                self.expect(";")
            elif self.take("rpc"):
                rpcs.append(self.rpc())
            else:
                self.expect(";")
        return Service(name, tuple(rpcs), tuple(options))

    def rpc(self) -> Rpc:
        name = self.word()
        request, is_request_streamed = self.rpc_type()
        self.expect("returns")
        response, is_response_streamed = self.rpc_type()
        options = []
        if not self.take(";"):
            self.open()
            while not self.closed():
                if not self.take(";"):
                    self.expect("option")
                    options.append(self.option())
                    self.expect(";")
        return Rpc(
            name, request, response, is_request_streamed, is_response_streamed, tuple(options)
        )

    def rpc_type(self) -> tuple[str, bool]:
        self.expect("(")
        is_streamed = self.take("stream")
        name = self.name()
        self.expect(")")
        return name, is_streamed

    # Options and their values.

    def options(self) -> tuple[Option, ...]:
        if not self.take("["):
            return ()
        options = [self.option()]
        while self.take(","):
            options.append(self.option())
        self.expect("]")
        return tuple(options)

    def option(self) -> Option:
        name = self.option_name()
        while self.take("."):
            name += f".{self.option_name()}"
        self.expect("=")
        return Option(name, self.value())

    def option_name(self) -> str:
        if not self.take("("):
            return self.word()
        name = self.name()
        self.expect(")")
        return f"({name})"

    def value(self) -> Value:
        if self.next.kind is Kind.STRING:
            return Quoted(self.string())
        if self.next.text in ("{", "<"):
            return self.fields()
        if self.next.text == "[":
            return self.items()
        sign = "-" if self.take("-") else ""
        if self.next.kind not in (Kind.WORD, Kind.NUMBER):
            raise self.refused("a value")
        return Word(sign + self.step().text)

    def items(self) -> Items:
        self.expect("[")
        self.enter()
        values = []
        while not self.take("]"):
            values.append(self.value())
            if self.next.text != "]":
                self.expect(",")
        self.depth -= 1
        return Items(tuple(values))

    def fields(self) -> Fields:
        """A message's text format. A key that comes twice has a list of values."""
        end = "}" if self.step().text == "{" else ">"
        self.enter()
        pairs: dict[str, Value] = {}
        while not self.take(end):
            key = self.key()
            if not self.take(":") and self.next.text not in ("{", "<"):
                raise self.refused("':'")
            value = self.value()
            pairs[key] = together(pairs[key], value) if key in pairs else value
            if not self.take(","):
                self.take(";")
        self.depth -= 1
        return Fields(tuple(pairs.items()))

    def key(self) -> str:
        if not self.take("["):
            return self.word()
        name = self.name()
        while self.take("/"):
            name += f"/{self.name()}"
        self.expect("]")
        return f"[{name}]"

    # Tokens.

    @property
    def after(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def step(self) -> Token:
        token = self.next
        if token.kind is not Kind.END:
            self.at += 1
            self.next = self.tokens[self.at]
        return token

    def take(self, text: str) -> bool:
        if self.next.text != text:
            return False
        self.step()
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.refused(repr(text))

    def open(self) -> None:
        self.expect("{")
        self.enter()

    def closed(self) -> bool:
        if not self.take("}"):
            return False
        self.depth -= 1
        return True

    def enter(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise InvalidSchema(f"{self.here()}: it nests more than {DEPTH_MAX} deep")

    def word(self) -> str:
        if self.next.kind is not Kind.WORD:
            raise self.refused("a name")
        return self.step().text

    def name(self) -> str:
        """A name that may have a package before it, and a dot before that."""
        name = "." if self.take(".") else ""
        name += self.word()
        while self.take("."):
            name += f".{self.word()}"
        return name

    def integer(self) -> int:
        sign = -1 if self.take("-") else 1
        try:
            number = whole_number(self.next.text)
        except ValueError:
            raise self.refused("a whole number") from None
        self.step()
        return sign * number

    def string(self) -> bytes:
        """One string, or several that stand behind each other."""
        parts: list[bytes] = []
        while self.next.kind is Kind.STRING:
            parts.append(unquoted(self.step().text))
        if not parts:
            raise self.refused("a string")
        return b"".join(parts)

    def string_text(self) -> str:
        return self.string().decode("utf-8", "replace")

    def here(self) -> str:
        return place(self.text, self.next.position)

    def refused(self, wanted: str) -> InvalidSchema:
        found = repr(self.next.text[:40]) if self.next.text else "the end of the text"
        return InvalidSchema(f"{self.here()}: {wanted} belongs here, not {found}")


def whole_number(text: str) -> int:
    """A number in decimal, hexadecimal or octal writing."""
    if len(text) > 1 and text[0] == "0" and text[1] not in "xX":
        return int(text, 8)
    return int(text, 0)


def together(first: Value, second: Value) -> Items:
    before = first.values if isinstance(first, Items) else (first,)
    return Items((*before, *(second.values if isinstance(second, Items) else (second,))))


def with_special_options_last(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """`default` and `json_name` are no options proper, and Confluent writes them last."""
    special = [option for name in SPECIAL_OPTIONS for option in options if option.name == name]
    return (*(option for option in options if option.name not in SPECIAL_OPTIONS), *special)
