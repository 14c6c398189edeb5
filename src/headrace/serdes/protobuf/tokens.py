"""Splits a .proto text into words, numbers, strings and signs, without comments and blanks."""

import re
from enum import Enum, auto
from typing import NamedTuple

from headrace.serdes.schemas import InvalidSchema

TOKEN = re.compile(
    r"""
    (?P<blank>(?:\s|//[^\n]*|/\*.*?\*/|\ufeff)+)
    | (?P<unclosed>/\*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>\.?[0-9](?:[eE][+-]|[A-Za-z0-9_.])*)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<sign>[^\w\s"'])
    """,
    re.VERBOSE | re.DOTALL,
)

ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
ESCAPED = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


class Kind(Enum):
    WORD = auto()
    NUMBER = auto()
    STRING = auto()
    SIGN = auto()
    END = auto()


KINDS: dict[str | None, Kind] = {
    "word": Kind.WORD, "number": Kind.NUMBER, "string": Kind.STRING, "sign": Kind.SIGN,
    "unclosed": Kind.END,
}  # fmt: skip
"""Blanks have no kind. An unclosed comment ends the text."""


class Token(NamedTuple):
    kind: Kind
    text: str
    position: int


def tokens_of(text: str) -> list[Token]:
    """Return all tokens, followed by an END token."""
    tokens = []
    position = 0
    for found in TOKEN.finditer(text):
        start, end = found.span()
        if start != position:
            break
        position = end
        kind = KINDS.get(found.lastgroup)
        if kind is Kind.END:
            raise InvalidSchema(f"{place(text, start)}: the comment has no end")
        if kind is not None:
            tokens.append(Token(kind, text[start:end], start))
    if position < len(text):
        raise InvalidSchema(f"{place(text, position)}: invalid character")
    tokens.append(Token(Kind.END, "", len(text)))
    return tokens


def place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, column {column}"


def unquoted(token: str) -> bytes:
    """Return the bytes of a string literal."""
    return ESCAPE.sub(unescaped, token[1:-1].encode())


def unescaped(found: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, sign = found.groups()
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        return chr(min(int(short or long, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
    return ESCAPED.get(sign, sign)
