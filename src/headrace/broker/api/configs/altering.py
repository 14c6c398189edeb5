"""The common part of AlterConfigs and IncrementalAlterConfigs: what the broker itself decides.

The controller stores the configs. The broker checks the resources first, and changes the levels of
loggers, which are never stored.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.broker.api.registry import Call
from headrace.controller.requests import error_in
from headrace.errors import InvalidConfig, InvalidRequest, InvalidTls, KafkaError
from headrace.metadata.image import ResourceType
from headrace.security import acls
from headrace.security.acls import Operation
from headrace.security.rights import for_each

ALTERING_RIGHTS = (
    for_each(Operation.ALTER_CONFIGS, acls.ResourceType.TOPIC, "topics"),
    for_each(Operation.ALTER_CONFIGS, acls.ResourceType.GROUP, "groups"),
    for_each(Operation.ALTER_CONFIGS, acls.ResourceType.CLUSTER, "everything else"),
)

R = TypeVar("R")


async def alter_each(
    request: Any,
    call: Call,
    new_row: Callable[..., R],
    alter_logger: Callable[[Any], KafkaError | None],
) -> list[R]:
    """Alter the resources of a request, and return a row of the response for each of them."""
    resources = request.resources
    names = Counter((one.resource_type, one.resource_name) for one in resources)
    errors: dict[int, KafkaError | None] = {}
    stored = []
    for place, one in enumerate(resources):
        try:
            if names[one.resource_type, one.resource_name] > 1:
                raise InvalidRequest(
                    "each resource may appear once in a request; put its changes together"
                )
            if one.resource_type == ResourceType.BROKER and one.resource_name:
                check_is_this_node(one.resource_name, call.broker.node_id)
                _check_certificates(call, one.configs)
        except KafkaError as error:
            errors[place] = error
        else:
            if one.resource_type == ResourceType.BROKER_LOGGER:
                errors[place] = alter_logger(one)
            else:
                stored.append(place)
    if stored:
        wanted = type(request)([resources[place] for place in stored], request.validate_only)
        response = await call.ask_controller(wanted)
        errors |= dict(zip(stored, map(error_in, response.responses), strict=True))
    return [_row(new_row, one, errors[place]) for place, one in enumerate(resources)]


def _check_certificates(call: Call, configs: Any) -> None:
    """Raise unless this node can use the keys and certificates of changed listeners.

    A client without the right is refused by the controller, and must not have files read here.
    """
    broker = call.broker
    if broker.tls is None:
        return
    if not call.access.allows_on_cluster(Operation.ALTER_CONFIGS, is_audited=False):
        return
    changes = {one.name: one.value for one in configs if one.value is not None}
    try:
        broker.tls.check(broker.settings, changes)
    except (InvalidTls, InvalidConfig) as error:
        raise InvalidRequest(str(error)) from error


def _row(new_row: Callable[..., R], resource: Any, error: KafkaError | None) -> R:
    return new_row(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def check_is_this_node(name: str, node_id: int) -> None:
    """Reject a request for the configs of another broker."""
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidRequest(f"a broker is named by its number, not by {name!r}")
    if int(name) != node_id:
        raise InvalidRequest(
            f"this is broker {node_id}, not broker {name}; send the request to that broker"
        )
