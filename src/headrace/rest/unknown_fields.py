"""Fields that a body of version 3 does not have: refused, as what is misspelt would be lost."""

import re

import msgspec

from headrace.rest.errors import RestError, bad_request

_UNKNOWN = re.compile(r"unknown field `(?P<field>.*?)`(?P<place> - at `\$[^`]*`)?\Z", re.DOTALL)
_SHOWN_MAX = 80


def refusal_of(error: Exception, hint: str = "") -> RestError | None:
    """The answer to a field that nobody knows; None if something else is wrong."""
    found = _UNKNOWN.search(str(error)) if isinstance(error, msgspec.ValidationError) else None
    if found is None:
        return None
    field = found["field"][:_SHOWN_MAX]
    return bad_request(f'Unrecognized field "{field}"{found["place"] or ""}{hint}')


def names(error: Exception, field: str) -> bool:
    """Whether it is this field, at the top of the body, that nobody knows."""
    return str(error).endswith(f"unknown field `{field}`")
