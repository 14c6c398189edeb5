"""The share coordinator's shell: the states of share partitions that this node keeps.

Decisions are in `shares/shard.py`. Each operation is a coroutine that does not wait while this
node is the only replica of `__share_group_state`.
"""

import logging
from collections.abc import Set
from typing import TYPE_CHECKING

from headrace.broker.coordinators import Coordinator, Shard
from headrace.broker.topics.internal_topics import SHARE_GROUP_STATE
from headrace.errors import KafkaError
from headrace.protocol.uuids import Uuid
from headrace.shares.state import (
    SharePartitionKey,
    SharePartitionState,
    StateChange,
    coordinator_key,
)

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.shares.shard import ShareShard

_log = logging.getLogger(__name__)


class ShareCoordinator:
    """All share partitions whose coordinator is this node."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.coordinator: Coordinator[ShareShard] = Coordinator(
            broker, SHARE_GROUP_STATE, self._new_shard
        )

    def _new_shard(self, partition: int) -> "ShareShard":
        from headrace.shares.shard import ShareShard

        broker = self._broker
        return ShareShard(lambda: broker.settings, lambda: broker.image)

    async def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.carried_out(
            shard.state.initialize(key, state_epoch, start_offset, self._now_ms)
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.carried_out(shard.state.read(key, leader_epoch, self._now_ms))

    async def write(self, key: SharePartitionKey, change: StateChange) -> SharePartitionState:
        shard = self._shard_of(key)
        self._broker.metrics.coordinators.share_state_writes += 1
        return await shard.carried_out(shard.state.write(key, change, self._now_ms))

    async def summary(self, key: SharePartitionKey) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.carried_out(shard.state.summary(key))

    async def delete(self, key: SharePartitionKey) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.carried_out(shard.state.delete(key))

    def on_topics_deleted(self, topic_ids: Set[Uuid]) -> None:
        self.coordinator.for_each(lambda state: state.on_topics_deleted(topic_ids))

    def prune(self) -> None:
        """Delete the records that later ones have made redundant."""
        for shard in list(self.coordinator.shards.values()):
            before = shard.state.redundant_before
            source = shard.partition.log
            if source is None or before <= source.log_start_offset:
                continue
            try:
                source.delete_records_before(before)
            except KafkaError as error:
                _log.warning("%s is not pruned: %s", shard.name, error)

    def _shard_of(self, key: SharePartitionKey) -> Shard["ShareShard"]:
        return self.coordinator.shard_for(coordinator_key(key))

    @property
    def _now_ms(self) -> int:
        return self._broker.clock.now_ms()
