"""Consumer groups of version 3: members, assignments, committed offsets and lag."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.client.admin import Admin
from headrace.client.group_descriptions import GroupDescription, GroupMember, ListedGroup
from headrace.client.partitions import LATEST
from headrace.errors import KafkaError
from headrace.rest.errors import check, check_partition, consumer_group_not_found
from headrace.rest.numbers import Int32, Int64
from headrace.rest.routing import Routes
from headrace.rest.v3.outcomes import PartitionName
from headrace.rest.v3.resources import (
    AssignmentData,
    ConsumerData,
    GroupData,
    GroupOffsetData,
    LagData,
    LagSummaryData,
)
from headrace.rest.v3.routing import CLUSTER, Context, delete, get, not_found, post

_STATES = {
    "PreparingRebalance": "PREPARING_REBALANCE",
    "CompletingRebalance": "COMPLETING_REBALANCE",
}
_NO_MEMBER = GroupMember(member_id="", instance_id=None, client_id="", host="", assignment={})
_GROUP_TYPES = ("classic", "consumer", "")

_GROUPS = f"{CLUSTER}/consumer-groups"
_GROUP = f"{_GROUPS}/{{consumer_group_id}}"
_MEMBER = f"{_GROUP}/consumers/{{consumer_id}}"
_PLACE = "{topic_name}/partitions/{partition_id}"


class OffsetEntry(msgspec.Struct, frozen=True):
    topic_name: str
    partition_id: Int32
    offset: Int64


class NewOffsets(msgspec.Struct, frozen=True):
    """New committed offsets of a group without members."""

    data: list[OffsetEntry]


class DeletedOffsets(msgspec.Struct, frozen=True):
    """Partitions whose committed offsets a group forgets."""

    data: Annotated[list[PartitionName], Meta(min_length=1)]


class GroupRoutes(Routes):
    """List and describe groups; alter and delete what they have committed."""

    @get(_GROUPS, "List groups.")
    async def all(self, context: Context) -> list[GroupData]:
        def ask(admin: Admin) -> list[GroupData]:
            listed = [one for one in admin.groups.all() if one.type.lower() in _GROUP_TYPES]
            by_name = {one.group: one for one in listed}
            return [_group(one, by_name[one.group]) for one in admin.groups.describe_all(listed)]

        return await context.ask(ask)

    @get(_GROUP, "Describe a group.")
    async def one(self, context: Context) -> GroupData:
        return _group(await _described(context), None)

    @get(f"{_GROUP}/consumers", "List the members of a group.")
    async def consumers(self, context: Context) -> list[ConsumerData]:
        found = (await _described(context)).members
        return [ConsumerData.of(one, consumer_group_id=context.group) for one in found]

    @get(_MEMBER, "Describe a member.")
    async def consumer(self, context: Context) -> ConsumerData:
        return ConsumerData.of(await _member(context), consumer_group_id=context.group)

    @get(f"{_MEMBER}/assignments", "List the partitions of a member.")
    async def assignments(self, context: Context) -> list[AssignmentData]:
        member = await _member(context)
        return [
            _assignment(context.group, member, topic, partition)
            for topic, partitions in sorted(member.assignment.items())
            for partition in partitions
        ]

    @get(f"{_MEMBER}/assignments/{_PLACE}", "Describe a partition of a member.")
    async def assignment(self, context: Context) -> AssignmentData:
        topic, partition = context.topic, context.number("partition_id")
        member = await _member(context)
        if partition not in member.assignment.get(topic, ()):
            raise not_found(f"HTTP 404 Not Found: the member does not read {topic}-{partition}")
        return _assignment(context.group, member, topic, partition)

    @get(f"{_GROUP}/lag-summary", "Summarize the lag of a group.")
    async def lag_summary(self, context: Context) -> LagSummaryData:
        found = await context.ask(lambda admin: lags_of(admin, context.group))
        if not found:
            raise not_found("Consumer group offsets could not be found.")
        worst = max(found, key=lambda one: one.lag)
        return LagSummaryData(
            consumer_group_id=context.group,
            max_lag_consumer_id=worst.consumer_id,
            max_lag_instance_id=worst.instance_id,
            max_lag_client_id=worst.client_id,
            max_lag_topic_name=worst.topic_name,
            max_lag_partition_id=worst.partition_id,
            max_lag=worst.lag,
            total_lag=sum(one.lag for one in found),
        )

    @get(f"{_GROUP}/lags", "List the lag of a group by partition.")
    async def lags(self, context: Context) -> list[LagData]:
        return await context.ask(lambda admin: lags_of(admin, context.group))

    @get(f"{_GROUP}/lags/{_PLACE}", "Describe the lag of a group in a partition.")
    async def lag(self, context: Context) -> LagData:
        wanted = (context.topic, context.number("partition_id"))
        for one in await context.ask(lambda admin: lags_of(admin, context.group)):
            if (one.topic_name, one.partition_id) == wanted:
                return one
        raise not_found("Consumer group offsets could not be found.")

    @get(f"{_GROUP}/offsets", "List the committed offsets of a group.")
    async def offsets(self, context: Context) -> list[GroupOffsetData]:
        group = context.group

        def ask(admin: Admin) -> dict[tuple[str, int], tuple[int, str]]:
            admin.groups.describe(group)
            return admin.groups.committed(group)

        return [
            GroupOffsetData(
                consumer_group_id=group,
                topic_name=topic,
                partition_id=partition,
                offset=offset,
                offset_metadata=text,
            )
            for (topic, partition), (offset, text) in sorted((await context.ask(ask)).items())
        ]

    @post(
        f"{_GROUP}/offsets:alter",
        "Set the committed offsets of a group without members.",
        errors={400: "The group has members."},
    )
    async def alter_offsets(self, context: Context, body: NewOffsets) -> None:
        wanted = {(one.topic_name, one.partition_id): one.offset for one in body.data}
        for outcome in await context.ask(lambda admin: admin.groups.reset(context.group, wanted)):
            check_partition(outcome)

    @post(
        f"{_GROUP}/offsets:delete",
        "Delete the committed offsets of partitions that a group does not read.",
        errors={400: "The group reads them."},
    )
    async def delete_offsets(self, context: Context, body: DeletedOffsets) -> None:
        places = {(one.topic_name, one.partition_id) for one in body.data}
        for outcome in await context.ask(
            lambda admin: admin.groups.delete_offsets(context.group, places)
        ):
            check_partition(outcome)

    @delete(_GROUP, "Delete a group without members.", errors={400: "The group has members."})
    async def delete(self, context: Context) -> None:
        (outcome,) = await context.ask(lambda admin: admin.groups.delete([context.group]))
        check(outcome)


async def _described(context: Context) -> GroupDescription:
    return await context.ask(lambda admin: admin.groups.describe(context.group))


async def _member(context: Context) -> GroupMember:
    wanted = context.text("consumer_id")
    for one in (await _described(context)).members:
        if one.member_id == wanted:
            return one
    raise not_found(f"Consumer {wanted} could not be found in group {context.group}.")


def lags_of(admin: Admin, group: str) -> list[LagData]:
    """Read the lag of a group in every partition with a committed offset."""
    found = admin.groups.describe(group)
    committed = admin.groups.committed(group)
    ends = _ends(admin, committed)
    owners = {
        (topic, partition): member
        for member in found.members
        for topic, partitions in member.assignment.items()
        for partition in partitions
    }
    return [
        LagData.of(
            owners.get(place, _NO_MEMBER),
            consumer_group_id=group,
            topic_name=place[0],
            partition_id=place[1],
            current_offset=offset,
            log_end_offset=ends[place],
            lag=max(0, ends[place] - offset),
        )
        for place, (offset, _) in sorted(committed.items())
        if place in ends
    ]


def _ends(admin: Admin, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Read the end offsets of partitions; partitions of deleted topics are left out."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    ends: dict[tuple[str, int], int] = {}
    for topic, partitions in by_topic.items():
        try:
            for one in admin.partitions.offsets(topic, LATEST, partitions):
                ends[topic, one.partition] = one.offset
        except KafkaError as error:
            if error.retriable:
                raise
    return ends


def _group(found: GroupDescription, listed: ListedGroup | None) -> GroupData:
    if found.type not in ("classic", "consumer"):
        raise consumer_group_not_found()
    return GroupData.of(
        found,
        is_simple=listed is not None and found.type == "classic" and not listed.protocol_type,
        state=_STATES.get(found.state, found.state.upper()),
        type=found.type.upper(),
    )


def _assignment(group: str, member: GroupMember, topic: str, partition: int) -> AssignmentData:
    place = {"topic_name": topic, "partition_id": partition}
    return AssignmentData.of(member, consumer_group_id=group, **place)
