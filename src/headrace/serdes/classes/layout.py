"""Python expressions laid out as formatters lay them out, so that none of them moves a line.

What fits stands on one line. What does not is split at its outermost brackets, with a comma after
the last part: that comma keeps a formatter of any line length from joining the parts again.
"""

from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import combining, east_asian_width

WIDTH = 88
"""The shortest line length that formatters have by default."""

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Group:
    """Something with brackets and parts in them: `list[int]`, `field(default=1)`, `[1, 2]`."""

    head: str
    brackets: str
    parts: tuple["Expression", ...]
    flat_separator: str = ", "
    is_bare: bool = False
    """A short union, `A | B`: it has no brackets, and stays on its line."""


Expression: TypeAlias = str | Group


def flat(expression: Expression) -> str:
    """On one line."""
    if isinstance(expression, str):
        return expression
    inside = expression.flat_separator.join(flat(part) for part in expression.parts)
    if expression.is_bare:
        return inside
    return f"{expression.head}{expression.brackets[0]}{inside}{expression.brackets[1]}"


def width(text: str) -> int:
    """Columns of a text: some letters take two, and accents of their own none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(letter) else 1 + (east_asian_width(letter) in "WF") for letter in text
    )


def lay_out(expression: Expression, column: int, indent: str, tail: int = 0) -> str:
    """From a column on, with inner lines indented, and room for what follows on the last line."""
    line = flat(expression)
    if isinstance(expression, str) or expression.is_bare or column + width(line) + tail <= WIDTH:
        return line
    inner = indent + INDENT
    opening, closing = expression.brackets[0], expression.brackets[1]
    parts = "".join(f"{inner}{lay_out(part, len(inner), inner, 1)},\n" for part in expression.parts)
    return f"{expression.head}{opening}\n{parts}{indent}{closing}"


def keyword(name: str, value: Expression) -> Expression:
    """`name=value` as a part."""
    if isinstance(value, str):
        return f"{name}={value}"
    if value.is_bare:
        return f"{name}={flat(value)}"
    return Group(f"{name}={value.head}", value.brackets, value.parts, value.flat_separator)


def quoted(text: str) -> str:
    """A string in the quotes that formatters prefer: double, unless that needs more escapes."""
    body = text.encode("unicode_escape").decode() if not text.isprintable() else text
    body = body if not text.isprintable() else text.replace("\\", "\\\\")
    if text.count('"') > text.count("'"):
        return "'" + body.replace("'", "\\'") + "'"
    return '"' + body.replace('"', '\\"') + '"'


def quoted_bytes(value: bytes) -> str:
    body = "".join(
        chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in value
    )
    if value.count(b'"') > value.count(b"'"):
        return "b'" + body.replace("'", "\\'") + "'"
    return 'b"' + body.replace('"', '\\"') + '"'
