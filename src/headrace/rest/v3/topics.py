"""Topics, partitions and replicas of version 3."""

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.cluster import NoSuchTopic
from headrace.client.descriptions import NewTopic, PartitionDescription, TopicDescription
from headrace.client.partitions import EARLIEST, LATEST
from headrace.errors import UnknownTopicOrPartition
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import (
    UNKNOWN_TOPIC_OR_PARTITION,
    RestError,
    bad_request,
    check,
    failure_of,
    invalid_payload,
    partition_not_found,
)
from headrace.rest.numbers import INT32_MAX
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    BROKER,
    CLUSTER,
    MISSING,
    PARTITION,
    TOPIC,
    Context,
    answer,
    json_body,
    not_found,
    nothing,
)
from headrace.rest.v3.resources import (
    Collection,
    Links,
    PartitionData,
    PartitionOffsetsData,
    ReplicaData,
    TopicData,
)

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_UNKNOWN = "This server does not host this topic-partition."

Count = Annotated[int, Meta(ge=1, le=INT32_MAX)]
BrokerId = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class ConfigValue(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None


class NewTopicBody(msgspec.Struct, frozen=True):
    """A topic to be made; what is not said is the broker's default."""

    topic_name: str
    partitions_count: Count | None = None
    replication_factor: Annotated[int, Meta(ge=1, le=(1 << 15) - 1)] | None = None
    replicas_assignments: dict[str, list[BrokerId]] = {}
    configs: list[ConfigValue] = []
    validate_only: bool = False


class PartitionsCount(msgspec.Struct, frozen=True):
    partitions_count: Count


class TopicRoutes:
    """Topics, and what they consist of."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        base = "/v3/clusters/{cluster_id}/topics"
        topic = f"{base}/{{topic_name}}"
        partition = f"{topic}/partitions/{{partition_id}}"
        at_topic, at_partition = (CLUSTER, TOPIC), (CLUSTER, TOPIC, PARTITION)
        wrong = {400: "The broker refuses it.", 422: "The body is not what it should be."}
        return [
            Operation(
                "GET",
                base,
                self.all,
                "All topics.",
                (CLUSTER,),
                answer=Collection[TopicData],
                errors=MISSING,
            ),
            Operation(
                "POST",
                base,
                self.create,
                "Create a topic.",
                (CLUSTER,),
                body=NewTopicBody,
                answer=TopicData,
                errors={**MISSING, **wrong},
                status=201,
            ),
            Operation(
                "GET", topic, self.one, "A topic.", at_topic, answer=TopicData, errors=MISSING
            ),
            Operation(
                "PATCH",
                topic,
                self.grow,
                "Let a topic have more partitions.",
                at_topic,
                body=PartitionsCount,
                answer=TopicData,
                errors={**MISSING, **wrong},
            ),
            Operation(
                "DELETE",
                topic,
                self.delete,
                "Delete a topic.",
                at_topic,
                errors=MISSING,
                status=204,
            ),
            Operation(
                "GET",
                f"{topic}/partitions",
                self.partitions,
                "The partitions of a topic.",
                at_topic,
                answer=Collection[PartitionData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                partition,
                self.partition,
                "A partition.",
                at_partition,
                answer=PartitionData,
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{partition}/offset",
                self.offsets,
                "Where a partition begins and ends.",
                (*at_partition, Parameter("offset_type", "earliest_and_latest")),
                answer=PartitionOffsetsData,
                errors={**MISSING, 400: "offset_type is unknown."},
            ),
            Operation(
                "GET",
                f"{partition}/replicas",
                self.replicas,
                "The replicas of a partition.",
                at_partition,
                answer=Collection[ReplicaData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{partition}/replicas/{{broker_id}}",
                self.replica,
                "A replica.",
                (*at_partition, BROKER),
                answer=ReplicaData,
                errors=MISSING,
            ),
        ]

    async def all(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.topics.all())
        data = [_topic(context.links, one) for one in found]
        return answer(context.links.collection("KafkaTopicList", data, "topics"))

    async def one(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        return answer(_topic(context.links, await self._topic(context)))

    async def create(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, NewTopicBody)
        wanted = _wanted(body)

        def ask(admin: Admin) -> tuple[int, int]:
            (made,) = admin.topics.create([wanted], validate_only=body.validate_only)
            check(made)
            return made.partitions or 0, made.replication_factor or 0

        partitions, factor = await context.ask(ask)
        data = topic_data(context.links, wanted.name, partitions, factor, is_internal=False)
        status = 200 if body.validate_only else 201
        return answer(data, status, data.metadata.self_)

    async def grow(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, PartitionsCount)

        def ask(admin: Admin) -> TopicDescription:
            check(admin.topics.add_partitions(context.topic, body.partitions_count))
            return described(admin, context.topic)

        return answer(_topic(context.links, await context.ask(ask)))

    async def delete(self, request: Request) -> Response:
        context = await Context.of(self._service, request)

        def ask(admin: Admin) -> None:
            (outcome,) = admin.topics.delete([context.topic])
            if outcome.error == UnknownTopicOrPartition().name:
                raise unknown_topic()
            check(outcome)

        await context.ask(ask)
        self._service.identities.forget(context.topic)
        return nothing()

    async def partitions(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic = await self._topic(context)
        data = [_partition(context.links, topic.name, one) for one in topic.partitions]
        place = ("topics", topic.name, "partitions")
        return answer(context.links.collection("KafkaPartitionList", data, *place))

    async def partition(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        return answer(_partition(context.links, context.topic, await self._partition(context)))

    async def offsets(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        kind = request.query_params.get("offset_type", "earliest_and_latest")
        if kind != "earliest_and_latest":
            raise bad_request(f"offset_type:{kind[:40]} is invalid")
        number = (await self._partition(context)).partition
        topic = context.topic

        def ask(admin: Admin) -> tuple[int, int]:
            (first,) = admin.partitions.offsets(topic, EARLIEST, [number])
            (end,) = admin.partitions.offsets(topic, LATEST, [number])
            return first.offset, end.offset

        first, end = await context.ask(ask)
        crn = f"topic={topic}/partition={number}/offset_type={kind}"
        place = ("topics", topic, "partitions", number, "offset")
        return answer(
            PartitionOffsetsData(
                metadata=context.links.metadata(*place, crn=crn),
                cluster_id=context.cluster_id,
                topic_name=topic,
                partition_id=number,
                earliest_offset=first,
                latest_offset=end,
            )
        )

    async def replicas(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        partition = await self._partition(context)
        data = [
            replica_data(context.links, context.topic, partition, broker)
            for broker in partition.replicas
        ]
        place = ("topics", context.topic, "partitions", partition.partition, "replicas")
        return answer(context.links.collection("KafkaReplicaList", data, *place))

    async def replica(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        broker = context.number("broker_id")
        partition = await self._partition(context)
        if broker not in partition.replicas:
            raise not_found(
                f"HTTP 404 Not Found: broker {broker} has no replica of"
                f" {context.topic}-{partition.partition}"
            )
        return answer(replica_data(context.links, context.topic, partition, broker))

    async def _topic(self, context: Context) -> TopicDescription:
        return await context.ask(lambda admin: described(admin, context.topic))

    async def _partition(self, context: Context) -> PartitionDescription:
        number = context.number("partition_id")
        for one in (await self._topic(context)).partitions:
            if one.partition == number:
                return one
        raise partition_not_found()


def described(admin: Admin, name: str) -> TopicDescription:
    """A topic that must be there."""
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
    """Refuse partitions that a topic does not have."""
    if not {one.partition for one in described(admin, topic).partitions}.issuperset(numbers):
        raise partition_not_found()


def unknown_topic() -> RestError:
    return RestError(404, UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)


def topic_data(
    links: Links, name: str, partitions: int, replication_factor: int, *, is_internal: bool
) -> TopicData:
    place = ("topics", name)
    return TopicData(
        metadata=links.metadata(*place, crn=f"topic={name}"),
        cluster_id=links.cluster_id,
        topic_name=name,
        is_internal=is_internal,
        replication_factor=replication_factor,
        partitions_count=partitions,
        partitions=links.related(*place, "partitions"),
        configs=links.related(*place, "configs"),
        partition_reassignments=links.related(*place, "partitions", "-", "reassignment"),
    )


def replica_data(
    links: Links, topic: str, partition: PartitionDescription, broker: int
) -> ReplicaData:
    number = partition.partition
    return ReplicaData(
        metadata=links.metadata(
            *("topics", topic, "partitions", number, "replicas", broker),
            crn=f"topic={topic}/partition={number}/replica={broker}",
        ),
        cluster_id=links.cluster_id,
        topic_name=topic,
        partition_id=number,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.isr,
        broker=links.related("brokers", broker),
    )


def _topic(links: Links, topic: TopicDescription) -> TopicData:
    return topic_data(
        links,
        topic.name,
        len(topic.partitions),
        topic.replication_factor,
        is_internal=topic.is_internal,
    )


def _partition(links: Links, topic: str, one: PartitionDescription) -> PartitionData:
    place = ("topics", topic, "partitions", one.partition)
    leader = None if one.leader is None else links.related(*place, "replicas", one.leader)
    return PartitionData(
        metadata=links.metadata(*place, crn=f"topic={topic}/partition={one.partition}"),
        cluster_id=links.cluster_id,
        topic_name=topic,
        partition_id=one.partition,
        leader=leader,
        replicas=links.related(*place, "replicas"),
        reassignment=links.related(*place, "reassignment"),
    )


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
