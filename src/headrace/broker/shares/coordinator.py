"""The share coordinator's shell: the states of the share partitions that this node coordinates.

Decisions are in `shares/shard.py`. Each operation is a coroutine that does not wait while this
node is the only replica of `__share_group_state`.
"""

import logging
from asyncio import Future
from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.coordinators import Coordinator, CoordinatorResources, Shard
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
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metadata import ClusterMetadata
    from headrace.coordination.metrics import CoordinatorMetrics
    from headrace.shares.shard import ShareShard

_log = logging.getLogger(__name__)


class ShareCoordinator:
    """All share partitions whose coordinator is this node."""

    def __init__(
        self,
        node: CoordinatorResources,
        controller: "ClusterMetadata",
        configs: "TopicConfigs",
        metrics: "CoordinatorMetrics",
    ) -> None:
        self._clock = node.clock
        self._controller = controller
        self._configs = configs
        self._metrics = metrics
        self.coordinator: Coordinator[ShareShard] = Coordinator(
            node, SHARE_GROUP_STATE, self._new_shard
        )

    def _new_shard(self, partition: int) -> "ShareShard":
        from headrace.shares.shard import ShareShard

        return ShareShard(lambda: self._configs.settings, lambda: self._controller.image)

    async def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.applied(
            shard.state.initialize(key, state_epoch, start_offset, self._now_ms)
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.applied(shard.state.read(key, leader_epoch, self._now_ms))

    async def write(self, key: SharePartitionKey, change: StateChange) -> SharePartitionState:
        shard = self._shard_of(key)
        self._metrics.share_state_writes += 1
        return await shard.applied(shard.state.write(key, change, self._now_ms))

    async def summary(self, key: SharePartitionKey) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.applied(shard.state.summary(key))

    async def delete(self, key: SharePartitionKey) -> SharePartitionState:
        shard = self._shard_of(key)
        return await shard.applied(shard.state.delete(key))

    def on_topics_deleted(self, topic_ids: Set[Uuid]) -> None:
        self.coordinator.for_each(lambda state: state.on_topics_deleted(topic_ids))

    def prune(self) -> None:
        """Delete the records that later records have made redundant."""
        for shard in list(self.coordinator.shards.values()):
            before = shard.state.redundant_before
            source = shard.partition.log
            if source is None or before <= source.log_start_offset:
                continue
            settling = shard.settling()
            if settling is None:
                _prune(shard, before)
            else:
                # A failover that takes back the newest snapshots needs the ones before them.
                settling.add_done_callback(partial(_prune_settled, shard, before))

    def _shard_of(self, key: SharePartitionKey) -> Shard["ShareShard"]:
        return self.coordinator.shard_for(coordinator_key(key))

    @property
    def _now_ms(self) -> int:
        return self._clock.now_ms()


def _prune_settled(shard: Shard["ShareShard"], before: int, settling: Future[None]) -> None:
    if not settling.cancelled() and settling.exception() is None and shard.is_live:
        _prune(shard, before)


def _prune(shard: Shard["ShareShard"], before: int) -> None:
    try:
        shard.partition.online_log().delete_records_before(before)
    except KafkaError as error:
        _log.warning("share state log not pruned", extra={"shard": shard.name, "error": str(error)})
