"""What the broker itself settles of a request to alter configs, before the controller sees it."""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from headrace.errors import InvalidRequest, KafkaError
from headrace.metadata.image import ResourceType


class Altered(Protocol):
    """A resource of AlterConfigs or IncrementalAlterConfigs."""

    resource_type: int
    resource_name: str


A = TypeVar("A", bound=Altered)


class Sorted(NamedTuple, Generic[A]):
    """The resources of a request by who deals with them, each with its place in the request."""

    refused: dict[int, KafkaError]
    loggers: dict[int, A]
    stored: dict[int, A]


def sort_out(resources: Sequence[A], node_id: int) -> Sorted[A]:
    """Refuse what makes no sense here, and keep loggers, whose levels are never stored, apart."""
    result: Sorted[A] = Sorted({}, {}, {})
    count = Counter((one.resource_type, one.resource_name) for one in resources)
    for place, resource in enumerate(resources):
        if count[resource.resource_type, resource.resource_name] > 1:
            result.refused[place] = InvalidRequest(
                "each resource may appear once in a request; put its changes together"
            )
            continue
        try:
            match resource.resource_type:
                case ResourceType.BROKER_LOGGER:
                    check_is_this_node(resource.resource_name, node_id)
                    result.loggers[place] = resource
                    continue
                case ResourceType.BROKER if resource.resource_name:
                    check_is_this_node(resource.resource_name, node_id)
        except KafkaError as error:
            result.refused[place] = error
        else:
            result.stored[place] = resource
    return result


def check_is_this_node(name: str, node_id: int) -> None:
    """A broker's own configs are asked of that broker."""
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidRequest(f"a broker is named by its number, not by {name!r}")
    if int(name) != node_id:
        raise InvalidRequest(f"this is broker {node_id}, not broker {name}; ask that broker itself")
