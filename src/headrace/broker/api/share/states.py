"""The common loop of the five ShareGroupState APIs, which brokers send to the share coordinator."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from headrace.errors import KafkaError
from headrace.protocol.refusals import refused
from headrace.runtime.eager import finish_each
from headrace.security.acls import Operation as AclOperation
from headrace.security.acls import ResourceType
from headrace.security.rights import for_request
from headrace.shares.state import SharePartitionKey, SharePartitionState

BROKER_RIGHTS = (for_request(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),)
"""The right that brokers need for these APIs."""

R = TypeVar("R")

Operation = Callable[[SharePartitionKey, Any], Coroutine[Any, Any, SharePartitionState]]


def _nothing(state: SharePartitionState) -> Mapping[str, Any]:
    return {}


async def serve_each(
    request: Any,
    new_result: Callable[..., R],
    new_row: type[Any],
    operation: Operation,
    fields: Callable[[SharePartitionState], Mapping[str, Any]] = _nothing,
) -> list[R]:
    """Run an operation for every partition of a request; `fields` shows the state in its row."""
    outcomes = iter(
        await finish_each(
            operation(SharePartitionKey(request.group_id, topic.topic_id, asked.partition), asked)
            for topic in request.topics
            for asked in topic.partitions
        )
    )
    return [
        new_result(
            topic.topic_id,
            [_row(new_row, asked, next(outcomes), fields) for asked in topic.partitions],
        )
        for topic in request.topics
    ]


def _row(
    new_row: type[Any],
    asked: Any,
    outcome: SharePartitionState | KafkaError,
    fields: Callable[[SharePartitionState], Mapping[str, Any]],
) -> Any:
    if isinstance(outcome, KafkaError):
        return refused(new_row, asked, outcome)
    return new_row(partition=asked.partition, **fields(outcome))
