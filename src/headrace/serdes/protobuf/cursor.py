"""A cursor over the tokens of a .proto text."""

from headrace.serdes.protobuf.tokens import Kind, Token, place, tokens_of, unquoted
from headrace.serdes.schemas import InvalidSchema

DEPTH_MAX = 64


class Cursor:
    """Position and nesting depth while parsing a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.next = self.tokens[0]
        self.depth = 0

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
        """Parse a name that may have a package and a leading dot."""
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
        """Parse a string, or several adjacent ones."""
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
    """Parse a decimal, hexadecimal or octal number."""
    if len(text) > 1 and text[0] == "0" and text[1] not in "xX":
        return int(text, 8)
    return int(text, 0)
