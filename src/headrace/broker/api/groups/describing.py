"""The common part of ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from headrace.broker.api.registry import Call
from headrace.broker.authorized_operations import ON_GROUP
from headrace.broker.coordinators import Shard, when_committed
from headrace.errors import InvalidGroupId, KafkaError
from headrace.groups.epochs.group import EpochGroup, find_group
from headrace.groups.shard import GroupShard
from headrace.protocol.refusals import refused


class Described(Protocol):
    """The fields that the three responses have for each group."""

    group_id: str
    error_code: int
    error_message: str | None
    authorized_operations: int


D = TypeVar("D", bound=Described)
R = TypeVar("R")
G = TypeVar("G", bound=EpochGroup[Any, Any])


def describe_each(
    request: Any,
    call: Call,
    kind: type[G],
    describe: Callable[[G], D],
    new: type[D],
    response: Callable[[list[D]], R],
) -> R | Coroutine[Any, Any, R]:
    """Describe the groups of a request, or report for each why it cannot be described."""
    results = []
    shards: list[Shard[GroupShard]] = []
    for group_id in request.group_ids:
        try:
            if not group_id:
                raise InvalidGroupId("the group id is empty; name the group to describe")
            shard = call.broker.groups.shard_for(group_id)
            shards.append(shard)
            result = describe(find_group(shard.state, group_id, kind))
            if request.include_authorized_operations:
                result.authorized_operations = ON_GROUP
        except KafkaError as error:
            result = refused(new, group_id, error)
        results.append(result)
    return when_committed(shards, response(results))
