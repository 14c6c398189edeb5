"""Share groups in memory, with a share coordinator beside them that can be made to fail."""

from collections.abc import Iterable
from typing import Any

from headrace.groups.share.group import ShareGroup
from headrace.groups.share.protocol import ShareAnswer, check_request, serve_heartbeat
from headrace.groups.share.states import Partitions, initialized, not_initialized
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings
from tests.builders.consumer_groups import HERE
from tests.builders.group_shards import GroupShell
from tests.builders.metadata_images import image_with

GROUP = "workers"


class ShareGroupsInMemory(GroupShell):
    """A shard with a share group."""

    def __init__(self, image: MetadataImage | None = None, **settings: Any) -> None:
        image = image or image_with(topics={"orders": 3})
        super().__init__(image, BrokerSettings(node_id=1, **settings), 1_000_000)
        self.begins_states = True
        self.begun: list[tuple[Uuid, int, int]] = []  # Topic, partition, state epoch.

    @property
    def group(self) -> ShareGroup:
        group = self.state.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def send(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        """Ask as a client does; missing states are begun as the broker begins them."""
        check_request(request)
        answer = self._decide(request)
        if not answer.needs:
            return answer.response
        if self.begins_states:
            self._begin(answer.needs.partitions, answer.needs.state_epoch)
        again = ShareGroupHeartbeatRequest(
            GROUP,
            request.member_id,
            answer.response.member_epoch,
            subscribed_topic_names=request.subscribed_topic_names,
        )
        response = self._decide(again).response
        if not self.begins_states:
            self.apply(not_initialized(self.state, GROUP, answer.needs.partitions))
        return response

    def _decide(self, request: ShareGroupHeartbeatRequest) -> ShareAnswer:
        answer: ShareAnswer = self.apply(serve_heartbeat(self.state, request, HERE, self.now_ms))
        return answer

    def _begin(self, partitions: Partitions, state_epoch: int) -> None:
        self.begun += [
            (topic_id, number, state_epoch)
            for topic_id, numbers in partitions.items()
            for number in sorted(numbers)
        ]
        self.apply(initialized(self.state, GROUP, partitions))

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
            self.apply(self.state.on_timer(key, self.now_ms))


def share_of(response: ShareGroupHeartbeatResponse) -> dict[Uuid, list[int]] | None:
    """The partitions of an answer by topic; None if it does not speak of them."""
    if response.assignment is None:
        return None
    return {one.topic_id: one.partitions for one in response.assignment.topic_partitions}
