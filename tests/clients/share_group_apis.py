"""A share group on the wire, as its members, its administrators and other brokers ask for it."""

from collections.abc import Callable
from typing import Any, Self

from kio.schema.errors import ErrorCode

from headrace.protocol.uuids import to_text
from tests.clients.librdkafka import unique_name
from tests.clients.wire import Connection
from tests.processes.nodes import Node, eventually

LOST = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
}
"""What a coordinator answers that is not there yet."""


class ShareGroupClient:
    """A share group as its members and administrators ask for it."""

    def __init__(self, node: Node, topic: str, *, group_id: str = "") -> None:
        self.connection = Connection(node.port)
        self.group_id = group_id or unique_name("group")
        self.topic = topic
        self.find_coordinator(0, self.group_id)
        self.find_coordinator(2, f"{self.group_id}:{to_text(self.topic_id.bytes)}:0")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.socket.close()

    def find_coordinator(self, key_type: int, key: str) -> Any:
        """Ask until the broker has made the topic that coordinators keep their state in."""
        return eventually(
            lambda: self.connection.call(
                "find_coordinator", 6, key_type=key_type, coordinator_keys=[key]
            ).coordinators[0],
            expect=lambda found: found.error_code == ErrorCode.none,
        )

    @property
    def topic_id(self) -> Any:
        answer = self.connection.call(
            "metadata",
            12,
            topics=[{"topic_id": None, "name": self.topic}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return answer.topics[0].topic_id

    def beat(self, member_id: str, epoch: int, topics: list[str] | None = None) -> Any:
        return self.connection.call(
            "share_group_heartbeat",
            1,
            group_id=self.group_id,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=topics,
        )

    def join(self, member_id: str) -> Any:
        """Send heartbeats until there is a share; the answer that brought it."""
        answer = self.coordinated(lambda: self.beat(member_id, 0, [self.topic]))
        last = [answer]

        def has_share() -> bool:
            assignment = last[0].assignment
            if assignment is not None and assignment.topic_partitions:
                return True
            last[0] = self.beat(member_id, last[0].member_epoch)
            return False

        eventually(has_share)
        return last[0]

    def coordinated(self, ask: Callable[[], Any]) -> Any:
        """Ask until the coordinator is there."""
        return eventually(ask, expect=lambda answer: LOST.isdisjoint(codes_of(answer)))

    def describe(self) -> Any:
        asked = {"group_ids": [self.group_id], "include_authorized_operations": False}
        return self.coordinated(
            lambda: self.connection.call("share_group_describe", 1, **asked).groups[0]
        )

    def offsets(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Start offset and lag of each partition that the group has a state for."""
        asked = {"groups": [{"group_id": self.group_id, "topics": None}]}
        group = self.coordinated(
            lambda: self.connection.call("describe_share_group_offsets", 1, **asked).groups[0]
        )
        assert group.error_code == ErrorCode.none, group
        return {
            (topic.topic_name, one.partition_index): (one.start_offset, one.lag)
            for topic in group.topics
            for one in topic.partitions
        }

    def alter(self, offsets: dict[int, int], topic: str = "") -> Any:
        partitions = [
            {"partition_index": one, "start_offset": offset} for one, offset in offsets.items()
        ]
        topics = [{"topic_name": topic or self.topic, "partitions": partitions}]
        return self.coordinated(
            lambda: self.connection.call(
                "alter_share_group_offsets", 0, group_id=self.group_id, topics=topics
            )
        )

    def forget(self, *topics: str) -> Any:
        named = [{"topic_name": one} for one in topics]
        return self.connection.call(
            "delete_share_group_offsets", 0, group_id=self.group_id, topics=named
        )

    def delete(self) -> Any:
        answer = self.connection.call("delete_groups", 2, groups_names=[self.group_id])
        return answer.results[0].error_code

    def state(self, api: str, version: int, partition: int = 0, **fields: Any) -> Any:
        """Ask the share coordinator about one partition, as brokers do."""
        fields = {"partition": partition, **fields}
        topics = [{"topic_id": self.topic_id, "partitions": [fields]}]
        asked = {"group_id": self.group_id, "topics": topics}
        return self.coordinated(
            lambda: self.connection.call(api, version, **asked).results[0].partitions[0]
        )


def codes_of(answer: Any) -> set[Any]:
    """The error codes of an answer, at the top and of its partitions."""
    inner = {
        partition.error_code
        for topic in getattr(answer, "responses", ())
        for partition in getattr(topic, "partitions", ())
    }
    return inner | {answer.error_code}
