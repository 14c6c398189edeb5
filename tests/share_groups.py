"""Share groups in memory, with a share coordinator beside them that can be made to fail."""

from collections.abc import Iterable
from typing import Any

from headrace.coordination.effects import Effects, RecordFacts, TimerKey
from headrace.coordination.timers import TimerQueue
from headrace.groups.shard import GroupShard
from headrace.groups.share import Answer, check_request, serve_heartbeat
from headrace.groups.share_group import ShareGroup
from headrace.groups.share_states import Partitions, initialized, not_initialized
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings
from tests.consumer_groups import HERE
from tests.images import image_with

GROUP = "workers"


class ShareGroupsInMemory:
    """A shard without a broker: what is decided is written to `log` and replayed at once."""

    def __init__(self, image: MetadataImage | None = None, **settings: Any) -> None:
        self.image = image or image_with(topics={"orders": 3})
        self.settings = BrokerSettings(node_id=1, **settings)
        self.now_ms = 1_000_000
        self.log: list[CoordinatorRecord] = []
        self.timers: TimerQueue[TimerKey] = TimerQueue()
        self.shard = self.new_shard()
        self.begins_states = True
        self.begun: list[tuple[Uuid, int, int]] = []  # Topic, partition, state epoch.

    def new_shard(self) -> GroupShard:
        return GroupShard(lambda: self.settings, lambda: self.image)

    @property
    def group(self) -> ShareGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def carry_out(self, effects: Effects[Any]) -> Any:
        for record in effects.records:
            self.shard.replay(record, RecordFacts(len(self.log), self.now_ms))
            self.log.append(record)
        if effects.on_written is not None:
            effects.on_written()
        for key, delay_ms in effects.timers.items():
            if delay_ms is None:
                self.timers.cancel(key)
            else:
                self.timers.set(key, self.now_ms + delay_ms)
        return effects.reply

    def send(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        """Ask as a client does; missing states are begun as the broker begins them."""
        check_request(request)
        answer = self._decide(request)
        if not answer.missing:
            return answer.response
        if self.begins_states:
            self._begin(answer.missing, answer.state_epoch)
        again = ShareGroupHeartbeatRequest(
            GROUP,
            request.member_id,
            answer.response.member_epoch,
            subscribed_topic_names=request.subscribed_topic_names,
        )
        response = self._decide(again).response
        if not self.begins_states:
            self.carry_out(not_initialized(self.shard, GROUP, answer.missing))
        return response

    def _decide(self, request: ShareGroupHeartbeatRequest) -> Answer:
        answer = self.carry_out(serve_heartbeat(self.shard, request, HERE, self.now_ms))
        assert isinstance(answer, Answer)
        return answer

    def _begin(self, partitions: Partitions, state_epoch: int) -> None:
        self.begun += [
            (topic_id, number, state_epoch)
            for topic_id, numbers in partitions.items()
            for number in sorted(numbers)
        ]
        self.carry_out(initialized(self.shard, GROUP, partitions))

    def join(
        self, member_id: str, topics: Iterable[str] = ("orders",), **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        return self.send(
            ShareGroupHeartbeatRequest(
                GROUP, member_id, 0, subscribed_topic_names=list(topics), **fields
            )
        )

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatResponse:
        return self.send(ShareGroupHeartbeatRequest(GROUP, member_id, epoch, **fields))

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


def share_of(response: ShareGroupHeartbeatResponse) -> dict[Uuid, list[int]] | None:
    """The partitions of an answer by topic; None if it does not speak of them."""
    if response.assignment is None:
        return None
    return {one.topic_id: one.partitions for one in response.assignment.topic_partitions}
