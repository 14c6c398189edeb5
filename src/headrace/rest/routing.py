"""Routes as decorated methods: one line holds method, path, summary and types of an operation."""

import re
from collections.abc import Callable
from typing import Any

from headrace.http import operations
from headrace.http.operations import Method, Operation, Parameter
from headrace.rest.service import Service

_IN_PATH = re.compile(r"{(\w+)}")
_TEXTS = {
    "broker_id": "The broker.",
    "cluster_id": "The cluster.",
    "consumer_group_id": "The consumer group.",
    "consumer_id": "The member of the group.",
    "group": "The consumer group.",
    "instance": "The instance.",
    "name": "The name.",
    "partition": "The partition.",
    "partition_id": "The partition.",
    "topic": "The topic.",
    "topic_name": "The topic.",
    "transactional_id": "The transactional id.",
}
_NUMBERS = ("broker_id", "partition", "partition_id")


class Routes:
    """Base of route classes; operations keep the order of the methods."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def operations(self) -> list[Operation]:
        return operations.operations_of(self)


def operation(
    method: str, path: str, summary: str, *query: Parameter, **details: Any
) -> Callable[[Method], Method]:
    """Declare an operation of a method; `details` are further fields of `Operation`."""
    place, parameters = f"{method} {path}", (*path_parameters(path), *query)
    return operations.operation(place, *parameters, summary=summary, **details)


def path_parameters(path: str) -> list[Parameter]:
    return [
        Parameter(name, _TEXTS[name], "path", "integer" if name in _NUMBERS else "string")
        for name in _IN_PATH.findall(path)
    ]
