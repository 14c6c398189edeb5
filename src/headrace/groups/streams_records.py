"""The records of a streams group: types 17 and 19 to 23 of `__consumer_offsets`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from headrace.groups.consumer_records import tombstone
from headrace.groups.streams_tasks import Task, Tasks
from headrace.groups.streams_topology import Topology
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import groups as schemas

if TYPE_CHECKING:
    from headrace.groups.streams_group import StreamsGroup, StreamsMember

_KEYS_OF_A_MEMBER = (
    schemas.StreamsGroupCurrentMemberAssignmentKey,
    schemas.StreamsGroupTargetAssignmentMemberKey,
    schemas.StreamsGroupMemberMetadataKey,
)
"""In the order in which they are removed: the member itself goes last."""


def member_metadata(group_id: str, member: "StreamsMember") -> CoordinatorRecord:
    """What a member is."""
    value = schemas.StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else schemas.Endpoint(*member.endpoint),
        client_tags=[schemas.KeyValue(key, value) for key, value in member.tags],
    )
    key = schemas.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def current_assignment(group_id: str, member: "StreamsMember") -> CoordinatorRecord:
    """How far a member has got."""
    assigned, pending = member.assigned, member.pending_revocation
    value = schemas.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active, member.epochs),
        standby_tasks=_current(assigned.standby),
        active_tasks_pending_revocation=_with_epochs(pending.active, member.epochs),
        standby_tasks_pending_revocation=_current(pending.standby),
    )
    key = schemas.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Tasks as they are sent and kept: subtopologies and their partitions, in order."""
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        found.setdefault(subtopology, []).append(number)
    return found


def _current(
    tasks: Iterable[Task],
) -> list[schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds(one, numbers, None)
        for one, numbers in by_subtopology(tasks).items()
    ]


def _with_epochs(
    tasks: Iterable[Task], epochs: Mapping[Task, int]
) -> list[schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds(
            one, numbers, [epochs.get((one, number), 0) for number in numbers]
        )
        for one, numbers in by_subtopology(tasks).items()
    ]


def target_assignment(group_id: str, member_id: str, tasks: Tasks) -> CoordinatorRecord:
    """Where a member shall get to."""
    row = schemas.StreamsGroupTargetAssignmentMemberValueTaskIds
    value = schemas.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=[row(*one) for one in by_subtopology(tasks.active).items()],
        standby_tasks=[row(*one) for one in by_subtopology(tasks.standby).items()],
    )
    key = schemas.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_record(key, value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    return encode_record(
        schemas.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        schemas.StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def group_metadata(
    group_id: str, epoch: int, metadata_hash: int, topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """How often the group has changed, and what its topics and configs were like."""
    return encode_record(
        schemas.StreamsGroupMetadataKey(group_id=group_id),
        schemas.StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=topology_epoch,
            last_assignment_configs=[
                schemas.LastAssignmentConfig(key, value) for key, value in configs.items()
            ],
        ),
    )


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    return encode_record(schemas.StreamsGroupTopologyKey(group_id=group_id), topology)


def no_member(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    for key in _KEYS_OF_A_MEMBER:
        yield tombstone(key(group_id=group_id, member_id=member_id))


def no_group(group: "StreamsGroup") -> Iterator[CoordinatorRecord]:
    """Tombstones for all keys of a group, in the order in which Kafka wants to read them."""
    current, target, metadata = _KEYS_OF_A_MEMBER
    for key in (current, target):
        for member_id in group.members:
            yield tombstone(key(group_id=group.group_id, member_id=member_id))
    yield tombstone(schemas.StreamsGroupTargetAssignmentMetadataKey(group_id=group.group_id))
    for member_id in group.members:
        yield tombstone(metadata(group_id=group.group_id, member_id=member_id))
    yield tombstone(schemas.StreamsGroupMetadataKey(group_id=group.group_id))
    yield tombstone(schemas.StreamsGroupTopologyKey(group_id=group.group_id))
