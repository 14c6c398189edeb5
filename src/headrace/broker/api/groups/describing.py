"""The common part of ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from headrace.broker.api.registry import Call
from headrace.broker.authorized_operations import on_group
from headrace.broker.coordinators import Shard, when_committed
from headrace.errors import InvalidGroupId, KafkaError, TopicAuthorizationFailed
from headrace.groups.epochs.group import EpochGroup, find_group
from headrace.groups.shard import GroupShard
from headrace.protocol.refusals import refused
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Lacking, Right, for_each

DESCRIBING_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.GROUP),
    Right(
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        Lacking.REFUSES_RESOURCE,
        "all topics of a group",
        answer="`TOPIC_AUTHORIZATION_FAILED` for the group",
    ),
)


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
    topics_of: Callable[[D], Iterable[str]],
) -> R | Coroutine[Any, Any, R]:
    """Describe the groups of a request, or report for each why it cannot be described.

    `topics_of` returns the topics that a description shows: the client must be allowed to see all
    of them.
    """
    results = []
    access = call.access
    shards: list[Shard[GroupShard]] = []
    for group_id in request.group_ids:
        try:
            access.check(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            if not group_id:
                raise InvalidGroupId("the group id is empty; name the group to describe")
            shard = call.broker.groups.shard_for(group_id)
            shards.append(shard)
            result = describe(find_group(shard.state, group_id, kind))
            topics = () if access.is_open else topics_of(result)
            if not access.allows_all(Operation.DESCRIBE, ResourceType.TOPIC, topics):
                raise TopicAuthorizationFailed(
                    "the group has topics that the client may not describe"
                )
            if request.include_authorized_operations:
                result.authorized_operations = on_group(access, group_id)
        except KafkaError as error:
            result = refused(new, group_id, error)
        results.append(result)
    return when_committed(shards, response(results))
