"""Spark's DDL text of a schema, read into an Arrow schema without a JVM.

`id BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP COMMENT 'when'`: names may be quoted by
backticks, types are Spark's with all their spellings, struct fields are written `name: type`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.spark.decoding.errors import InvalidSchema

TOKEN = re.compile(
    r"\s*(?:(?P<name>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>\w+)|(?P<sign>[<>(),:])|(?P<end>$))"
)

TIMESTAMP = pa.timestamp("us", "UTC")
DEPTH_MAX = 32
DIGITS_MAX = 38

SIMPLE: dict[str, Any] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
TEXTS = ("CHAR", "CHARACTER", "VARCHAR")


def schema_of(ddl: str) -> Any:
    """The Arrow schema that this text declares, in Spark's types.

    A column that is NOT NULL is not nullable here; who makes rows of bad payloads must loosen it.
    """
    reader = Reader(ddl)
    fields = reader.fields(end="", colon_needed=False)
    return pa.schema(fields)


def ddl_of(type_: Any) -> str:
    """How Spark writes this Arrow type."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{field.name}: {ddl_of(field.type)}' for field in type_)}>"
    if pa.types.is_map(type_):
        return f"MAP<{ddl_of(type_.key_type)}, {ddl_of(type_.item_type)}>"
    if pa.types.is_list(type_):
        return f"ARRAY<{ddl_of(type_.value_type)}>"
    return NAMES[type_]


NAMES: dict[Any, str] = {
    pa.null(): "VOID",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; `kind` is name, text, word, sign or end."""

    kind: str
    text: str
    position: int


class Reader:
    """Reads a schema's text from left to right."""

    def __init__(self, ddl: str) -> None:
        self.ddl = ddl
        self.tokens = list(tokens(ddl))
        self.index = 0

    def fields(self, *, end: str, colon_needed: bool, depth: int = 0) -> list[Any]:
        """Columns, or a struct's fields, up to and including the sign that ends them."""
        if self.took(end):
            if not end:
                raise self.refusal(
                    "declares no columns; write for example `id BIGINT, name STRING`"
                )
            return []
        found: list[Any] = []
        while True:
            field = self.field(colon_needed=colon_needed, depth=depth)
            if any(field.name == other.name for other in found):
                raise self.refusal(f"has the column `{field.name}` twice")
            found.append(field)
            if self.took(end):
                return found
            self.expect(",")

    def field(self, *, colon_needed: bool, depth: int) -> Any:
        name = self.name()
        if not self.took(":") and colon_needed:
            raise self.refusal("needs a `:` between a struct field's name and its type")
        type_ = self.type(depth)
        is_nullable = True
        comment = None
        while self.token.kind == "word" and self.token.text.upper() in ("NOT", "COMMENT"):
            if self.word() == "NOT":
                if self.word() != "NULL":
                    raise self.refusal("has NOT without NULL")
                is_nullable = False
            else:
                comment = self.text()
        metadata = {"comment": comment} if comment is not None else None
        return pa.field(name, type_, nullable=is_nullable, metadata=metadata)

    def type(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.refusal(f"nests types more than {DEPTH_MAX} deep")
        word = self.word()
        match word:
            case "ARRAY":
                self.expect("<")
                element = self.type(depth + 1)
                self.expect(">")
                return pa.list_(pa.field("element", element))
            case "MAP":
                self.expect("<")
                key = self.type(depth + 1)
                self.expect(",")
                value = self.type(depth + 1)
                self.expect(">")
                return pa.map_(key, value)
            case "STRUCT":
                self.expect("<")
                return pa.struct(self.fields(end=">", colon_needed=False, depth=depth + 1))
            case _ if word in DECIMALS:
                return self.decimal()
            case _ if word in TEXTS:
                self.numbers()  # Spark reads CHAR(n) and VARCHAR(n) of outside data as STRING.
                return pa.string()
            case _ if word in SIMPLE:
                return SIMPLE[word]
        raise self.refusal(
            f"has the type {word}, which payloads cannot be read as; "
            f"there are {', '.join(dict.fromkeys(NAMES.values()))}, DECIMAL, ARRAY, MAP, STRUCT"
        )

    def decimal(self) -> Any:
        numbers = self.numbers()
        precision, scale = (numbers + [10, 0][len(numbers) :])[:2]
        if not 1 <= precision <= DIGITS_MAX or not 0 <= scale <= precision or len(numbers) > 2:
            raise self.refusal(f"has a DECIMAL that is not within DECIMAL({DIGITS_MAX},scale)")
        return pa.decimal128(precision, scale)

    def numbers(self) -> list[int]:
        found: list[int] = []
        if self.took("("):
            while True:
                word = self.word()
                if not (word.isascii() and word.isdigit() and len(word) < 10):
                    raise self.refusal(f"has {word} where a number belongs")
                found.append(int(word))
                if self.took(")"):
                    break
                self.expect(",")
        return found

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def took(self, sign: str) -> bool:
        """Step over this sign, or over the end if it is empty, if it is here."""
        if self.token.kind not in ("sign", "end") or self.token.text != sign:
            return False
        if sign:
            self.index += 1
        return True

    def expect(self, sign: str) -> None:
        if not self.took(sign):
            raise self.refusal(f"needs a `{sign}`")

    def name(self) -> str:
        token = self.token
        if token.kind not in ("name", "word"):
            raise self.refusal("needs a column's name")
        self.index += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text

    def word(self) -> str:
        token = self.token
        if token.kind != "word":
            raise self.refusal("needs a type")
        self.index += 1
        return token.text.upper()

    def text(self) -> str:
        token = self.token
        if token.kind != "text":
            raise self.refusal("needs a quoted comment")
        self.index += 1
        return re.sub(r"\\(.)", r"\1", token.text[1:-1])

    def refusal(self, why: str) -> InvalidSchema:
        shown = self.ddl if len(self.ddl) <= 200 else f"{self.ddl[:200]}..."
        return InvalidSchema(f"the schema {why}, near character {self.token.position}: {shown}")


def tokens(ddl: str) -> Iterator[Token]:
    position = 0
    while True:
        match = TOKEN.match(ddl, position)
        if match is None or match.lastgroup is None:
            start = len(ddl) - len(ddl[position:].lstrip())
            raise InvalidSchema(f"the schema has {ddl[start]!r} at character {start}: {ddl[:200]}")
        kind = match.lastgroup
        yield Token(kind, match[kind], match.start(kind))
        if kind == "end":
            return
        position = match.end()
