"""Java `.properties` text, the format of `server.properties` and `meta.properties`.

The rules are Java's: `#` and `!` open comments, a key ends at the first unescaped `=`, `:` or
blank, a line that ends in an odd number of backslashes continues in the next one, and
backslash escapes include `\\uXXXX`. Later lines win over earlier ones.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headrace.errors import InvalidConfig

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}


class Property(NamedTuple):
    """One property, and the line of the file that it begins on."""

    name: str
    value: str
    line: int


def entries(text: str) -> Iterator[Property]:
    """Every property of a file, in the order of the file."""
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            yield Property(_unescape(key), _unescape(value), number)
        except InvalidConfig as error:
            raise InvalidConfig(f"line {number}: {error}") from error


def parse(text: str) -> dict[str, str]:
    """Every property of a file by name."""
    return {entry.name: entry.value for entry in entries(text)}


def read(path: str) -> dict[str, str]:
    """The properties of a file; raises with the reason if the file cannot be read."""
    return {entry.name: entry.value for entry in read_entries(path)}


def read_entries(path: str) -> list[Property]:
    """Like `read`, with line numbers."""
    try:
        with open(path, encoding="utf-8") as file:
            return list(entries(file.read()))
    except OSError as error:
        raise InvalidConfig(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is not UTF-8 text; save it as such") from error
    except InvalidConfig as error:
        raise InvalidConfig(f"{path} {error}") from error


def render(properties: Mapping[str, str], comment: str = "") -> str:
    """Text that `parse`, and Java, read back as the same properties."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"{_escape_key(key)}={_escape(value)}" for key, value in properties.items()]
    return "".join(line + "\n" for line in lines)


def parse_assignment(assignment: str) -> tuple[str, str]:
    """A `name=value` pair from a command line."""
    name, separator, value = assignment.partition("=")
    if not separator or not name.strip():
        raise InvalidConfig(f"{assignment!r} is not of the form name=value")
    return name.strip(), value.strip()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, with continuation lines joined, and where they begin."""
    pending = ""
    start = 0
    continues = False
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, raw in enumerate(lines, 1):
        line = raw.lstrip(_BLANKS)
        if not continues and (not line or line[0] in "#!"):
            continue
        start = start if continues else number
        trailing = len(line) - len(line.rstrip("\\"))
        continues = trailing % 2 == 1
        pending += line[:-1] if continues else line
        if not continues:
            yield start, pending
            pending = ""
    if pending:
        yield start, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value, still escaped; blanks around one separator do not count."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANKS)
    return line[:position], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\":
            parts.append(char)
            position += 1
        elif text[position + 1 : position + 2] == "u":
            parts.append(_code_point(text[position + 2 : position + 6]))
            position += 6
        else:
            escaped = text[position + 1 : position + 2]
            parts.append(_ESCAPES.get(escaped, escaped))
            position += 2
    return _join_surrogates("".join(parts))


def _code_point(digits: str) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise InvalidConfig(f"\\u{digits} in a properties file is not four hexadecimal digits")
    return chr(int(digits, 16))


def _join_surrogates(text: str) -> str:
    """Java writes a character beyond the first plane as two escapes."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str) -> str:
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    return "\\" + escaped if escaped.startswith((" ", "#", "!")) else escaped


def _escape_key(key: str) -> str:
    escaped = "".join(_ESCAPED.get(char, char) for char in key)
    return "".join("\\" + char if char in "=: #!" else char for char in escaped)
