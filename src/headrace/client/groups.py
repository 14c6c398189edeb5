"""Groups of any cluster: which there are, who is in them, how far they have read, and resets.

Lag in seconds is the age of the record that a group reads next: the time that a group is behind
is the time that this record has been waiting. Its timestamp is taken from the record itself, so it
is right also where records come in bursts, and for a partition that nobody writes to any more.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from headrace.client.cluster import Cluster, error_name
from headrace.client.connection import Response
from headrace.client.descriptions import Outcome
from headrace.client.group_descriptions import (
    GroupDescription,
    GroupMember,
    ListedGroup,
    PartitionLag,
    outcome,
)
from headrace.client.partitions import EARLIEST, LATEST, Partitions
from headrace.client.share_groups import ShareGroups, ShareOffset
from headrace.errors import (
    GroupIdNotFound,
    HeadraceError,
    KafkaError,
    OffsetOutOfRange,
    UnknownTopicId,
    error_for,
)
from headrace.protocol.batches import read_header, records_of
from headrace.protocol.codec import DecodeError, read
from headrace.protocol.message import Message
from headrace.protocol.schemas.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headrace.protocol.schemas.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from headrace.protocol.schemas.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headrace.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.protocol.schemas.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.protocol.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from headrace.protocol.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from headrace.protocol.schemas.records.consumer_protocol import ConsumerProtocolAssignment

_GROUP_KEY = 0
_BATCHED_FROM = 4
_STATES_FROM, _TYPES_FROM = 4, 5
_SEVERAL_FROM = 8
_DEAD = "Dead"


Offsets = dict[tuple[str, int], int]
"""By topic and partition."""


class Groups:
    """The groups of a cluster, reached through their coordinators."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._partitions = Partitions(cluster)
        self._shares = ShareGroups(cluster)

    def all(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """What every broker coordinates."""
        found = [
            listed
            for node in self._cluster.node_ids()
            for listed in self._listed(node, states, types)
        ]
        return sorted(found, key=lambda one: one.group)

    def describe(self, group: str) -> GroupDescription:
        """A share group, or consumers of either protocol, or what else uses the classic one."""

        def attempt() -> GroupDescription:
            node = self.coordinator_of(group)
            shared = self._shares.describe(group, node)
            if shared is not None:
                return shared
            if self._cluster.connection(node).understands(ConsumerGroupDescribeRequest):
                found = self._described_consumers(group, node)
                if found is not None:
                    return found
            return self._described_classic(group, node)

        return self._cluster.retry(attempt)

    def committed(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """The committed offsets of a group, with their metadata; where a share group starts."""
        shared = self._share_offsets(group)
        if shared is not None:
            return {place: (one.start, "") for place, one in shared.items()}

        def attempt() -> dict[tuple[str, int], tuple[int, str]]:
            node = self.coordinator_of(group)
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)])
            several = self._cluster.connection(node).version_of(request) >= _SEVERAL_FROM
            if not several:
                request = OffsetFetchRequest(group_id=group, topics=None)
            answer = self._cluster.ask(request, OffsetFetchResponse, node)
            part = answer.groups[0] if several else answer
            if part.error_code:
                raise error_for(part.error_code, f"{group!r}: {error_name(part.error_code)}")
            return {
                (self._topic_name(topic), one.partition_index): (
                    one.committed_offset,
                    one.metadata or "",
                )
                for topic in part.topics
                for one in topic.partitions
                if one.committed_offset >= 0
            }

        return self._cluster.retry(attempt)

    def lag(
        self, group: str, now_ms: int, assigned: Mapping[str, Iterable[int]] | None = None
    ) -> list[PartitionLag]:
        """How far a group is behind, in records and in seconds.

        `assigned` adds partitions that members have but never committed for. A share group is
        behind by the records that are not done with, however many it has begun.
        """
        shared = self._share_offsets(group)
        committed = self.committed(group)
        wanted = {*committed, *((t, p) for t, ps in (assigned or {}).items() for p in ps)}
        rows = []
        for topic in sorted({topic for topic, _ in wanted}):
            partitions = sorted(number for name, number in wanted if name == topic)
            ends = self._ends(topic, partitions)
            for number in partitions:
                offset, metadata = committed.get((topic, number), (None, ""))
                end = ends.get(number)
                row = self._row(topic, number, offset, end, metadata, now_ms)
                told = None if shared is None else shared.get((topic, number))
                if told is not None and told.lag is not None:
                    row = msgspec.structs.replace(row, lag=told.lag)
                rows.append(row)
        return rows

    def reset(self, group: str, offsets: Offsets) -> list[Outcome]:
        """Set committed offsets of a group that has no members."""
        node = self._shared_by(group)
        if node is not None:
            return self._shares.reset(group, node, offsets)
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=self._cluster.topic(topic).topic_id,
                partitions=[
                    OffsetCommitRequestPartition(number, offset, -1, "")
                    for (name, number), offset in sorted(offsets.items())
                    if name == topic
                ],
            )
            for topic in sorted({topic for topic, _ in offsets})
        ]
        request = OffsetCommitRequest(group_id=group, topics=topics)
        answer = self._ask_coordinator(group, request, OffsetCommitResponse)
        return [
            outcome(f"{asked.name}-{one.partition_index}", one.error_code)
            for asked, topic in zip(topics, answer.topics, strict=True)
            for one in topic.partitions
        ]

    def delete(self, groups: Iterable[str]) -> list[Outcome]:
        """Forget groups that have no members, and what they have committed."""
        outcomes = []
        for group in groups:
            request = DeleteGroupsRequest(groups_names=[group])
            answer = self._ask_coordinator(group, request, DeleteGroupsResponse)
            outcomes.append(outcome(group, answer.results[0].error_code))
        return outcomes

    def delete_offsets(self, group: str, partitions: Iterable[tuple[str, int]]) -> list[Outcome]:
        """Forget what a group has committed for partitions that it does not read."""
        node = self._shared_by(group)
        if node is not None:
            return self._shares.delete_offsets(group, node, partitions)
        wanted = sorted(partitions)
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(number)
                        for name, number in wanted
                        if name == topic
                    ],
                )
                for topic in sorted({topic for topic, _ in wanted})
            ],
        )
        answer = self._ask_coordinator(group, request, OffsetDeleteResponse)
        if answer.error_code:
            raise error_for(answer.error_code, f"{group!r}: {error_name(answer.error_code)}")
        return [
            outcome(f"{topic.name}-{one.partition_index}", one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        ]

    def coordinator_of(self, group: str) -> int:
        """The broker that coordinates a group."""
        request = FindCoordinatorRequest(key_type=_GROUP_KEY)
        is_batched = self._cluster.connection().version_of(request) >= _BATCHED_FROM
        if is_batched:
            request.coordinator_keys = [group]
        else:
            request.key = group

        def attempt() -> int:
            answer = self._cluster.ask(request, FindCoordinatorResponse)
            found = answer.coordinators[0] if is_batched else answer
            if found.error_code:
                raise error_for(
                    found.error_code, found.error_message or error_name(found.error_code)
                )
            return found.node_id

        return self._cluster.retry(attempt)

    # Listing and describing.

    def _listed(self, node: int, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        version = self._cluster.connection(node).version_of(request)
        if (states and version < _STATES_FROM) or (types and version < _TYPES_FROM):
            raise HeadraceError("this broker is too old to select groups by state or type")

        def attempt() -> ListGroupsResponse:
            answer = self._cluster.ask(request, ListGroupsResponse, node)
            if answer.error_code:
                raise error_for(answer.error_code, error_name(answer.error_code))
            return answer

        answer = self._cluster.retry(attempt)
        return [
            ListedGroup(
                group=one.group_id,
                type=one.group_type,
                state=one.group_state,
                protocol_type=one.protocol_type,
                coordinator=node,
            )
            for one in answer.groups
        ]

    def _described_classic(self, group: str, node: int) -> GroupDescription:
        request = DescribeGroupsRequest(groups=[group])
        found = self._cluster.ask(request, DescribeGroupsResponse, node).groups[0]
        if found.error_code:
            raise error_for(found.error_code, found.error_message or error_name(found.error_code))
        if found.group_state == _DEAD:
            raise GroupIdNotFound(f"Group {group} not found.")
        return GroupDescription(
            group=group,
            type="classic",
            state=found.group_state,
            assignor=found.protocol_data,
            coordinator=node,
            members=[_classic_member(one) for one in found.members],
        )

    def _described_consumers(self, group: str, node: int) -> GroupDescription | None:
        request = ConsumerGroupDescribeRequest(group_ids=[group])
        found = self._cluster.ask(request, ConsumerGroupDescribeResponse, node).groups[0]
        if found.error_code == GroupIdNotFound.code:
            return None  # There is no such group of the new protocol; it may be a classic one.
        if found.error_code:
            raise error_for(found.error_code, found.error_message or error_name(found.error_code))
        return GroupDescription(
            group=group,
            type="consumer",
            state=found.group_state,
            assignor=found.assignor_name,
            coordinator=node,
            members=[
                GroupMember(
                    member_id=one.member_id,
                    instance_id=one.instance_id,
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

    def _shared_by(self, group: str) -> int | None:
        """The coordinator of a share group; None if the group is of another kind."""

        def attempt() -> int | None:
            node = self.coordinator_of(group)
            return None if self._shares.describe(group, node) is None else node

        return self._cluster.retry(attempt)

    def _share_offsets(self, group: str) -> dict[tuple[str, int], ShareOffset] | None:
        node = self._shared_by(group)
        if node is None:
            return None
        return self._cluster.retry(lambda: self._shares.offsets(group, node))

    def _ask_coordinator(self, group: str, request: Message, response: type[Response]) -> Response:
        return self._cluster.retry(
            lambda: self._cluster.ask(request, response, self.coordinator_of(group))
        )

    # Lag.

    def _ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Where partitions end; a topic that is gone has no end to be behind of."""
        try:
            known = set(self._partitions.of(topic))
            there = [number for number in partitions if number in known]
            found = self._partitions.offsets(topic, LATEST, there) if there else []
        except KafkaError as error:
            if error.retriable:
                raise
            return {}
        return {one.partition: one.offset for one in found}

    def _row(
        self,
        topic: str,
        partition: int,
        committed: int | None,
        end: int | None,
        metadata: str,
        now_ms: int,
    ) -> PartitionLag:
        lag = None if committed is None or end is None else max(end - committed, 0)
        seconds: float | None = None if lag is None else 0.0
        if lag and committed is not None:
            since_ms = self._time_of(topic, partition, committed)
            seconds = 0.0 if since_ms is None else max(now_ms - since_ms, 0) / 1000
        return PartitionLag(
            topic=topic,
            partition=partition,
            committed=committed,
            end=end,
            lag=lag,
            lag_seconds=seconds,
            metadata=metadata,
        )

    def _time_of(self, topic: str, partition: int, offset: int) -> int | None:
        """When the record that is read next was written; None if there is none any more.

        Offsets between may hold no record, where transactions ended or compaction went over.
        """
        while True:
            try:
                batch = self._partitions.batch_at(topic, partition, offset)
            except OffsetOutOfRange:
                (earliest,) = self._partitions.offsets(topic, EARLIEST, [partition])
                if earliest.offset <= offset:
                    return None
                offset = earliest.offset
                continue
            header = read_header(batch)
            records = () if header.is_control else records_of(batch)
            for record in records:
                if record.offset >= offset:
                    return record.timestamp
            offset = header.next_offset

    def _topic_name(self, topic: object) -> str:
        """Newer brokers name topics by id alone."""
        name: str = getattr(topic, "name", "")
        if name:
            return name
        topic_id = getattr(topic, "topic_id", None)
        for one in self._cluster.metadata().topics:
            if one.topic_id == topic_id and one.name:
                return one.name
        raise UnknownTopicId("a group has offsets of a topic that was deleted meanwhile")


def _classic_member(member: DescribedGroupMember) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_assignment(member.member_assignment),
    )


def _assignment(data: bytes) -> dict[str, list[int]]:
    """What a consumer was given; other users of the protocol have bytes of their own."""
    try:
        found = read(ConsumerProtocolAssignment, 0, data, 2)[0]
    except DecodeError:
        return {}
    return {one.topic: sorted(one.partitions) for one in found.assigned_partitions}
