"""Consumer groups in memory: decisions are carried out as by the broker, on a clock of our own."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.coordination.effects import Effects, RecordFacts, TimerKey
from headrace.coordination.timers import TimerQueue
from headrace.groups.consumer import check_request, serve_heartbeat
from headrace.groups.consumer_context import Client
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.late_commits import LateCommit
from headrace.groups.offsets import check_commit, commit
from headrace.groups.shard import GroupShard
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings
from tests.images import image_with, topic_id

Partitions = Mapping[str, Iterable[int]]

GROUP = "group"
HERE = Client("client", "/127.0.0.1")


class GroupsInMemory:
    """A shard without a broker: what is decided is written to `log` and replayed at once."""

    def __init__(self, image: MetadataImage | None = None, **settings: Any) -> None:
        self.image = image or image_with(topics={"orders": 6})
        self.settings = BrokerSettings(node_id=1, **settings)
        self.now_ms = 1_000_000
        self.log: list[CoordinatorRecord] = []
        self.timers: TimerQueue[TimerKey] = TimerQueue()
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        return GroupShard(lambda: self.settings, lambda: self.image)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def carry_out(self, effects: Effects[Any]) -> Any:
        for record in effects.records:
            self.shard.replay(record, RecordFacts(len(self.log), self.now_ms))
            self.log.append(record)
        for key, delay_ms in effects.timers.items():
            if delay_ms is None:
                self.timers.cancel(key)
            else:
                self.timers.set(key, self.now_ms + delay_ms)
        return effects.reply

    def send(
        self, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        check_request(request, version, self.settings.group_consumer_assignors)
        reply = self.carry_out(serve_heartbeat(self.shard, request, HERE, self.now_ms))
        assert isinstance(reply, ConsumerGroupHeartbeatResponse)
        return reply

    def join(
        self, member_id: str, topics: Iterable[str] = ("orders",), **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        fields = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": 60_000, **fields}
        return self.send(request_of(member_id, 0, {}, **fields))

    def heartbeat(
        self, member_id: str, epoch: int, owned: Partitions | None = None, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.send(request_of(member_id, epoch, owned, **fields))

    def commit(self, member_id: str, epoch: int, topic: str, partition: int, offset: int) -> None:
        """Commit as a member does, perhaps late; raises what its client would be told."""
        try:
            check_commit(self.shard, GROUP, member_id, None, epoch, version=10)
        except LateCommit as late:
            late.check([(topic, topic_id(topic), partition)])
        row = (topic, topic_id(topic), partition, offset, -1, None)
        self.carry_out(commit(self.shard, GROUP, [row], self.now_ms))

    def committed(self, topic: str, partition: int) -> int | None:
        found = self.shard.offsets.find(GROUP, topic, partition)
        return None if found is None else found.offset

    def wait(self, milliseconds: int) -> None:
        """Let time pass, and timers run out."""
        self.now_ms += milliseconds
        for key in self.timers.pop_due(self.now_ms):
            self.carry_out(self.shard.on_timer(key, self.now_ms))

    def reload(self) -> None:
        """Begin anew from the log, as after a restart."""
        self.shard = self.new_shard()
        for offset, record in enumerate(self.log):
            self.shard.replay(record, RecordFacts(offset, self.now_ms))
        self.timers = TimerQueue()
        self.carry_out(self.shard.on_loaded(self.now_ms))


def request_of(
    member_id: str, epoch: int, owned: Partitions | None = None, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        topic_partitions=None if owned is None else _partitions(owned),
        **fields,
    )


def _partitions(owned: Partitions) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id(name), sorted(numbers))
        for name, numbers in owned.items()
    ]


def assigned_by(response: ConsumerGroupHeartbeatResponse) -> dict[Uuid, set[int]] | None:
    """The partitions of an answer by topic; None if it does not speak of them."""
    if response.assignment is None:
        return None
    return {one.topic_id: set(one.partitions) for one in response.assignment.topic_partitions}


def settle(groups: GroupsInMemory, rounds: int = 50) -> None:
    """Let all members send heartbeats, as good clients do, until nothing moves any more."""
    for _ in range(rounds):
        for member in list(groups.group.members.values()):
            owned = {
                groups.image.topics_by_id[one].name: list(numbers)
                for one, numbers in member.assigned.items()
                if one in groups.image.topics_by_id
            }
            groups.heartbeat(member.id, member.epoch, owned)
        if groups.group.state_name == "Stable":
            return
        groups.wait(1_001)
    raise AssertionError(f"the group is still {groups.group.state_name}")
