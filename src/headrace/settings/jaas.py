"""The text of JAAS configurations, in which Kafka keeps logins and their secrets.

An entry is a login module, a control flag, options and a semicolon:

    org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="secret";

Kafka reads the text with Java's StreamTokenizer, so quotes are single or double, a backslash
escapes a character within quotes, and `//`, `/* */` and a single slash begin comments.
"""

from collections.abc import Iterator, Mapping

import msgspec

from headrace.errors import InvalidConfig

SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
_QUOTES = "\"'"
_SYMBOLS = ";="
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"


class JaasEntry(msgspec.Struct, frozen=True):
    """One login module and its options."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        """Show the names of options only: their values are secrets."""
        return f"JaasEntry({self.module}, {', '.join(self.options)})"


def parse_jaas(text: str) -> list[JaasEntry]:
    """Return the entries of a text; errors repeat no value, because it may be a secret."""
    tokens = list(_tokens(text))
    entries: list[JaasEntry] = []
    position = 0
    while position < len(tokens):
        entry, position = _entry(tokens, position)
        entries.append(entry)
    if not entries:
        raise InvalidConfig("the JAAS configuration names no login module")
    return entries


def sole_entry(text: str) -> JaasEntry:
    """Return the entry of a text that must have exactly one, as `sasl.jaas.config` does."""
    entries = parse_jaas(text)
    if len(entries) != 1:
        raise InvalidConfig(f"the JAAS configuration has {len(entries)} entries instead of one")
    return entries[0]


def jaas_text(module: str, **options: str) -> str:
    """Return the text of one entry with a required module."""
    words = [module, "required", *(f"{name}={_in_quotes(one)}" for name, one in options.items())]
    return " ".join(words) + ";"


def _in_quotes(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class _Token(msgspec.Struct, frozen=True):
    text: str
    is_symbol: bool = False


def _entry(tokens: list[_Token], start: int) -> tuple[JaasEntry, int]:
    """Read one entry; return it with the position after its semicolon."""
    end = next((at for at in range(start, len(tokens)) if _is_symbol(tokens[at], ";")), len(tokens))
    if end == len(tokens):
        raise InvalidConfig("an entry of the JAAS configuration does not end with a semicolon")
    words = tokens[start:end]
    if len(words) < 2 or words[0].is_symbol or words[1].text.lower() not in _FLAGS:
        raise InvalidConfig(
            "an entry of the JAAS configuration must begin with a login module and one of "
            + ", ".join(_FLAGS)
        )
    options: dict[str, str] = {}
    for number, at in enumerate(range(2, len(words), 3), 1):
        option = words[at : at + 3]
        is_whole = len(option) == 3 and _is_symbol(option[1], "=")
        if not is_whole or option[0].is_symbol or option[2].is_symbol:
            raise InvalidConfig(
                f"option {number} of the JAAS configuration is not of the form name=value"
            )
        options[option[0].text] = option[2].text
    return JaasEntry(words[0].text, options), end + 1


def _is_symbol(token: _Token, symbol: str) -> bool:
    return token.is_symbol and token.text == symbol


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        one = text[position]
        if one <= " ":
            position += 1
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            position = len(text) if end < 0 else end + 2
        elif one == "/":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif one in _QUOTES:
            content, position = _quoted(text, position)
            yield _Token(content)
        elif one in _SYMBOLS:
            yield _Token(one, is_symbol=True)
            position += 1
        else:
            start = position
            while position < len(text) and not _ends_word(text[position]):
                position += 1
            yield _Token(text[start:position])


def _ends_word(one: str) -> bool:
    return one <= " " or one in _QUOTES or one in _SYMBOLS or one == "/"


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Read a quoted text; return its content with the position after it."""
    content: list[str] = []
    position = start + 1
    while position < len(text) and text[position] not in (text[start], "\n", "\r"):
        if text[position] == "\\" and position + 1 < len(text):
            one, position = _escaped(text, position + 1)
            content.append(one)
        else:
            content.append(text[position])
            position += 1
    if position == len(text) or text[position] != text[start]:
        raise InvalidConfig("a quoted value of the JAAS configuration has no end")
    return "".join(content), position + 1


def _escaped(text: str, position: int) -> tuple[str, int]:
    """Read the character after a backslash, or up to three octal digits."""
    one = text[position]
    if one not in _OCTAL:
        return _ESCAPES.get(one, one), position + 1
    digits_max = 3 if one <= "3" else 2
    end = position
    while end < min(position + digits_max, len(text)) and text[end] in _OCTAL:
        end += 1
    return chr(int(text[position:end], 8)), end
