"""Members of streams groups, and their records: types 17 and 19 to 23 of `__consumer_offsets`."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from headrace.groups.epochs.members import EpochMember, MemberState
from headrace.groups.epochs.records import CLIENT, EpochRecords, Field
from headrace.groups.streams.tasks import NO_TASKS, Task, Tasks
from headrace.groups.streams.topology import Topology
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import groups as schemas


class StreamsMember(EpochMember, frozen=True):
    """One consumer of a streams application; several may share a process."""

    instance_id: str | None = None
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    epochs: Mapping[Task, int] = {}  # The assignment epoch of each active task.


_Row = schemas.StreamsGroupCurrentMemberAssignmentValueTaskIds


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return tasks as in messages and records: partitions by subtopology, in order."""
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        found.setdefault(subtopology, []).append(number)
    return found


def _current(tasks: Iterable[Task]) -> list[_Row]:
    return [_Row(one, numbers, None) for one, numbers in by_subtopology(tasks).items()]


def _with_epochs(tasks: Iterable[Task], epochs: Mapping[Task, int]) -> list[_Row]:
    return [
        _Row(one, numbers, [epochs.get((one, number), 0) for number in numbers])
        for one, numbers in by_subtopology(tasks).items()
    ]


class TaskIds(Protocol):
    """Tasks of one subtopology, in any message or record."""

    subtopology_id: str
    partitions: list[int]


def tasks_in(rows: Iterable[TaskIds]) -> frozenset[Task]:
    """Return the tasks of a message or record, the inverse of `by_subtopology`."""
    return frozenset((one.subtopology_id, number) for one in rows for number in one.partitions)


def _endpoint_written(endpoint: tuple[str, int] | None) -> schemas.Endpoint | None:
    return None if endpoint is None else schemas.Endpoint(*endpoint)


def _endpoint_read(endpoint: schemas.Endpoint | None) -> tuple[str, int] | None:
    return None if endpoint is None else (endpoint.host, endpoint.port)


def _tags_written(tags: Iterable[tuple[str, str]]) -> list[schemas.KeyValue]:
    return [schemas.KeyValue(key, value) for key, value in tags]


def _tags_read(rows: Iterable[schemas.KeyValue]) -> tuple[tuple[str, str], ...]:
    return tuple((one.key, one.value) for one in rows)


class StreamsRecords(EpochRecords[StreamsMember, Tasks]):
    """Translates streams groups."""

    kind = "Streams"
    member_type = StreamsMember
    description = (
        *CLIENT,
        *(Field("instance_id"), Field("rebalance_timeout_ms")),
        *(Field("topology_epoch"), Field("process_id")),
        Field("endpoint", "user_endpoint", _endpoint_written, _endpoint_read),
        Field("tags", "client_tags", _tags_written, _tags_read),
    )
    state_numbers: ClassVar = {
        MemberState.STABLE: 1,
        MemberState.UNREVOKED: 2,
        MemberState.UNRELEASED: 3,
        MemberState.UNKNOWN: 127,
    }
    assignment = ("assigned", "pending_revocation", "epochs")

    def assignment_written(self, member: StreamsMember) -> dict[str, Any]:
        assigned, pending = member.assigned, member.pending_revocation
        return {
            "active_tasks": _with_epochs(assigned.active, member.epochs),
            "standby_tasks": _current(assigned.standby),
            "active_tasks_pending_revocation": _with_epochs(pending.active, member.epochs),
            "standby_tasks_pending_revocation": _current(pending.standby),
        }

    def assignment_read(
        self, value: schemas.StreamsGroupCurrentMemberAssignmentValue
    ) -> dict[str, Any]:
        active, pending = value.active_tasks, value.active_tasks_pending_revocation
        return {
            "assigned": Tasks(tasks_in(active), tasks_in(value.standby_tasks)),
            "pending_revocation": Tasks(
                tasks_in(pending), tasks_in(value.standby_tasks_pending_revocation)
            ),
            "epochs": {
                (one.subtopology_id, number): epoch
                for one in (*active, *pending)
                for number, epoch in zip(one.partitions, one.assignment_epochs or (), strict=False)
            },
        }

    def target_written(self, target: Tasks) -> dict[str, Any]:
        row = schemas.StreamsGroupTargetAssignmentMemberValueTaskIds
        return {
            "active_tasks": [row(*one) for one in by_subtopology(target.active).items()],
            "standby_tasks": [row(*one) for one in by_subtopology(target.standby).items()],
        }

    def target_of(self, value: schemas.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
        return Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks))


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    return encode_record(schemas.StreamsGroupTopologyKey(group_id=group_id), topology)
