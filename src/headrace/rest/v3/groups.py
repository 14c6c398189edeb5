"""Consumer groups of version 3: members, what they read, and how far they are behind."""

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.group_descriptions import GroupDescription, GroupMember, ListedGroup
from headrace.client.partitions import LATEST
from headrace.errors import KafkaError
from headrace.http.operations import Endpoint, Operation, Parameter
from headrace.rest.errors import check, check_partition, consumer_group_not_found
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    CLUSTER,
    CONSUMER,
    GROUP,
    MISSING,
    PARTITION,
    TOPIC,
    Context,
    answer,
    json_body,
    not_found,
    nothing,
)
from headrace.rest.v3.outcomes import PartitionName
from headrace.rest.v3.resources import (
    AssignmentData,
    Collection,
    ConsumerData,
    GroupData,
    GroupOffsetData,
    LagData,
    LagSummaryData,
    Links,
)

_STATES = {
    "PreparingRebalance": "PREPARING_REBALANCE",
    "CompletingRebalance": "COMPLETING_REBALANCE",
    "Stable": "STABLE",
    "Empty": "EMPTY",
    "Dead": "DEAD",
    "Assigning": "ASSIGNING",
    "Reconciling": "RECONCILING",
}
_NOBODY = GroupMember(member_id="", instance_id=None, client_id="", host="", assignment={})
_GROUP_TYPES = ("classic", "consumer", "")

Number = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
Offset = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class OffsetEntry(msgspec.Struct, frozen=True):
    topic_name: str
    partition_id: Number
    offset: Offset


class NewOffsets(msgspec.Struct, frozen=True):
    """Where a group without members is to read on."""

    data: list[OffsetEntry]


class GivenUpOffsets(msgspec.Struct, frozen=True):
    """Partitions that a group is to forget what it has committed for."""

    data: Annotated[list[PartitionName], Meta(min_length=1)]


class Lag(NamedTuple):
    """How far one member, or nobody, is behind in a partition."""

    topic: str
    partition: int
    member: GroupMember
    current: int
    end: int

    @property
    def records(self) -> int:
        return max(0, self.end - self.current)


