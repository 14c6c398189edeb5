"""Share groups: describe them, read and change their start offsets.

The share coordinator keeps start offsets; the group coordinator reads and changes them by their own
APIs. `Groups` is the entry point for all types of groups.
"""

from collections.abc import Iterable, Mapping

import msgspec

from headrace.client.cluster import Cluster, by_topic, check_code
from headrace.client.descriptions import Outcome
from headrace.client.group_descriptions import GroupDescription, description_of, outcome
from headrace.errors import GroupIdNotFound, HeadraceError, UnsupportedVersion
from headrace.protocol.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


class ShareOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The start offset of a share group in a partition; the lag is None if it is unknown."""

    start: int
    lag: int | None


class ShareGroups:
    """The share groups of a cluster; the caller passes their coordinator."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(self, group: str, node: int) -> GroupDescription | None:
        """Describe a share group; return None if it does not exist."""
        request = ShareGroupDescribeRequest(group_ids=[group])
        if not self._cluster.connection(node).understands(ShareGroupDescribeRequest):
            return None
        found = self._cluster.ask(request, ShareGroupDescribeResponse, node).groups[0]
        if found.error_code in (GroupIdNotFound.code, UnsupportedVersion.code):
            return None
        check_code(found.error_code, found.error_message)
        return description_of(found, "share", node)

    def offsets(self, group: str, node: int) -> dict[tuple[str, int], ShareOffset]:
        """Read the start offset of each partition that a group has begun to read."""
        request = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group, topics=None)]
        )
        found = self._cluster.ask(request, DescribeShareGroupOffsetsResponse, node).groups[0]
        check_code(found.error_code, found.error_message)
        return {
            (topic.topic_name, one.partition_index): ShareOffset(
                start=one.start_offset, lag=one.lag if one.lag >= 0 else None
            )
            for topic in found.topics
            for one in topic.partitions
            if not one.error_code and one.start_offset >= 0
        }

    def reset(self, group: str, node: int, offsets: Mapping[tuple[str, int], int]) -> list[Outcome]:
        """Set the start offsets of a group without members."""
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                topic,
                [
                    AlterShareGroupOffsetsRequestPartition(number, offsets[topic, number])
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ]
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
        answer = self._cluster.ask(request, AlterShareGroupOffsetsResponse, node)
        check_code(answer.error_code, subject=repr(group))
        return [
            outcome(f"{topic.topic_name}-{one.partition_index}", one.error_code)
            for topic in answer.responses
            for one in topic.partitions
        ]

    def delete_offsets(
        self, group: str, node: int, partitions: Iterable[tuple[str, int]]
    ) -> list[Outcome]:
        """Delete the offsets of whole topics of a group without members."""
        wanted = set(partitions)
        topics = sorted({topic for topic, _ in wanted})
        for place in self.offsets(group, node):
            if place[0] in topics and place not in wanted:
                raise HeadraceError(
                    f"a share group forgets whole topics: name {place[0]} without partitions"
                )
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(one) for one in topics]
        )
        answer = self._cluster.ask(request, DeleteShareGroupOffsetsResponse, node)
        check_code(answer.error_code, subject=repr(group))
        return [outcome(one.topic_name, one.error_code) for one in answer.responses]
