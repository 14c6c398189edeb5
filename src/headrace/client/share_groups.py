"""Share groups of any cluster: who is in them, where they start to read, and how to change that.

Their start offsets are not committed offsets: the share coordinator keeps them, and the group's
coordinator tells and changes them in APIs of their own. `client/groups.py` is the door for all.
"""

from collections.abc import Iterable, Mapping

import msgspec

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import Outcome
from headrace.client.group_descriptions import GroupDescription, GroupMember, outcome
from headrace.errors import GroupIdNotFound, HeadraceError, UnsupportedVersion, error_for
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
    """Where a share group stands in a partition; the lag is None where the broker cannot say."""

    start: int
    lag: int | None


class ShareGroups:
    """The share groups of a cluster; the caller knows who coordinates them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe(self, group: str, node: int) -> GroupDescription | None:
        """A share group with its members; None if there is none of that name."""
        request = ShareGroupDescribeRequest(group_ids=[group])
        if not self._cluster.connection(node).understands(ShareGroupDescribeRequest):
            return None
        found = self._cluster.ask(request, ShareGroupDescribeResponse, node).groups[0]
        if found.error_code in (GroupIdNotFound.code, UnsupportedVersion.code):
            return None
        if found.error_code:
            raise error_for(found.error_code, found.error_message or error_name(found.error_code))
        return GroupDescription(
            group=group,
            type="share",
            state=found.group_state,
            assignor=found.assignor_name,
            coordinator=node,
            members=[
                GroupMember(
                    member_id=one.member_id,
                    instance_id=None,
                    client_id=one.client_id,
                    host=one.client_host,
                    assignment={
                        topic.topic_name: sorted(topic.partitions)
                        for topic in one.assignment.topic_partitions
                    },
                )
                for one in found.members
            ],
        )

    def offsets(self, group: str, node: int) -> dict[tuple[str, int], ShareOffset]:
        """Where a group stands in each partition that it has begun to read."""
        request = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group, topics=None)]
        )
        found = self._cluster.ask(request, DescribeShareGroupOffsetsResponse, node).groups[0]
        if found.error_code:
            raise error_for(found.error_code, found.error_message or error_name(found.error_code))
        return {
            (topic.topic_name, one.partition_index): ShareOffset(
                start=one.start_offset, lag=one.lag if one.lag >= 0 else None
            )
            for topic in found.topics
            for one in topic.partitions
            if not one.error_code and one.start_offset >= 0
        }

    def reset(self, group: str, node: int, offsets: Mapping[tuple[str, int], int]) -> list[Outcome]:
        """Have a group without members start over at these offsets."""
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                topic,
                [
                    AlterShareGroupOffsetsRequestPartition(number, offset)
                    for (name, number), offset in sorted(offsets.items())
                    if name == topic
                ],
            )
            for topic in sorted({topic for topic, _ in offsets})
        ]
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
        answer = self._cluster.ask(request, AlterShareGroupOffsetsResponse, node)
        if answer.error_code:
            raise error_for(answer.error_code, f"{group!r}: {error_name(answer.error_code)}")
        return [
            outcome(f"{topic.topic_name}-{one.partition_index}", one.error_code)
            for topic in answer.responses
            for one in topic.partitions
        ]

    def delete_offsets(
        self, group: str, node: int, partitions: Iterable[tuple[str, int]]
    ) -> list[Outcome]:
        """Have a group without members forget topics, which it can do only as a whole."""
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
        if answer.error_code:
            raise error_for(answer.error_code, f"{group!r}: {error_name(answer.error_code)}")
        return [outcome(one.topic_name, one.error_code) for one in answer.responses]