class GroupRoutes:
    """Groups, and what can be asked of them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        groups = "/v3/clusters/{cluster_id}/consumer-groups"
        group = f"{groups}/{{consumer_group_id}}"
        member = f"{group}/consumers/{{consumer_id}}"
        place = "{topic_name}/partitions/{partition_id}"
        at, of_member = (CLUSTER, GROUP), (CLUSTER, GROUP, CONSUMER)

        def read(
            path: str, endpoint: Endpoint, text: str, found: Any, *parameters: Parameter
        ) -> Operation:
            return Operation("GET", path, endpoint, text, parameters, answer=found, errors=MISSING)

        return [
            read(groups, self.all, "All groups.", Collection[GroupData], CLUSTER),
            read(group, self.one, "A group.", GroupData, *at),
            read(
                f"{group}/consumers",
                self.consumers,
                "The members of a group.",
                Collection[ConsumerData],
                *at,
            ),
            read(member, self.consumer, "A member.", ConsumerData, *of_member),
            read(
                f"{member}/assignments",
                self.assignments,
                "What a member reads.",
                Collection[AssignmentData],
                *of_member,
            ),
            read(
                f"{member}/assignments/{place}",
                self.assignment,
                "A partition that a member reads.",
                AssignmentData,
                *of_member,
                TOPIC,
                PARTITION,
            ),
            read(
                f"{group}/lag-summary",
                self.lag_summary,
                "How far a group is behind at most.",
                LagSummaryData,
                *at,
            ),
            read(
                f"{group}/lags",
                self.lags,
                "How far a group is behind.",
                Collection[LagData],
                *at,
            ),
            read(
                f"{group}/lags/{place}",
                self.lag,
                "How far a group is behind in a partition.",
                LagData,
                *at,
                TOPIC,
                PARTITION,
            ),
            read(
                f"{group}/offsets",
                self.offsets,
                "What a group has committed.",
                Collection[GroupOffsetData],
                *at,
            ),
            Operation(
                "POST",
                f"{group}/offsets:alter",
                self.alter_offsets,
                "Set what a group without members has committed.",
                at,
                body=NewOffsets,
                errors={**MISSING, 400: "The group has members."},
                status=204,
            ),
            Operation(
                "POST",
                f"{group}/offsets:delete",
                self.delete_offsets,
                "Forget what a group has committed for partitions that it does not read.",
                at,
                body=GivenUpOffsets,
                errors={**MISSING, 400: "The group reads them."},
                status=204,
            ),
            Operation(
                "DELETE",
                group,
                self.delete,
                "Forget a group without members.",
                at,
                errors={**MISSING, 400: "The group has members."},
                status=204,
            ),
        ]

    async def all(self, request: Request) -> Response:
        context = await Context.of(self._service, request)

        def ask(admin: Admin) -> list[tuple[ListedGroup, GroupDescription]]:
            listed = [one for one in admin.groups.all() if one.type.lower() in _GROUP_TYPES]
            return [(one, admin.groups.describe(one.group)) for one in listed]

        data = [_group(context.links, found, one) for one, found in await context.ask(ask)]
        return answer(context.links.collection("KafkaConsumerGroupList", data, "consumer-groups"))

    async def one(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.groups.describe(context.group))
        return answer(_group(context.links, found, None))

    async def consumers(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.groups.describe(context.group))
        data = [_consumer(context.links, context.group, one) for one in found.members]
        place = ("consumer-groups", context.group, "consumers")
        return answer(context.links.collection("KafkaConsumerList", data, *place))

    async def consumer(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        return answer(_consumer(context.links, context.group, await self._member(context, request)))

    async def assignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        member = await self._member(context, request)
        data = [
            _assignment(context.links, context.group, member, topic, partition)
            for topic, partitions in sorted(member.assignment.items())
            for partition in partitions
        ]
        place = ("consumer-groups", context.group, "consumers", member.member_id, "assignments")
        return answer(context.links.collection("KafkaConsumerAssignmentList", data, *place))

    async def assignment(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic, partition = context.topic, context.number("partition_id")
        member = await self._member(context, request)
        if partition not in member.assignment.get(topic, ()):
            raise not_found(f"HTTP 404 Not Found: the member does not read {topic}-{partition}")
        return answer(_assignment(context.links, context.group, member, topic, partition))

    async def lags(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: lags_of(admin, context.group))
        data = [_lag(context.links, context.group, one) for one in found]
        place = ("consumer-groups", context.group, "lags")
        return answer(context.links.collection("KafkaConsumerLagList", data, *place))

    async def lag(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        wanted = (context.topic, context.number("partition_id"))
        for one in await context.ask(lambda admin: lags_of(admin, context.group)):
            if (one.topic, one.partition) == wanted:
                return answer(_lag(context.links, context.group, one))
        raise not_found("Consumer group offsets could not be found.")

    async def lag_summary(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: lags_of(admin, context.group))
        if not found:
            raise not_found("Consumer group offsets could not be found.")
        return answer(_summary(context.links, context.group, found))

    async def offsets(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        group = context.group

        def ask(admin: Admin) -> dict[tuple[str, int], tuple[int, str]]:
            admin.groups.describe(group)
            return admin.groups.committed(group)

        found = await context.ask(ask)
        place = ("consumer-groups", group, "offsets")
        data = [
            GroupOffsetData(
                metadata=context.links.metadata(
                    *place,
                    crn=f"consumer-group={group}/offset={topic}/partition={partition}",
                ),
                cluster_id=context.cluster_id,
                consumer_group_id=group,
                topic_name=topic,
                partition_id=partition,
                offset=offset,
                offset_metadata=text,
            )
            for (topic, partition), (offset, text) in sorted(found.items())
        ]
        return answer(context.links.collection("KafkaConsumerGroupOffsetList", data, *place))

    async def alter_offsets(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, NewOffsets)
        wanted = {(one.topic_name, one.partition_id): one.offset for one in body.data}

        def ask(admin: Admin) -> None:
            for outcome in admin.groups.reset(context.group, wanted):
                check_partition(outcome)

        await context.ask(ask)
        return nothing()

    async def delete_offsets(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, GivenUpOffsets)
        places = {(one.topic_name, one.partition_id) for one in body.data}

        def ask(admin: Admin) -> None:
            for outcome in admin.groups.delete_offsets(context.group, places):
                check_partition(outcome)

        await context.ask(ask)
        return nothing()

    async def delete(self, request: Request) -> Response:
        context = await Context.of(self._service, request)

        def ask(admin: Admin) -> None:
            (outcome,) = admin.groups.delete([context.group])
            check(outcome)

        await context.ask(ask)
        return nothing()

    async def _member(self, context: Context, request: Request) -> GroupMember:
        wanted = request.path_params["consumer_id"]
        found = await context.ask(lambda admin: admin.groups.describe(context.group))
        for one in found.members:
            if one.member_id == wanted:
                return one
        raise not_found(f"Consumer {wanted} could not be found in group {context.group}.")


def lags_of(admin: Admin, group: str) -> list[Lag]:
    """How far a group is behind in every partition that it has committed for."""
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
        Lag(
            topic,
            partition,
            owners.get((topic, partition), _NOBODY),
            offset,
            ends[topic, partition],
        )
        for (topic, partition), (offset, _) in sorted(committed.items())
        if (topic, partition) in ends
    ]


def _ends(admin: Admin, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Where partitions end; a topic that is gone has no end to be behind of."""
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


