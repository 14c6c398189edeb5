"""Topics, partitions and replicas of version 3."""

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.cluster import NoSuchTopic
from headrace.client.descriptions import NewTopic, PartitionDescription, TopicDescription
from headrace.client.partitions import EARLIEST, LATEST
from headrace.errors import UnknownTopicOrPartition
from headrace.http.operations import Parameter
from headrace.rest.errors import (
    UNKNOWN_TOPIC_OR_PARTITION,
    RestError,
    bad_request,
    check,
    failure_of,
    invalid_payload,
    partition_not_found,
)
from headrace.rest.numbers import Count, Int32
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import PartitionData, PartitionOffsetsData, ReplicaData, TopicData
from headrace.rest.v3.routing import (
    CLUSTER,
    PARTITION,
    REJECTED,
    TOPIC,
    Context,
    delete,
    get,
    json_answer,
    not_found,
    post,
    route,
)

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_UNKNOWN = "This server does not host this topic-partition."
_OFFSET_TYPE = "earliest_and_latest"


class ConfigValue(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None


class NewTopicBody(msgspec.Struct, frozen=True):
    """A topic to be created; missing fields have the broker's defaults."""

    topic_name: str
    partitions_count: Count | None = None
    replication_factor: Annotated[int, Meta(ge=1, le=(1 << 15) - 1)] | None = None
    replicas_assignments: dict[str, list[Int32]] = {}
    configs: list[ConfigValue] = []
    validate_only: bool = False


class PartitionsCount(msgspec.Struct, frozen=True):
    partitions_count: Count


class TopicRoutes(Routes):
    """List, describe, create, grow and delete topics."""

    @get(f"{CLUSTER}/topics", "List topics.")
    async def all(self, context: Context) -> list[TopicData]:
        return list(map(_topic, await context.ask(lambda admin: admin.topics.all())))

    @post(f"{CLUSTER}/topics", "Create a topic.", answer=TopicData, errors=REJECTED, status=201)
    async def create(self, context: Context, body: NewTopicBody) -> Response:
        wanted = _wanted(body)

        def ask(admin: Admin) -> TopicData:
            (made,) = admin.topics.create([wanted], validate_only=body.validate_only)
            check(made)
            return TopicData(
                topic_name=wanted.name,
                is_internal=False,
                replication_factor=made.replication_factor or 0,
                partitions_count=made.partitions or 0,
            )

        shown = context.links.shown(await context.ask(ask))
        return json_answer(shown, 200 if body.validate_only else 201, shown["metadata"].self_)

    @get(TOPIC, "Describe a topic.")
    async def one(self, context: Context) -> TopicData:
        return _topic(await _described(context))

    @route("PATCH", TOPIC, "Add partitions to a topic.", errors=REJECTED)
    async def grow(self, context: Context, body: PartitionsCount) -> TopicData:
        def ask(admin: Admin) -> TopicDescription:
            check(admin.topics.add_partitions(context.topic, body.partitions_count))
            return described(admin, context.topic)

        return _topic(await context.ask(ask))

    @delete(TOPIC, "Delete a topic.")
    async def delete(self, context: Context) -> None:
        def ask(admin: Admin) -> None:
            (outcome,) = admin.topics.delete([context.topic])
            if outcome.error == UnknownTopicOrPartition().name:
                raise unknown_topic()
            check(outcome)

        await context.ask(ask)
        self.service.identities.forget(context.topic)

    @get(f"{TOPIC}/partitions", "List the partitions of a topic.")
    async def partitions(self, context: Context) -> list[PartitionData]:
        topic = await _described(context)
        return [PartitionData.of(one, topic_name=topic.name) for one in topic.partitions]

    @get(PARTITION, "Describe a partition.")
    async def partition(self, context: Context) -> PartitionData:
        return PartitionData.of(await _partition_of(context), topic_name=context.topic)

    @get(
        f"{PARTITION}/offset",
        "Read the first and the end offset of a partition.",
        Parameter("offset_type", _OFFSET_TYPE),
        errors={400: "offset_type is unknown."},
    )
    async def offsets(self, context: Context) -> PartitionOffsetsData:
        kind = context.query.get("offset_type", _OFFSET_TYPE)
        if kind != _OFFSET_TYPE:
            raise bad_request(f"offset_type:{kind[:40]} is invalid")
        number = (await _partition_of(context)).partition

        def ask(admin: Admin) -> PartitionOffsetsData:
            (first,) = admin.partitions.offsets(context.topic, EARLIEST, [number])
            (end,) = admin.partitions.offsets(context.topic, LATEST, [number])
            return PartitionOffsetsData(
                topic_name=context.topic,
                partition_id=number,
                earliest_offset=first.offset,
                latest_offset=end.offset,
            )

        return await context.ask(ask)

    @get(f"{PARTITION}/replicas", "List the replicas of a partition.")
    async def replicas(self, context: Context) -> list[ReplicaData]:
        partition = await _partition_of(context)
        return [replica_data(context.topic, partition, one) for one in partition.replicas]

    @get(f"{PARTITION}/replicas/{{broker_id}}", "Describe a replica.")
    async def replica(self, context: Context) -> ReplicaData:
        broker = context.number("broker_id")
        partition = await _partition_of(context)
        if broker not in partition.replicas:
            place = f"{context.topic}-{partition.partition}"
            raise not_found(f"HTTP 404 Not Found: broker {broker} has no replica of {place}")
        return replica_data(context.topic, partition, broker)


async def _described(context: Context) -> TopicDescription:
    return await context.ask(lambda admin: described(admin, context.topic))


async def _partition_of(context: Context) -> PartitionDescription:
    number = context.number("partition_id")
    for one in (await _described(context)).partitions:
        if one.partition == number:
            return one
    raise partition_not_found()


def described(admin: Admin, name: str) -> TopicDescription:
    """Describe a topic that must exist."""
    if not _NAME.fullmatch(name):
        raise unknown_topic()
    try:
        found, failed = admin.topics.describe([name])
    except NoSuchTopic:
        raise unknown_topic() from None
    if found:
        return found[0]
    if failed[0].error == UnknownTopicOrPartition().name:
        raise unknown_topic()
    raise failure_of(failed[0])


def check_partitions(admin: Admin, topic: str, numbers: Iterable[int]) -> None:
    """Raise an error for partitions that a topic does not have."""
    if not {one.partition for one in described(admin, topic).partitions}.issuperset(numbers):
        raise partition_not_found()


def unknown_topic() -> RestError:
    return RestError(404, UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)


def replica_data(topic: str, partition: PartitionDescription, broker: int) -> ReplicaData:
    return ReplicaData.of(
        partition,
        topic_name=topic,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.isr,
    )


def _topic(topic: TopicDescription) -> TopicData:
    return TopicData.of(topic, topic_name=topic.name, partitions_count=len(topic.partitions))


def _wanted(body: NewTopicBody) -> NewTopic:
    if not _NAME.fullmatch(body.topic_name) or body.topic_name in (".", ".."):
        raise invalid_payload("Invalid topic name.")
    assigned = body.replicas_assignments
    if assigned and set(assigned) != {str(number) for number in range(len(assigned))}:
        raise invalid_payload("replicas_assignments must name all partitions from 0 on.")
    return NewTopic(
        name=body.topic_name,
        partitions=-1 if assigned else body.partitions_count or -1,
        replication_factor=-1 if assigned else body.replication_factor or -1,
        assignments=tuple(tuple(assigned[str(number)]) for number in range(len(assigned))),
        configs={one.name: one.value for one in body.configs if one.value is not None},
    )
