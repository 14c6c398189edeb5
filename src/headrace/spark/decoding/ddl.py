"""Spark's DDL text of a schema, read into an Arrow schema without a JVM.

`id BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP COMMENT 'when'`: names may be quoted by
backticks, types are Spark's with all their spellings, struct fields are written `name: type`.
"""

from typing import Any

import pyarrow as pa

from headrace.serdes.sql_tokens import SqlSyntaxError, Token, tokens
from headrace.spark.decoding.errors import InvalidSchema

_SIGNS = ("<", ">", "(", ")", ",", ":", "<>")

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
    """Parse DDL to an Arrow schema; a NOT NULL column is not nullable."""
    reader = Reader(ddl)
    fields = reader.fields(end="", colon_needed=False)
    return pa.schema(fields)


def ddl_of(type_: Any) -> str:
    """Format an Arrow type as Spark does."""
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


class Reader:
    """Parses a schema's text from left to right."""

    def __init__(self, ddl: str) -> None:
        self.ddl = ddl
        self.tokens = _tokens(ddl)
        self.index = 0

    def fields(self, *, end: str, colon_needed: bool, depth: int = 0) -> list[Any]:
        """Parse columns, or a struct's fields, including the sign that ends them."""
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
        while self.token.upper in ("NOT", "COMMENT"):
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
            case "STRUCT" if self.took("<>"):
                return pa.struct([])
            case "STRUCT":
                self.expect("<")
                return pa.struct(self.fields(end=">", colon_needed=False, depth=depth + 1))
            case _ if word in DECIMALS:
                return self.decimal()
            case _ if word in TEXTS:
                self.numbers()  # Spark reads CHAR(n) and VARCHAR(n) of external data as STRING.
                return pa.string()
            case _ if word in SIMPLE:
                return SIMPLE[word]
        raise self.refusal(
            f"has the type {word}, which payloads cannot have; "
            f"use {', '.join(dict.fromkeys(NAMES.values()))}, DECIMAL, ARRAY, MAP or STRUCT"
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
        """Skip this sign if it is next; an empty sign is the end."""
        if self.token.kind not in ("mark", "end") or self.token.text != sign:
            return False
        if sign:
            self.index += 1
        return True

    def expect(self, sign: str) -> None:
        if not self.took(sign):
            raise self.refusal(f"needs a `{sign}`")

    def name(self) -> str:
        token = self.token
        if token.kind not in ("quoted", "word", "number") or not token.value:
            raise self.refusal("needs a column's name")
        self.index += 1
        return token.value

    def word(self) -> str:
        token = self.token
        if token.kind not in ("word", "number"):
            raise self.refusal("needs a type")
        self.index += 1
        return token.text.upper()

    def text(self) -> str:
        token = self.token
        if token.kind != "text":
            raise self.refusal("needs a quoted comment")
        self.index += 1
        return token.value

    def refusal(self, why: str) -> InvalidSchema:
        shown = self.ddl if len(self.ddl) <= 200 else f"{self.ddl[:200]}..."
        return InvalidSchema(f"the schema {why}, near character {self.token.start}: {shown}")


def _tokens(ddl: str) -> list[Token]:
    """Return the tokens, and a last one of the kind `end`."""
    try:
        found = tokens(ddl)
    except SqlSyntaxError as error:
        raise InvalidSchema(f"the schema cannot be read: {error}: {ddl[:200]}") from error
    for token in found:
        if token.kind == "mark" and token.text not in _SIGNS:
            raise InvalidSchema(
                f"the schema has {token.text!r} at character {token.start}: {ddl[:200]}"
            )
    return [*found, Token("end", "", "", len(ddl))]
