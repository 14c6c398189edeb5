"""Topics, partitions and brokers as version 2 shows them."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.descriptions import PartitionDescription, TopicDescription
from headrace.client.partitions import EARLIEST, LATEST
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import failure_of, partition_not_found, topic_not_found
from headrace.rest.formats import V2_JSON
from headrace.rest.service import Service
from headrace.rest.v2.answers import answer
from headrace.rest.v2.produce import partition_in

_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION")


class Replica(msgspec.Struct, frozen=True):
    broker: int
    leader: bool
    in_sync: bool


class PartitionAnswer(msgspec.Struct, frozen=True):
    partition: int
    leader: int
    replicas: list[Replica]


class TopicAnswer(msgspec.Struct, frozen=True):
    name: str
    configs: dict[str, str | None]
    partitions: list[PartitionAnswer]


class OffsetsAnswer(msgspec.Struct, frozen=True):
    beginning_offset: int
    end_offset: int


class BrokersAnswer(msgspec.Struct, frozen=True):
    brokers: list[int]


class TopicRoutes:
    """What can be looked at."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        topic = Parameter("topic", "The topic.", "path")
        partition = Parameter("partition", "The partition.", "path", "integer")
        missing = {404: "There is no such topic or partition."}
        types = (V2_JSON,)
        return [
            Operation(
                "GET",
                "/topics",
                self.all,
                "The names of all topics.",
                answer=list[str],
                answer_types=types,
            ),
            Operation(
                "GET",
                "/topics/{topic}",
                self.topic,
                "A topic with its configs and partitions.",
                parameters=(topic,),
                answer=TopicAnswer,
                answer_types=types,
                errors=missing,
            ),
            Operation(
                "GET",
                "/topics/{topic}/partitions",
                self.partitions,
                "The partitions of a topic.",
                parameters=(topic,),
                answer=list[PartitionAnswer],
                answer_types=types,
                errors=missing,
            ),
            Operation(
                "GET",
                "/topics/{topic}/partitions/{partition}",
                self.partition,
                "A partition.",
                parameters=(topic, partition),
                answer=PartitionAnswer,
                answer_types=types,
                errors=missing,
            ),
            Operation(
                "GET",
                "/topics/{topic}/partitions/{partition}/offsets",
                self.offsets,
                "Where a partition begins and ends.",
                parameters=(topic, partition),
                answer=OffsetsAnswer,
                answer_types=types,
                errors=missing,
            ),
            Operation(
                "GET",
                "/brokers",
                self.brokers,
                "The ids of all brokers.",
                answer=BrokersAnswer,
                answer_types=types,
            ),
        ]

    async def all(self, request: Request) -> Response:
        names = await self._service.clients(request).admin.run(
            lambda admin: admin.cluster.topic_names()
        )
        return answer(request, names)

    async def topic(self, request: Request) -> Response:
        name = request.path_params["topic"]

        def ask(admin: Admin) -> TopicAnswer:
            found = described(admin, name)
            entries = admin.configs.describe("topic", name)
            return TopicAnswer(
                name,
                {entry.name: entry.value for entry in entries},
                [_partition(one) for one in found.partitions],
            )

        return answer(request, await self._service.clients(request).admin.run(ask))

    async def partitions(self, request: Request) -> Response:
        found = await self._described(request)
        return answer(request, [_partition(one) for one in found.partitions])

    async def partition(self, request: Request) -> Response:
        number = partition_in(request)
        found = await self._described(request)
        for one in found.partitions:
            if one.partition == number:
                return answer(request, _partition(one))
        raise partition_not_found()

    async def offsets(self, request: Request) -> Response:
        name, number = request.path_params["topic"], partition_in(request)

        def ask(admin: Admin) -> OffsetsAnswer:
            found = described(admin, name)
            if all(one.partition != number for one in found.partitions):
                raise partition_not_found()
            (first,) = admin.partitions.offsets(name, EARLIEST, [number])
            (end,) = admin.partitions.offsets(name, LATEST, [number])
            return OffsetsAnswer(first.offset, end.offset)

        return answer(request, await self._service.clients(request).admin.run(ask))

    async def brokers(self, request: Request) -> Response:
        ids = await self._service.clients(request).admin.run(lambda admin: admin.cluster.node_ids())
        return answer(request, BrokersAnswer(ids))

    async def _described(self, request: Request) -> TopicDescription:
        name = request.path_params["topic"]
        return await self._service.clients(request).admin.run(lambda admin: described(admin, name))


def described(admin: Admin, name: str) -> TopicDescription:
    """A topic that must be there; one that is not has an error of its own."""
    found, failed = admin.topics.describe([name])
    if found:
        return found[0]
    if failed[0].error in _NO_TOPIC:
        raise topic_not_found()
    raise failure_of(failed[0])


def _partition(one: PartitionDescription) -> PartitionAnswer:
    leader = -1 if one.leader is None else one.leader
    replicas = [
        Replica(broker, broker == leader, broker in one.isr) for broker in sorted(one.replicas)
    ]
    return PartitionAnswer(one.partition, leader, replicas)