def _group(links: Links, found: GroupDescription, listed: ListedGroup | None) -> GroupData:
    if found.type not in ("classic", "consumer"):
        raise consumer_group_not_found()
    place = ("consumer-groups", found.group)
    return GroupData(
        metadata=links.metadata(*place, crn=f"consumer-group={found.group}"),
        cluster_id=links.cluster_id,
        consumer_group_id=found.group,
        is_simple=listed is not None and found.type == "classic" and not listed.protocol_type,
        partition_assignor=found.assignor,
        state=_STATES.get(found.state, found.state.upper()),
        type=found.type.upper(),
        coordinator=links.related("brokers", found.coordinator),
        consumers=links.related(*place, "consumers"),
        lag_summary=links.related(*place, "lag-summary"),
    )


def _consumer(links: Links, group: str, member: GroupMember) -> ConsumerData:
    place = ("consumer-groups", group, "consumers", member.member_id)
    return ConsumerData(
        metadata=links.metadata(*place, crn=f"consumer-group={group}/consumer={member.member_id}"),
        cluster_id=links.cluster_id,
        consumer_group_id=group,
        consumer_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        assignments=links.related(*place, "assignments"),
    )


def _assignment(
    links: Links, group: str, member: GroupMember, topic: str, partition: int
) -> AssignmentData:
    place = ("consumer-groups", group, "consumers", member.member_id, "assignments")
    tail = (topic, "partitions", partition)
    return AssignmentData(
        metadata=links.metadata(
            *place,
            *tail,
            crn=f"consumer-group={group}/consumer={member.member_id}"
            f"/assignment={topic}/partition={partition}",
        ),
        cluster_id=links.cluster_id,
        consumer_group_id=group,
        consumer_id=member.member_id,
        topic_name=topic,
        partition_id=partition,
        partition=links.related("topics", *tail),
        lag=links.related("consumer-groups", group, "lags", *tail),
    )


def _lag(links: Links, group: str, lag: Lag) -> LagData:
    return LagData(
        metadata=links.metadata(
            *("consumer-groups", group, "lags", lag.topic, "partitions", lag.partition),
            crn=f"consumer-group={group}/lag={lag.topic}/partition={lag.partition}",
        ),
        cluster_id=links.cluster_id,
        consumer_group_id=group,
        topic_name=lag.topic,
        partition_id=lag.partition,
        consumer_id=lag.member.member_id,
        instance_id=lag.member.instance_id,
        client_id=lag.member.client_id,
        current_offset=lag.current,
        log_end_offset=lag.end,
        lag=lag.records,
    )


def _summary(links: Links, group: str, lags: list[Lag]) -> LagSummaryData:
    worst = max(lags, key=lambda one: one.records)
    member = worst.member
    return LagSummaryData(
        metadata=links.metadata(
            "consumer-groups", group, "lag-summary", crn=f"consumer-group={group}/lag-summary"
        ),
        cluster_id=links.cluster_id,
        consumer_group_id=group,
        max_lag_consumer_id=member.member_id,
        max_lag_instance_id=member.instance_id,
        max_lag_client_id=member.client_id,
        max_lag_topic_name=worst.topic,
        max_lag_partition_id=worst.partition,
        max_lag=worst.records,
        total_lag=sum(one.records for one in lags),
        max_lag_consumer=links.related("consumer-groups", group, "consumers", member.member_id),
        max_lag_partition=links.related("topics", worst.topic, "partitions", worst.partition),
    )
