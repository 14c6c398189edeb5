"""What share groups ask of the share coordinator: states begun, forgotten and looked at."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.broker.coordinators import Shard
from headrace.errors import KafkaError, UnknownTopicOrPartition
from headrace.groups.share import share_group
from headrace.groups.share_states import (
    Forgetting,
    Partitions,
    forget_all,
    forgotten,
    initialized,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.groups.shard import GroupShard

_log = logging.getLogger(__name__)

Refusals = Mapping[tuple[Uuid, int], KafkaError]

_STATES_PER_TURN = 100
"""How many states are written before the event loop sees to others."""


async def begin_states(
    broker: "Broker",
    shard: "Shard[GroupShard]",
    group_id: str,
    state_epoch: int,
    offsets: Mapping[Uuid, Mapping[int, int]],
) -> Refusals:
    """Begin states at these offsets and note which are; returns why others are not.

    Who has done with the refusals says so to `not_initialized`.
    """
    done: dict[Uuid, set[int]] = {}
    refused: dict[tuple[Uuid, int], KafkaError] = {}
    wanted = [(one, *each) for one, found in offsets.items() for each in found.items()]
    for count, (topic_id, partition, offset) in enumerate(wanted, 1):
        key = SharePartitionKey(group_id, topic_id, partition)
        try:
            await broker.share_persister.initialize(key, state_epoch, offset)
            done.setdefault(topic_id, set()).add(partition)
        except KafkaError as error:
            _log.warning("the state of %s in %s is not begun: %s", partition, group_id, error)
            refused[topic_id, partition] = error
        if count % _STATES_PER_TURN == 0:
            await asyncio.sleep(0)
    begun = {topic_id: frozenset(partitions) for topic_id, partitions in done.items()}
    await shard.carried_out(initialized(shard.state, group_id, begun))
    return refused


async def forget_states(
    broker: "Broker", shard: "Shard[GroupShard]", group_id: str, partitions: Partitions
) -> Mapping[Uuid, KafkaError]:
    """Delete states and note which topics have none any more; returns why others still do."""
    refused: dict[Uuid, KafkaError] = {}
    count = 0
    for topic_id, numbers in partitions.items():
        for partition in numbers:
            key = SharePartitionKey(group_id, topic_id, partition)
            try:
                await broker.share_persister.delete(key)
            except UnknownTopicOrPartition:
                pass  # Gone with its topic.
            except KafkaError as error:
                refused[topic_id] = error
            count += 1
            if count % _STATES_PER_TURN == 0:
                await asyncio.sleep(0)
    gone = [topic_id for topic_id in partitions if topic_id not in refused]
    await shard.carried_out(forgotten(shard.state, group_id, gone))
    return refused


async def forget_group(broker: "Broker", shard: "Shard[GroupShard]", group_id: str) -> None:
    """Delete all states of a share group that is about to be deleted."""
    effects = forget_all(share_group(shard.state, group_id), broker.image)
    forgetting: Forgetting = await shard.carried_out(effects)
    refused = await forget_states(broker, shard, group_id, forgetting.partitions)
    if refused:
        raise next(iter(refused.values()))
