"""The rights that an API needs, as its handler declares them beside its checks.

The declarations are printed into the reference (`tools/rights.py`), and a test calls every API with
and without them.
"""

from enum import Enum
from typing import NamedTuple

from headrace.security.acls import Operation, ResourceType


class Lacking(Enum):
    """The effect of a missing right."""

    REFUSES_REQUEST = "the request is refused"
    REFUSES_RESOURCE = "the resource is refused"
    LEAVES_OUT = "left out of the response"
    SHOWS_NOTHING = "authorized operations are 0"


class Alternative(NamedTuple):
    """A right that serves as well as another one."""

    operation: Operation
    resource: ResourceType
    is_any: bool = False
    """True if the right to any resource of the type is enough."""


class Right(NamedTuple):
    """A right that an API needs, and the effect of its absence."""

    operation: Operation
    resource: ResourceType
    lacking: Lacking
    note: str = ""
    """The requests that need the right, if not all of them do."""
    instead: tuple[Alternative, ...] = ()
    answer: str = ""
    """The answer without the right, if it is not the error of the resource's type."""


Rights = tuple[Right, ...]


def for_request(
    operation: Operation,
    resource: ResourceType,
    note: str = "",
    instead: tuple[Alternative, ...] = (),
) -> Right:
    """Declare a right without which a request is refused."""
    return Right(operation, resource, Lacking.REFUSES_REQUEST, note, instead)


def for_each(
    operation: Operation,
    resource: ResourceType,
    note: str = "",
    instead: tuple[Alternative, ...] = (),
) -> Right:
    """Declare a right without which a resource of the request is refused."""
    return Right(operation, resource, Lacking.REFUSES_RESOURCE, note, instead)


def to_list(
    operation: Operation,
    resource: ResourceType,
    note: str = "",
    instead: tuple[Alternative, ...] = (),
) -> Right:
    """Declare a right without which a resource is left out of the response."""
    return Right(operation, resource, Lacking.LEAVES_OUT, note, instead)
