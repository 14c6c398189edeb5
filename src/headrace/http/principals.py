"""Who asks: the name that a request is known by, and how it was proved.

An access check puts a `Principal` into the request's scope; products read it from there to
decide in whose name they talk on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCOPE_KEY = "headrace.principal"


@dataclass(frozen=True, slots=True)
class Principal:
    """A name, and the password that proved it where one did; that is never shown."""

    name: str
    password: str | None = field(default=None, repr=False)


def principal_of(scope: Mapping[str, Any]) -> Principal | None:
    """Who sent this request; nobody where the server asks no one for a name."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Principal) else None
