"""States of share groups at the share coordinator: initialized with a group, deleted with it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.broker.coordinators import Shard
from headrace.errors import KafkaError, UnknownTopicOrPartition
from headrace.groups.share.protocol import share_group
from headrace.groups.share.states import Forgetting, Partitions, forget_all, forgotten, initialized
from headrace.protocol.uuids import Uuid, to_text
from headrace.runtime.eager import finish_each
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.broker.shares.persister import SharePersister
    from headrace.groups.shard import GroupShard
    from headrace.metadata.image import MetadataImage

_log = logging.getLogger(__name__)

Refusals = Mapping[tuple[Uuid, int], KafkaError]

_STATES_PER_TURN = 100
"""The number of states that are written in one turn of the event loop."""


async def begin_states(
    states: "SharePersister",
    shard: "Shard[GroupShard]",
    group_id: str,
    state_epoch: int,
    offsets: Mapping[Uuid, Mapping[int, int]],
) -> Refusals:
    """Initialize states at these offsets and record which are; returns errors of the others.

    The caller passes the partitions with errors to `not_initialized` after it has answered them.
    """
    done: dict[Uuid, set[int]] = {}
    refused: dict[tuple[Uuid, int], KafkaError] = {}
    wanted = {
        SharePartitionKey(group_id, topic_id, partition): offset
        for topic_id, found in offsets.items()
        for partition, offset in found.items()
    }
    outcomes = await _each(
        list(wanted), lambda key: states.initialize(key, state_epoch, wanted[key])
    )
    for (_, topic_id, partition), error in outcomes.items():
        if error is None:
            done.setdefault(topic_id, set()).add(partition)
            continue
        _log.warning(
            "share partition state not initialized",
            extra={
                "group": group_id,
                "topic_id": to_text(topic_id),
                "partition": partition,
                "error": str(error),
            },
        )
        refused[topic_id, partition] = error
    begun = {topic_id: frozenset(partitions) for topic_id, partitions in done.items()}
    await shard.applied(initialized(shard.state, group_id, begun))
    return refused


async def forget_states(
    states: "SharePersister", shard: "Shard[GroupShard]", group_id: str, partitions: Partitions
) -> Mapping[Uuid, KafkaError]:
    """Delete states and record the topics without any; returns errors of the other topics."""
    keys = [
        SharePartitionKey(group_id, topic_id, partition)
        for topic_id, numbers in partitions.items()
        for partition in numbers
    ]
    outcomes = await _each(keys, states.delete)
    refused = {
        key.topic_id: error
        for key, error in outcomes.items()
        if error is not None and not isinstance(error, UnknownTopicOrPartition)  # Gone with it.
    }
    gone = [topic_id for topic_id in partitions if topic_id not in refused]
    await shard.applied(forgotten(shard.state, group_id, gone))
    return refused


async def forget_group(
    states: "SharePersister", shard: "Shard[GroupShard]", group_id: str, image: "MetadataImage"
) -> None:
    """Delete all states of a share group that is about to be deleted."""
    effects = forget_all(share_group(shard.state, group_id), image)
    forgetting: Forgetting = await shard.applied(effects)
    refused = await forget_states(states, shard, group_id, forgetting.partitions)
    if refused:
        raise next(iter(refused.values()))


async def _each(
    keys: Sequence[SharePartitionKey],
    operation: Callable[[SharePartitionKey], Coroutine[Any, Any, None]],
) -> dict[SharePartitionKey, KafkaError | None]:
    """Run an operation for each state, so many at once that other clients are still served."""
    outcomes: dict[SharePartitionKey, KafkaError | None] = {}
    for start in range(0, len(keys), _STATES_PER_TURN):
        if start:
            await asyncio.sleep(0)
        some = keys[start : start + _STATES_PER_TURN]
        outcomes.update(zip(some, await finish_each(map(operation, some)), strict=True))
    return outcomes
