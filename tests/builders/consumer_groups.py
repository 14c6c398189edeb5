"""Consumer groups in memory: decisions are carried out as by the broker, on a clock of our own."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.protocol import check_request, serve_heartbeat
from headrace.groups.epochs.heartbeat import Client
from headrace.groups.group import LateCommit
from headrace.groups.offsets import check_commit, commit
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings
from tests.builders.group_shards import GroupShell
from tests.builders.metadata_images import image_with, topic_id

Partitions = Mapping[str, Iterable[int]]

GROUP = "group"
HERE = Client("client", "/127.0.0.1")


class GroupsInMemory(GroupShell):
    """A shard with a consumer group."""

    def __init__(self, image: MetadataImage | None = None, **settings: Any) -> None:
        image = image or image_with(topics={"orders": 6})
        super().__init__(image, BrokerSettings(node_id=1, **settings), 1_000_000)

    @property
    def group(self) -> ConsumerGroup:
        group = self.state.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def send(
        self, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        check_request(request, version, self.settings.group_consumer_assignors)
        reply = self.apply(serve_heartbeat(self.state, request, HERE, self.now_ms))
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
        """Commit as a member does, perhaps late; raise the error that its client would get."""
        try:
            check_commit(self.state, GROUP, member_id, None, epoch, version=10)
        except LateCommit as late:
            late.check([(topic, topic_id(topic), partition)])
        row = (topic, topic_id(topic), partition, offset, -1, None)
        self.apply(commit(self.state, GROUP, [row], self.now_ms))

    def committed(self, topic: str, partition: int) -> int | None:
        found = self.state.offsets.find(GROUP, topic, partition)
        return None if found is None else found.offset

    def wait(self, milliseconds: int) -> None:
        """Let time pass, and timers run out."""
        self.now_ms += milliseconds
        for key in self.timers.pop_due(self.now_ms):
            self.apply(self.state.on_timer(key, self.now_ms))


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
