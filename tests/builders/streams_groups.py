"""A streams group in memory, with an application that counts words."""

from typing import Any

from headrace.groups.streams.group import StreamsGroup
from headrace.groups.streams.protocol import check_request, serve_heartbeat
from headrace.groups.streams.replies import StreamsAnswer
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestTaskIds,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.builders.consumer_groups import GROUP, HERE, GroupsInMemory
from tests.builders.metadata_images import image_with

COUNTING = Topology(
    0,
    [
        Subtopology("0", ["lines"], [], [], ["by-word"], [], []),
        Subtopology("1", [], [], [TopicInfo("changelog")], [], [TopicInfo("by-word")], []),
    ],
)
"""Lines are split into words, which are counted by the owner of the word's partition."""

TOPICS = {"lines": 3, "by-word": 3, "changelog": 3}


class Application(GroupsInMemory):
    """A streams group in memory."""

    def __init__(self, topics: dict[str, int] | None = None, **settings: Any) -> None:
        given = {"group_streams_initial_rebalance_delay_ms": 0, **settings}
        super().__init__(image_with(topics=TOPICS if topics is None else topics), **given)

    @property
    def streams(self) -> StreamsGroup:
        group = self.state.groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group

    def ask(self, request: StreamsGroupHeartbeatRequest) -> StreamsAnswer:
        check_request(request)
        answer: StreamsAnswer = self.apply(serve_heartbeat(self.state, request, HERE, self.now_ms))
        return answer

    def start(
        self, member_id: str, process: str = "", topology: Topology = COUNTING, **fields: Any
    ) -> StreamsAnswer:
        return self.ask(
            StreamsGroupHeartbeatRequest(
                GROUP,
                member_id,
                0,
                process_id=process or member_id,
                rebalance_timeout_ms=60_000,
                topology=topology,
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                **fields,
            )
        )

    def beat(self, member_id: str, epoch: int | None = None, **fields: Any) -> StreamsAnswer:
        """A heartbeat in which a member reports its assigned tasks as its own."""
        member = self.streams.members.get(member_id)
        active = member.assigned.active if member else frozenset()
        standby = member.assigned.standby if member else frozenset()
        given = member.epoch if member is not None and epoch is None else epoch or 0
        told = {
            "active_tasks": rows(active),
            "standby_tasks": rows(standby),
            "warmup_tasks": [],
            **fields,
        }
        return self.ask(StreamsGroupHeartbeatRequest(GROUP, member_id, given, **told))

    def settle(self) -> None:
        for _ in range(30):
            self.wait(1_001)
            for member_id in list(self.streams.members):
                self.beat(member_id)
            if self.streams.state_name == "Stable":
                return
        raise AssertionError(self.streams.state_name)

    def running(self) -> dict[str, set[tuple[str, int]]]:
        return {one.id: set(one.assigned.active) for one in self.streams.members.values()}


def rows(tasks: frozenset[tuple[str, int]]) -> list[StreamsGroupHeartbeatRequestTaskIds]:
    return [StreamsGroupHeartbeatRequestTaskIds(one, [number]) for one, number in sorted(tasks)]
