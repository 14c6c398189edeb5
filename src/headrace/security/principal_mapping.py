"""Rules from the subject of a client certificate to the name of its principal.

`ssl.principal.mapping.rules` is a list of `DEFAULT`, which keeps the subject, and of
`RULE:pattern/replacement/[LU]`. The first rule whose pattern matches the whole subject applies; `L`
and `U` change its case. Patterns and replacements are Java's, as far as Python reads the same.
"""

import re

import msgspec

from headrace.errors import HeadraceError, InvalidConfig

_CONFIG = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)


class NoMatchingRule(HeadraceError):
    """A subject to which no rule applies; its connection is closed."""


class _Rule(msgspec.Struct, frozen=True):
    pattern: re.Pattern[str] | None
    """None for DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(lambda match: _expanded(self.replacement, match), subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str = "DEFAULT") -> None:
        """Parse the rules; raise `InvalidConfig` for a malformed one."""
        self._text = rules
        texts = [match[1] for match in _SPLITTER.finditer(rules.strip())]
        self._rules = [_parse(text) for text in texts if text]

    def name_of(self, subject: str) -> str:
        """Return the name of the principal; raise `NoMatchingRule` if no rule applies."""
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of {_CONFIG} applies to {subject}")


def _parse(text: str) -> _Rule:
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        raise InvalidConfig(
            f"{_CONFIG}: {text!r} is not a rule; write DEFAULT or RULE:pattern/replacement/"
        )
    if match[1] is not None:
        return _Rule(None)
    try:
        return _Rule(re.compile(match[2]), match[4], match[6])
    except re.error as error:
        raise InvalidConfig(f"{_CONFIG}: the pattern of {text!r} is invalid: {error}") from error


def _expanded(template: str, match: re.Match[str]) -> str:
    """Return a replacement of Java's form; a reference to no group stays as it is."""
    text, position = [], 0
    while position < len(template):
        letter = template[position]
        position += 1
        if letter == "\\" and position < len(template):
            text.append(template[position])
            position += 1
        elif letter == "$" and template[position : position + 1].isdecimal():
            position, group = _group(template, position, match.re.groups)
            text.append(f"${group}" if group > match.re.groups else match[group] or "")
        else:
            text.append(letter)
    return "".join(text)


def _group(template: str, position: int, groups: int) -> tuple[int, int]:
    """Read the longest number of a group that exists; return the position behind it, and it."""
    group = int(template[position])
    position += 1
    while template[position : position + 1].isdecimal():
        longer = group * 10 + int(template[position])
        if longer > groups:
            break
        group = longer
        position += 1
    return position, group
