"""Groups: list and describe them, read their lag, reset and delete what they have committed.

Lag in seconds is the age of the record that a group reads next. Its timestamp is read from the
record itself, so it is right for bursts and for partitions without new records as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from headrace.client.cluster import Cluster, by_topic, check_code, error_name
from headrace.client.connection import Response
from headrace.client.coordinators import KeyType, find_coordinator
from headrace.client.descriptions import Outcome
from headrace.client.group_descriptions import (
    GroupDescription,
    GroupMember,
    ListedGroup,
    PartitionLag,
    description_of,
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
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
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

_STATES_FROM, _TYPES_FROM = 4, 5
_SEVERAL_FROM = 8
_DEAD = "Dead"


Offsets = dict[tuple[str, int], int]
"""Offsets by topic and partition."""


class Groups:
    """The groups of a cluster, reached through their coordinators."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._partitions = Partitions(cluster)
        self._shares = ShareGroups(cluster)

    def all(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """List the groups of all coordinators."""
        found = [
            listed
            for node in self._cluster.node_ids()
            for listed in self._listed(node, states, types)
        ]
        return sorted(found, key=lambda one: one.group)

    def describe(self, group: str) -> GroupDescription:
        """Describe a group of any type."""

        def attempt() -> GroupDescription:
            node = self.coordinator_of(group)
            found = self._shares.describe(group, node) or self._described(node, [group])[group]
            if isinstance(found, KafkaError):
                raise found
            return found

        return self._cluster.retry(attempt)

    def describe_all(self, listed: Iterable[ListedGroup]) -> list[GroupDescription]:
        """Describe groups other than share groups, with two requests per coordinator at most.

        Groups that were deleted in the meantime are left out.
        """
        by_node: dict[int, list[str]] = {}
        for one in listed:
            by_node.setdefault(one.coordinator, []).append(one.group)
        described = []
        for node, groups in by_node.items():
            answers = self._cluster.retry(partial(self._described, node, groups))
            for group, answer in answers.items():
                try:
                    if isinstance(answer, KafkaError):
                        answer = self.describe(group)  # Finds the coordinator if it has moved.
                    described.append(answer)
                except GroupIdNotFound:
                    continue
        return sorted(described, key=lambda one: one.group)

    def committed(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """Read committed offsets with metadata; for a share group its start offsets."""
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
            check_code(part.error_code, subject=repr(group))
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
        """Read the lag of a group in records and in seconds.

        `assigned` adds partitions of members without a commit. The lag of a share group counts
        all records that are not finished.
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
                start = None if shared is None else shared.get((topic, number))
                if start is not None and start.lag is not None:
                    row = msgspec.structs.replace(row, lag=start.lag)
                rows.append(row)
        return rows

    def reset(self, group: str, offsets: Offsets) -> list[Outcome]:
        """Set committed offsets of a group that has no members."""
        node = self._shared_by(group)
        if node is not None:
            return self._shares.reset(group, node, offsets)
        codes = self.commit(group, offsets)
        return [outcome(f"{topic}-{number}", code) for (topic, number), code in codes.items()]

    def commit(self, group: str, offsets: Offsets) -> dict[tuple[str, int], int]:
        """Commit offsets without a generation; return the error code of each partition."""
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=self._cluster.topic(topic).topic_id,
                partitions=[
                    OffsetCommitRequestPartition(number, offsets[topic, number], -1, "")
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ]
        request = OffsetCommitRequest(group_id=group, topics=topics)
        answer = self._ask_coordinator(group, request, OffsetCommitResponse)
        return {
            (asked.name, one.partition_index): one.error_code
            for asked, topic in zip(topics, answer.topics, strict=True)
            for one in topic.partitions
        }

    def delete(self, groups: Iterable[str]) -> list[Outcome]:
        """Delete groups without members, with their committed offsets."""
        outcomes = []
        for group in groups:
            request = DeleteGroupsRequest(groups_names=[group])
            answer = self._ask_coordinator(group, request, DeleteGroupsResponse)
            outcomes.append(outcome(group, answer.results[0].error_code))
        return outcomes

    def delete_offsets(self, group: str, partitions: Iterable[tuple[str, int]]) -> list[Outcome]:
        """Delete the committed offsets of partitions that a group does not read."""
        node = self._shared_by(group)
        if node is not None:
            return self._shares.delete_offsets(group, node, partitions)
        topics = [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(one) for one in numbers])
            for topic, numbers in by_topic(partitions).items()
        ]
        request = OffsetDeleteRequest(group_id=group, topics=topics)
        answer = self._ask_coordinator(group, request, OffsetDeleteResponse)
        return [
            outcome(f"{topic.name}-{one.partition_index}", one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        ]

    def coordinator_of(self, group: str) -> int:
        """Return the id of the broker that coordinates a group."""
        return find_coordinator(self._cluster, KeyType.GROUP, group)

    # Listing and describing.

    def _listed(self, node: int, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        version = self._cluster.connection(node).version_of(request)
        if (states and version < _STATES_FROM) or (types and version < _TYPES_FROM):
            raise HeadraceError("this broker is too old to select groups by state or type")
        answer = self._cluster.query(request, ListGroupsResponse, node)
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

    def _described(
        self, node: int, groups: Sequence[str]
    ) -> dict[str, GroupDescription | KafkaError]:
        """Describe groups of one coordinator, first by the new protocol, then by the classic."""
        found: dict[str, GroupDescription | KafkaError] = {}
        if self._cluster.connection(node).understands(ConsumerGroupDescribeRequest):
            request = ConsumerGroupDescribeRequest(group_ids=[*groups])
            answer = self._cluster.ask(request, ConsumerGroupDescribeResponse, node)
            for one in answer.groups:
                if one.error_code != GroupIdNotFound.code:
                    error = _error(one.error_code, one.error_message)
                    found[one.group_id] = error or description_of(one, "consumer", node)
        classic = [group for group in groups if group not in found]
        if classic:
            answers = self._cluster.ask(
                DescribeGroupsRequest(groups=classic), DescribeGroupsResponse, node
            )
            found.update((one.group_id, _classic(one, node)) for one in answers.groups)
        return found

    def _shared_by(self, group: str) -> int | None:
        """Return the coordinator of a share group; None for other types."""

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
        node = partial(self.coordinator_of, group)
        return self._cluster.query(request, response, node, subject=repr(group))

    # Lag.

    def _ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Read the end offsets of partitions; those of deleted topics are left out."""
        try:
            known = set(self._partitions.of(topic))
            existing = [number for number in partitions if number in known]
            found = self._partitions.offsets(topic, LATEST, existing) if existing else []
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
        """Read the timestamp of the next record; None if it is deleted.

        Offsets without a record, such as transaction markers and compacted records, are skipped.
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
        """Return the name of a topic; newer brokers report only its id."""
        name: str = getattr(topic, "name", "")
        if name:
            return name
        topic_id = getattr(topic, "topic_id", None)
        for one in self._cluster.metadata().topics:
            if one.topic_id == topic_id and one.name:
                return one.name
        raise UnknownTopicId("a group has committed offsets of a deleted topic")


def _error(code: int, message: str | None) -> KafkaError | None:
    return error_for(code, message or error_name(code)) if code else None


def _classic(found: DescribedGroup, node: int) -> GroupDescription | KafkaError:
    error = _error(found.error_code, found.error_message)
    if error is None and found.group_state == _DEAD:
        error = GroupIdNotFound(f"Group {found.group_id} not found.")
    return error or GroupDescription(
        group=found.group_id,
        type="classic",
        state=found.group_state,
        assignor=found.protocol_data,
        coordinator=node,
        members=[_classic_member(one) for one in found.members],
    )


def _classic_member(member: DescribedGroupMember) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_assignment(member.member_assignment),
    )


def _assignment(data: bytes) -> dict[str, list[int]]:
    """Decode the assignment of a consumer; other users of the protocol have other formats."""
    try:
        found = read(ConsumerProtocolAssignment, 0, data, 2)[0]
    except DecodeError:
        return {}
    return {one.topic: sorted(one.partitions) for one in found.assigned_partitions}
