"""A share coordinator in memory: what is decided is written to a log and replayed at once."""

from typing import Any

from headrace.coordination.effects import Effects, RecordFacts
from headrace.protocol.coordinator_records import CoordinatorRecord, decode_key
from headrace.protocol.schemas.records.shares import ShareSnapshotKey
from headrace.settings.broker import BrokerSettings
from headrace.shares.shard import TYPES, ShareShard
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch, StateChange
from tests.builders.metadata_images import image_with, topic_id

KEY = SharePartitionKey("workers", topic_id("orders"), 0)


class States:
    """A shard in memory, and the log that it has written."""

    def __init__(self, **settings: Any) -> None:
        self.image = image_with(topics={"orders": 2})
        self.settings = BrokerSettings(node_id=1, **settings)
        self.log: list[CoordinatorRecord] = []
        self.now_ms = 1_000_000
        self.shard = self._new_shard()

    def _new_shard(self) -> ShareShard:
        return ShareShard(lambda: self.settings, lambda: self.image)

    def apply(self, effects: Effects[Any]) -> Any:
        for record in effects.records:
            self.shard.replay(record, RecordFacts(len(self.log), self.now_ms))
            self.log.append(record)
        return effects.reply

    def initialize(self, key: SharePartitionKey = KEY, epoch: int = 1, start: int = 0) -> None:
        self.apply(self.shard.initialize(key, epoch, start, self.now_ms))

    def read(self, leader_epoch: int, key: SharePartitionKey = KEY) -> SharePartitionState:
        state = self.apply(self.shard.read(key, leader_epoch, self.now_ms))
        assert isinstance(state, SharePartitionState)
        return state

    def write(
        self,
        *batches: StateBatch,
        start: int = -1,
        state_epoch: int = 1,
        leader_epoch: int = 5,
        key: SharePartitionKey = KEY,
    ) -> None:
        self.apply(
            self.shard.write(
                key, StateChange(state_epoch, leader_epoch, start, 0, batches), self.now_ms
            )
        )

    def reloaded(self, start: int = 0) -> ShareShard:
        shard = self._new_shard()
        for offset, record in enumerate(self.log):
            if offset >= start:
                shard.replay(record, RecordFacts(offset, self.now_ms))
        return shard

    def is_snapshot(self, offset: int) -> bool:
        return isinstance(decode_key(TYPES, self.log[offset].key), ShareSnapshotKey)
