"""Names of principals out of names of Kerberos, such as `ada/admin@EXAMPLE.COM`.

The rules are those of `sasl.kerberos.principal.to.local.rules`: `DEFAULT` takes the first part of a
name of the default realm, and `RULE:[n:format](pattern)s/from/to/g/L` rewrites names of n parts.
The first rule that applies counts.
"""

import re
from collections.abc import Sequence

import msgspec

from headrace.errors import HeadraceError, InvalidConfig

_CONFIG = "sasl.kerberos.principal.to.local.rules"
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<parts>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d)")
_SPECIAL = re.compile(r"[/@]")
_GROUP = re.compile(r"\$(\d)")


class NoRule(HeadraceError):
    """A name to which no rule applies."""


class _Rule(msgspec.Struct, frozen=True):
    parts: int
    """The number of parts, without the realm; -1 for DEFAULT."""
    format: str = ""
    match: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    replaces_all: bool = False
    case: str = ""

    def apply(self, parameters: Sequence[str], default_realm: str | None) -> str | None:
        """Return the name by this rule; None if it does not apply."""
        if self.parts < 0:
            return parameters[1] if parameters[0] == default_realm else None
        if len(parameters) - 1 != self.parts:
            return None
        base = _PARAMETER.sub(lambda found: _at(parameters, int(found[1])), self.format)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        name = base
        if self.pattern is not None:
            name = self.pattern.sub(self.replacement, base, count=0 if self.replaces_all else 1)
        if _SPECIAL.search(name):
            raise NoRule(f"the name {name} by a rule of {_CONFIG} has a / or @")
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class KerberosRules:
    """The rules of one listener."""

    def __init__(self, rules: Sequence[str], default_realm: str | None) -> None:
        self._rules = [_parsed(text.strip()) for text in rules]
        self._default_realm = default_realm

    def short_name(self, principal: str) -> str:
        """Return the name for a principal of Kerberos; raise `NoRule` if no rule applies."""
        found = _NAME.fullmatch(principal)
        if found is None:
            raise NoRule(f"{principal} is not a name of Kerberos")
        first, second, realm = found.groups()
        parameters = (realm, first) if second is None else (realm, first, second)
        for rule in self._rules:
            name = rule.apply(parameters, self._default_realm)
            if name:
                return name
        raise NoRule(f"no rule of {_CONFIG} applies to {principal}")


def _parsed(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise InvalidConfig(f"{_CONFIG}: {text!r} is not a rule")
    if found["default"]:
        return _Rule(-1)
    try:
        match = re.compile(found["match"]) if found["match"] is not None else None
        pattern = re.compile(found["from"]) if found["from"] is not None else None
    except re.error as error:
        raise InvalidConfig(f"{_CONFIG}: {text!r}: {error}") from error
    return _Rule(
        int(found["parts"] or 0),
        found["format"],
        match,
        pattern,
        _GROUP.sub(r"\\g<\1>", (found["to"] or "").replace("\\", r"\\")),
        found["all"] is not None,
        found["case"] or "",
    )


def _at(parameters: Sequence[str], number: int) -> str:
    if number >= len(parameters):
        raise NoRule(f"a rule of {_CONFIG} names part {number}, which the principal does not have")
    return parameters[number]
